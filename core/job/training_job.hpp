#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units/bytes.hpp"
#include "core/units/dtype.hpp"

namespace tidemark {

enum class Method : std::uint8_t { kFull, kLora, kQlora, kFreeze };
enum class AttentionKernel : std::uint8_t { kEager, kSdpa, kFlashAttention2, kFlashAttention3, kXformers, kMath };
enum class Checkpointing : std::uint8_t { kNone, kFull, kEvery, kSelectiveCoreAttention, kOffload };
enum class Loss : std::uint8_t { kDefault, kLiger, kChunked, kCutCrossEntropy, kMeanSquare };
enum class QuantType : std::uint8_t { kNf4, kFp4, kInt8 };
enum class ExpertsKernel : std::uint8_t { kGroupedMm, kBatchedMm, kEager };
enum class PrepareKbit : std::uint8_t { kOff, kAll, kNormsOnly };

/// Every decision of mixed precision, so that no answer hides behind "16 bytes per parameter".
struct Recipe {
  std::string name = "amp_bf16";                 ///< as requested, or "custom"
  Dtype weights = Dtype::kFp32;                  ///< of the parameters as loaded
  std::optional<Dtype> autocast = Dtype::kBf16;  ///< torch.autocast's dtype; absent when there is none
  Dtype gradients = Dtype::kFp32;                ///< dtype of `.grad`
  std::optional<Dtype> master_weights;    ///< a second copy that the optimizer updates; absent when there is none
  Dtype optimizer_states = Dtype::kFp32;  ///< of the moments, where the optimizer does not decide for itself

  bool operator==(const Recipe&) const = default;
  std::partial_ordering operator<=>(const Recipe&) const = default;
};

/// Modules as LoraConfig chooses them.
struct ModuleChoice {
  enum class Kind : std::uint8_t {
    kNames,       ///< a list of full names or last parts
    kExpression,  ///< a string: a regular expression for the whole name
    kAllLinear,   ///< every linear layer but the output head
    kAttention,   ///< the linear layers of the attention
  };
  Kind kind = Kind::kNames;
  std::vector<std::string> names;  ///< of kNames
  std::string expression;          ///< of kExpression

  bool empty() const { return kind == Kind::kNames && names.empty(); }

  bool operator==(const ModuleChoice&) const = default;
  std::partial_ordering operator<=>(const ModuleChoice&) const = default;
};

/// PEFT's task types, as far as they decide what is trained beside the adapters.
enum class TaskType : std::uint8_t {
  kAuto,                    ///< that of the head
  kSequenceClassification,  ///< classifier, score
  kTokenClassification,     ///< the same, but only after the targets are chosen
  kQuestionAnswering,       ///< qa_outputs
  kOther,
};

/// LoraConfig.bias: biases of the model that are trained.
enum class TrainedBiases : std::uint8_t {
  kNone,
  kAll,
  kLoraOnly,  ///< those of adapted modules
};

/// A rank for the modules that a pattern names.
struct PatternRank {
  std::string pattern;  ///< regular expression for a name's end
  Count rank = 0;       ///< theirs

  bool operator==(const PatternRank&) const = default;
  std::partial_ordering operator<=>(const PatternRank&) const = default;
};

/// PEFT LoraConfig.
struct Adapter {
  Count r = 16;               ///< rank
  double lora_alpha = 32.0;   ///< scaling numerator; moves no memory
  double lora_dropout = 0.0;  ///< probability
  ModuleChoice target_modules{ModuleChoice::Kind::kAllLinear, {}, {}};
  ModuleChoice exclude_modules;                ///< not adapted, whatever the targets
  std::vector<std::string> target_parameters;  ///< parameters that get adapters of their own: experts'
  std::vector<std::string> modules_to_save;    ///< trained in full beside the adapters
  std::vector<PatternRank> rank_pattern;       ///< ranks that differ from r; the first that fits counts
  std::vector<std::string> alpha_pattern;      ///< patterns of scalings that differ; they move no memory
  std::vector<Count> layers_to_transform;      ///< numbers of the adapted layers; empty: all
  std::vector<std::string> layers_pattern;     ///< names of the lists whose numbers those are; empty: any
  TrainedBiases bias = TrainedBiases::kNone;   ///< biases of the model that are trained too
  TaskType task_type = TaskType::kAuto;
  Dtype dtype = Dtype::kFp32;  ///< of A and B
  bool use_dora = false;       ///< a magnitude vector per adapted module

