#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/job/calibration.hpp"
#include "core/job/training_job.hpp"
#include "core/units/bytes.hpp"
#include "core/units/value.hpp"

namespace tidemark {

/// A card as the user wrote it: a catalog name, or only how much memory it has.
struct GpuQuery {
  std::string name;         ///< catalog name or alias; empty when only the memory is given
  double memory_gib = 0.0;  ///< what torch sees of it, when no name is given
  double vram_gb = 0.0;     ///< what its box says ("24 GB"), when neither is given
};

/// Factors that the user states instead of leaving them to us; each is echoed in the answer.
struct Overrides {
  std::optional<double> fragmentation_gib;  ///< cached by the allocator and not usable for the next request
  std::optional<double> misc_overhead_gib;  ///< taken on the card by anything else: NCCL, other processes, a desktop
  std::optional<double> cuda_context_gib;   ///< CUDA context and loaded kernels, instead of the catalog's figure
};

/// What the request leaves to its framework, until settle_defaults() knows model and card.
struct LeftOpen {
  bool precision = true;            ///< the recipe follows the checkpoint's dtype and these three
  std::optional<Dtype> dtype;       ///< from_pretrained(dtype=...); absent: the framework's own
  std::optional<bool> bf16;         ///< TrainingArguments.bf16
  std::optional<bool> fp16;         ///< TrainingArguments.fp16
  bool optimizer = true;            ///< TrainingArguments.optim
  bool sequence_length = true;      ///< no longer than a table of positions
  bool use_reentrant = true;        ///< gradient_checkpointing_kwargs
  bool keep_outputs = true;         ///< whose loop it is
  bool outputs_to_fp32 = true;      ///< likewise
  bool reference = true;            ///< a copy, or the adapter switched off
  std::optional<bool> compares;     ///< trainers that generate have one, where it was said: beta is not 0
  bool expandable_segments = true;  ///< what the framework's own launcher sets
  bool fsdp_groups = true;          ///< FSDP 2's units outside the layers
  bool sequence_parallel = true;    ///< between what tensor-parallel GPUs divide
  bool loss_parallel = true;        ///< and of their logits
  bool fsdp_wrap = true;            ///< FSDP 1's units beside adapters
  bool reshard_last = true;         ///< and whether the last one is sharded again after forward
  bool reshard = true;              ///< and whether any is
  bool targets = true;              ///< an adapter's modules
  bool deepspeed = true;            ///< its release
  bool lora_kernels = true;         ///< functions in the place of LoRA layers
  bool loss = true;                 ///< how it is computed
  bool micro_batches = true;        ///< of a pipeline's step
};

/// What other tools say in words of their own; the job has the same in its own words once it is settled.
struct Foreign {
  Count trained_layers = 0;  ///< of the layers the last so many are trained, below 0 the first; 0: as `freeze` says
  bool trains_expansion = false;  ///< so many in equal steps instead: LLaMA Pro's
  Count new_layers = 0;           ///< that are added to the model's, in equal steps, and trained alone
  Count layers_in_turn = 0;       ///< LISA: so many are trained at a time; 0: all that the method trains
  bool padding_free = false;      ///< the samples of a batch are joined into one row
  Count generation_batch = 0;     ///< answers that all GPUs generate together; 0: as `rollout` says
  Count prompt_length = 0;        ///< tokens of a prompt; 0: what the sequence leaves the answer
  Count rows_per_sample = 1;      ///< that stand in the batch
  Count texts_per_sample = 1;     ///< that go through the model one after the other before backward
};

/// Options that other tools' keys state, and those keys: {"sequence_length", "max_length"}. Both are of the option
/// table.
using StatedAs = std::vector<std::pair<std::string_view, std::string_view>>;

/// Whether a task scores documents beside a query.
inline bool ranks(std::string_view task) {
  return task == "reranker" || task == "generative_reranker";
}

/// Everything that one request says: which model, how it is trained, on what.
struct Request {
  Foreign foreign;
  std::string model;           ///< catalog id or alias; empty when not given
  Value config;                ///< a pasted config.json; null when not given
  double parameters = 0.0;     ///< only a count; 0 when not given
  std::string teacher;         ///< catalog id or alias of the model to distil from
  std::string judge;           ///< catalog id or alias of the model that scores answers; empty: the model itself
  Value judge_config;          ///< or its config.json
  Value teacher_config;        ///< or its config.json; neither: the model itself
  std::string class_name;      ///< class whose head is trained, where it differs from config.json's
  std::string task;            ///< which head is trained, where class_name does not say; empty: the model's own
  TrainingJob job;             ///< how it is trained
  LeftOpen open;               ///< what of it the framework decides
  std::vector<GpuQuery> gpus;  ///< cards to check, in the order given
  Overrides overrides;         ///< factors stated by the user
  std::optional<Calibration> calibration;  ///< factors that measurements of the user's gave
  StatedAs stated_as;                      ///< options that stand under another tool's key
};

}  // namespace tidemark
