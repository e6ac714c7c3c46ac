#pragma once

#include <string>
#include <string_view>

#include "core/job/request.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"
#include "core/units/value.hpp"

namespace tidemark {

/// Fills in what the request leaves to its framework: recipe, optimizer, form of checkpointing, what the loop holds.
/// `checkpoint` is the dtype that the model's config.json states, absent when it states none. A note among the issues
/// tells which recipe was chosen and why. docs/defaults.md lists the rules with their sources.
void settle_defaults(const LeftOpen& open, std::optional<Dtype> checkpoint, TrainingJob& job, Issues& issues);

/// What other tools say in words of their own, in the job's.
void settle_foreign(const Foreign& foreign, TrainingJob& job, Issues& issues);

/// A checkpoint that is quantised already holds its weights so, whatever the request says.
void settle_quantization(const Value& config, TrainingJob& job, Issues& issues);

/// The base's weights are packed so before adapters come: LoRA is QLoRA. `said`: the note that tells who says it.
void hold_packed(Quantization packed, Issue said, TrainingJob& job, Issues& issues);

/// The class whose head the request trains: as stated, or the one that its task needs; empty: config.json's own.
/// `otherwise`: the class of a config.json that names none.
std::string class_of(const Value& config, const Request& request, std::string_view otherwise);

/// The dtype of a config.json ("bfloat16" under "dtype", or "torch_dtype" as it was called before 4.56), at its top or
/// in its text model.
std::optional<Dtype> checkpoint_dtype(const Value& config);

/// In which dtype from_pretrained loads what is named alone, a reward model (trl 1.9 trainer/grpo_trainer.py:
/// __init__).
Dtype loaded_by_name(const TrainingJob& job, std::optional<Dtype> checkpoint);

/// Whether transformers' code may stand in for that of the framework.
bool is_stood_for(const Framework& framework);

/// Whether accelerate divides the model by FSDP 2, in units of its own: its policy for fully_shard stands in the place
/// of autocast, and says what the outputs are cast to.
bool is_divided_by_accelerate(const TrainingJob& job);

/// Whether accelerate makes FSDP's units by the names of classes (TRANSFORMER_BASED_WRAP, as the Trainer asks).
bool wraps_named_classes(const TrainingJob& job);

/// Whether accelerate finds no layers of the class to wrap, so that the root's unit has all of them.
bool wraps_no_layers(const Architecture& architecture, const TrainingJob& job);
/// How many layers, the first that the forward comes to, the root's unit has under accelerate's FSDP 2.
Count unwrapped_layers(const Architecture& architecture, const TrainingJob& job);

/// Whether the framework's own code of the model is asked for: torchtitan's, but for tensor parallelism without a
/// release, which is its plan around the modules of transformers (experiments/transformers_modeling_backend).
bool runs_own_code(const TrainingJob& job);

/// The job in transformers' words, whose code stands in for the framework's.
void stand_in(TrainingJob& job);
/// What is not modelled of expert parallelism beside FSDP 2: experts are divided like all other weights.
void divide_experts_like_weights(TrainingJob& job);

/// Whether the script of a diffusion model checkpoints re-entrantly; each has one form.
bool checkpoints_reentrantly(const Denoiser& denoiser, const TrainingJob& job);

/// Whether the recipe that this framework chooses depends on the method.
bool precision_follows_method(const TrainingJob& job);

}  // namespace tidemark