  bool operator==(const Adapter&) const = default;
  std::partial_ordering operator<=>(const Adapter&) const = default;
};

/// bitsandbytes and friends.
struct Quantization {
  int bits = 4;  ///< 4 or 8
  QuantType quant_type = QuantType::kNf4;
  bool double_quant = true;                      ///< block scales are quantised again
  Count group_size = 64;                         ///< elements that share a scale
  PrepareKbit prepare_kbit = PrepareKbit::kOff;  ///< peft.prepare_model_for_kbit_training was called

  bool operator==(const Quantization&) const = default;
  std::partial_ordering operator<=>(const Quantization&) const = default;
};

/// Releases whose memory behaviour differs (mechanics: version switches).
struct Framework {
  std::string name = "transformers";
  int major = 5;  ///< of the version
  int minor = 12;
  bool at_least(int wanted_major, int wanted_minor) const {
    return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
  }

  bool operator==(const Framework&) const = default;
  std::partial_ordering operator<=>(const Framework&) const = default;
};

/// torch.nn.parallel.DistributedDataParallel: each GPU has the whole model and sees other rows.
struct DataParallel {
  Count degree = 1;                      ///< GPUs; 1: it is not used
  bool gradient_as_bucket_view = false;  ///< gradients are parts of the buckets, not copied into them
  double bucket_cap_mb = 25.0;           ///< MiB of gradients that are reduced together

  bool is_used() const { return degree > 1; }
  bool operator==(const DataParallel&) const = default;
  std::partial_ordering operator<=>(const DataParallel&) const = default;
};

/// How the model is trained, as each GPU sees it. All defaults are those of the contract.
struct TrainingJob {
  Method method = Method::kFull;
  Adapter adapter;                  ///< read when method is lora or qlora
  Quantization quantization;        ///< read when method is qlora
  std::vector<std::string> freeze;  ///< module-name patterns that are not trained
  Recipe recipe;
  Count micro_batch_size = 1;         ///< B
  Count sequence_length = 2048;       ///< S
  Count decoder_sequence_length = 0;  ///< target length of encoder–decoders; 0 = S
  double audio_seconds = 0.0;         ///< of a recording; 0 = what the family's models take
  Count gradient_accumulation_steps = 1;
  Count images_per_sample = 0;              ///< of models that see; 0: text alone
  Count image_height = 0, image_width = 0;  ///< pixels; 0: the model's own
  Count image_tiles = 0;                    ///< that a picture is cut into; 0: as the model cuts one of that size
  bool freeze_vision = false;               ///< the vision tower is not trained
  bool freeze_projector = false;            ///< what lies between it and the language model is not
  bool freeze_llm = false;                  ///< the language model is not
  bool padding = false;                     ///< a 2-D attention mask with zeros is passed
  bool packing = false;                     ///< several samples per row, block-diagonal attention
  AttentionKernel attention = AttentionKernel::kSdpa;
  ExpertsKernel experts = ExpertsKernel::kGroupedMm;  ///< how mixtures of experts compute
  bool torch_scan = false;      ///< state-space layers run on torch alone, without fla, mamba_ssm and causal_conv1d
  double load_imbalance = 1.0;  ///< tokens of the busiest expert, relative to an even split; moves loops over experts
  Checkpointing checkpointing = Checkpointing::kNone;
  Count checkpoint_every = 1;  ///< k, when kEvery
  bool use_reentrant = false;
  std::string_view optimizer = "adamw_torch_fused";  ///< Hugging Face's `optim`: the name of a row of core/optimizers
  double max_grad_norm = 1.0;                        ///< 0 = no clipping
  bool optimizer_in_backward = false;
  Loss loss = Loss::kDefault;
  bool liger_rms_norm = false, liger_swiglu = false, liger_rope = false;  ///< Liger kernels in use
  bool keep_outputs = false;         ///< a hand-written loop holds `outputs` through backward
  bool outputs_to_fp32 = true;       ///< accelerate converts the outputs under autocast
  bool zero_grad_to_none = true;     ///< torch ≥ 2.0
  bool expandable_segments = false;  ///< allocator setting
  DataParallel data_parallel;
  Framework framework;
  int compute_capability = 80;  ///< of the GPU that runs it; decides kernels and workspaces
  Bytes misc_overhead = 0;      ///< overrides.misc_overhead_gib

  bool operator==(const TrainingJob&) const = default;
  std::partial_ordering operator<=>(const TrainingJob&) const = default;
};

}  // namespace tidemark
