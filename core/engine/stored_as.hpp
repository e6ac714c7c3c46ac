#pragma once

#include <string_view>

#include "core/job/training_job.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// What a model's name says of how its weights are stored ("unsloth/llama-3-8b-bnb-4bit", "TheBloke/Llama-2-7B-GPTQ"),
/// for adapters beside them: LoRA there is QLoRA. A base that is trained itself, and stores that nothing trains beside
/// (GGUF), get a warning: the answer is about the weights as the base has them.
void settle_stored(std::string_view typed, TrainingJob& job, Issues& issues);

}  // namespace tidemark
