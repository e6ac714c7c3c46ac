#pragma once

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"

namespace tidemark {

/// Puts a framework's own code of the model in the place of transformers', where it is modelled: its program, and what
/// follows from it for the job. False, with both as they were, where it is not: transformers' code stands in.
bool take_implementation(TrainingJob& job, Architecture& architecture);

/// LitGPT's GPT (litgpt/model.py, litgpt/lora.py) under finetune/lora.py and finetune/full.py.
bool as_litgpt(TrainingJob& job, Architecture& architecture);

/// Unsloth's FastLanguageModel with LoRA.
bool as_unsloth(TrainingJob& job, Architecture& architecture);

/// torchtune's TransformerDecoder under its recipes for one device.
bool as_torchtune(TrainingJob& job, Architecture& architecture);

/// torchtitan's Transformer under its train.py, on any number of GPUs.
bool as_torchtitan(const TrainingJob& job, Architecture& architecture);

}  // namespace tidemark
