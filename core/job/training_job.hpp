#pragma once

#include <algorithm>
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
enum class QuantType : std::uint8_t { kNf4, kFp4, kInt8, kGptq, kAwq, kHqq, kQuanto, kTorchao, kEetq, kAqlm };
/// Products of linear layers in 8-bit floats (torchao's convert_to_float8_training): one scale for a tensor, or one for
/// each row.
enum class Float8 : std::uint8_t { kNone, kTensorwise, kRowwise };
/// What a linear layer rounds to in forward, as if it were quantised already (torchao.quantization.qat).
enum class FakeQuant : std::uint8_t { kNone, kInt4, kInt8, kFloat8, kNvfp4, kMxfp4 };
/// The last two: KTransformers' on the CPU, with weights in 16 bits or in 8.
enum class ExpertsKernel : std::uint8_t { kGroupedMm, kBatchedMm, kEager, kHostBf16, kHostInt8 };
enum class PrepareKbit : std::uint8_t { kOff, kAll, kNormsOnly, kNormsBack };

/// Every decision of mixed precision, so that no answer hides behind "16 bytes per parameter".
struct Recipe {
  std::string name = "amp_bf16";                 ///< as requested, or "custom"
  Dtype weights = Dtype::kFp32;                  ///< of the parameters as loaded
  std::optional<Dtype> autocast = Dtype::kBf16;  ///< torch.autocast's dtype; absent when there is none
  Dtype gradients = Dtype::kFp32;                ///< dtype of `.grad`
  std::optional<Dtype> master_weights;    ///< a second copy that the optimizer updates; absent when there is none
  Dtype optimizer_states = Dtype::kFp32;  ///< of the moments, where the optimizer does not decide for itself
  std::optional<Dtype> buffers;  ///< of floats that are no parameters, where they are not cast with the weights

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
    kByPeft,      ///< PEFT's own for the model type (core/job/peft_targets.hpp)
  };
  Kind kind = Kind::kNames;
  std::vector<std::string> names;  ///< of kNames
  std::string expression;          ///< of kExpression

  bool empty() const { return kind == Kind::kNames && names.empty(); }

  bool operator==(const ModuleChoice&) const = default;
  std::partial_ordering operator<=>(const ModuleChoice&) const = default;
};

/// How GaLore and APOLLO project gradients, as `optim_args` and `optim_target_modules` of Hugging Face's Trainer say
/// it.
struct LowRank {
  Count rank = 0;       ///< 0: the optimizer's own (core/optimizers/optimizer.hpp)
  bool by_svd = false;  ///< of APOLLO: singular vectors, as GaLore's, instead of random ones (optim_args proj=svd)
  ModuleChoice targets = {ModuleChoice::Kind::kAllLinear, {}, {}};  ///< linear layers whose gradients are projected

  bool operator==(const LowRank&) const = default;
  std::partial_ordering operator<=>(const LowRank&) const = default;
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

/// Which of PEFT's adapters (peft 0.18 utils/peft_types.py PeftType).
enum class AdapterKind : std::uint8_t {
  kLora,
  kAdaLora,
  kIa3,
  kLoHa,
  kLoKr,
  kVera,
  kOft,
  kBoft,
  kLnTuning,
  kPromptTuning,
  kPTuning,
  kPrefixTuning,
};

/// Does PEFT put it on transformers' Conv1D, too?
constexpr bool takes_conv1d(AdapterKind kind) {
  return kind <= AdapterKind::kIa3 || kind == AdapterKind::kVera;
}

/// Has PEFT classes of it for packed weights?
constexpr bool takes_packed(AdapterKind kind) {
  return kind != AdapterKind::kLoHa && kind != AdapterKind::kLoKr && kind != AdapterKind::kBoft;
}

/// PEFT LoraConfig, and what the configurations of its other adapters have beside.
struct Adapter {
  AdapterKind kind = AdapterKind::kLora;
  Count r = 16;               ///< rank; of OFT the number of blocks, 0: oft_block_size decides
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
  Dtype dtype = Dtype::kFp32;          ///< of A and B
  bool use_dora = false;               ///< a magnitude vector per adapted module
  ModuleChoice feedforward_modules;    ///< IA3: modules whose inputs are scaled, not their outputs
  bool knows_feedforward = false;      ///< ... the job names them; else they are PEFT's of this model
  Count block_size = 0;                ///< OFT and BOFT: inputs that a block turns
  Count block_num = 0;                 ///< BOFT: blocks, where block_size is 0
  bool block_share = false;            ///< OFT: all blocks of a module are one
  bool use_cayley_neumann = true;      ///< OFT: a series instead of a solver
  Count num_cayley_neumann_terms = 5;  ///< its terms
  bool decompose_both = false;         ///< LoKr: the left factor is of low rank, too
  Count decompose_factor = -1;         ///< LoKr: size of the left factor; -1: near the root
  Count num_virtual_tokens = 20;       ///< of prompts
  Count encoder_hidden_size = 0;       ///< of the network that makes them; 0: as wide as the model
  bool prefix_projection = false;      ///< prefix tuning: such a network makes the prefix

  /// Virtual tokens that take part in the sequence.
  bool has_prompt() const { return kind == AdapterKind::kPromptTuning || kind == AdapterKind::kPTuning; }
  /// Of PEFT's prompt learning: no module is wrapped.
  bool learns_prompt() const { return has_prompt() || kind == AdapterKind::kPrefixTuning; }

  bool operator==(const Adapter&) const = default;
  std::partial_ordering operator<=>(const Adapter&) const = default;
};

/// bitsandbytes and friends.
struct Quantization {
  int bits = 4;  ///< 4 or 8; GPTQ and HQQ also 2 and 3
  QuantType quant_type = QuantType::kNf4;
  bool double_quant = true;                      ///< block scales are quantised again
  Count group_size = 64;                         ///< elements that share a scale; -1: a whole row
  bool desc_act = false;                         ///< GPTQ: columns were quantised in the order of their activations
  PrepareKbit prepare_kbit = PrepareKbit::kOff;  ///< peft.prepare_model_for_kbit_training was called
  bool experts = false;          ///< also experts whose weights are one parameter (Axolotl's quantize_moe_experts)
  std::optional<Dtype> storage;  ///< of packed weights (bnb_4bit_quant_storage); absent: uint8, under FSDP the weights'

  /// Packed by bitsandbytes; others have linear layers and PEFT classes of their own.
  bool is_bitsandbytes() const { return quant_type <= QuantType::kInt8; }
  /// The layer stays nn.Linear, with a weight of a tensor class of its own: PEFT's ordinary layer goes beside it.
  bool keeps_linear() const { return quant_type == QuantType::kQuanto || quant_type == QuantType::kTorchao; }

  bool operator==(const Quantization&) const = default;
  std::partial_ordering operator<=>(const Quantization&) const = default;
};

/// PEFT 0.19 takes names of experts' modules for parameters where transformers 5 has them in one (core/step/
/// expert_targets.hpp), 0.20 also what all-linear or an expression names; 0.21 adds products of factors to them.
inline constexpr int kPeftOfExperts = 19, kPeftOfExpertStrings = 20, kPeftOfFactors = 21;
/// From 0.20 on BOFT turns a layer's inputs, not its weight.
inline constexpr int kPeftOfTurnedInputs = 20;
/// From 0.19 on a function makes DoRA's product, and lets the identity go that it is made from.
inline constexpr int kPeftOfDoraFunction = 19;

/// Releases whose memory behaviour differs (mechanics: version switches).
struct Framework {
  std::string name = "transformers";
  int major = 5;  ///< of the version
  int minor = 24;
  int date = 0;   ///< date_of() what `version` says where that is a date, or a release of torchtitan; 0: not known
  int peft = 21;  ///< PEFT 0.n
  bool at_least(int wanted_major, int wanted_minor) const {
    return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
  }

  bool operator==(const Framework&) const = default;
  std::partial_ordering operator<=>(const Framework&) const = default;
};

/// What data-parallel GPUs divide among them, where not each of them keeps everything.
enum class Sharding : std::uint8_t {
  kNone,   ///< DistributedDataParallel: each GPU has the whole model
  kFsdp2,  ///< torch.distributed.fsdp.fully_shard
  kFsdp1,  ///< FullyShardedDataParallel
  kZero1,  ///< DeepSpeed: optimizer states and master weights
  kZero2,  ///< and gradients
  kZero3,  ///< and weights
};

constexpr bool is_fsdp(Sharding sharding) {
  return sharding == Sharding::kFsdp1 || sharding == Sharding::kFsdp2;
}

/// torch.distributed.fsdp.BackwardPrefetch: when the weights of the next unit in backward are gathered.
enum class BackwardPrefetch : std::uint8_t { kPre, kPost, kNone };

/// FSDP 2's units outside the layers.
enum class FsdpGroups : std::uint8_t {
  kRoot,           ///< one, which stays whole after forward: fully_shard on each layer, then on the model
  kSeparate,       ///< torchtitan: the token table, norm with head
  kAccelerate,     ///< accelerate from 1.14 on: likewise; a tied table with norm and head
  kReshardedRoot,  ///< accelerate until 1.13: one, let go after forward as the layers are
};

/// Settings of torch's FSDP.
struct Fsdp {
  std::optional<Dtype> param;         ///< of gathered weights; absent: as accelerate sets it for the recipe
  std::optional<Dtype> reduce;        ///< in which gradients are reduced; absent: likewise
  bool reshard_after_forward = true;  ///< weights are let go after forward and gathered again in backward
  Count reshard_to = 0;               ///< FSDP2: after forward they are kept in so many parts; 0: as they are sharded
  FsdpGroups groups = FsdpGroups::kRoot;   ///< FSDP2: of what lies outside the layers
  bool reshard_last = true;                ///< FSDP2: the last layer's, too
  bool no_sync = false;                    ///< gradients are reduced in a step's last micro-step only
  bool keeps_gathered = false;             ///< FSDP1's SHARD_GRAD_OP: weights stay whole from forward to backward
  bool use_orig_params = true;             ///< FSDP1
  bool limit_all_gathers = true;           ///< FSDP1
  bool forward_prefetch = false;           ///< FSDP1
  bool cpu_ram_efficient_loading = false;  ///< one process of a node reads the model
  bool trained_leaves = false;  ///< FSDP1: every trained module without children is a unit, as PEFT's policy has it
  BackwardPrefetch backward_prefetch = BackwardPrefetch::kPre;  ///< FSDP1

  bool operator==(const Fsdp&) const = default;
  std::partial_ordering operator<=>(const Fsdp&) const = default;
};

/// Settings of DeepSpeed's ZeRO; elements, not bytes.
struct Zero {
  bool hf_auto = false;              ///< sizes are "auto": as the Trainer's integration resolves it
  Count reduce_bucket = 0;           ///< 0: DeepSpeed's own, here and below
  Count prefetch_bucket = 0;         ///< stage 3
  Count persistence_threshold = -1;  ///< stage 3: parameters of fewer elements are never let go; −1: DeepSpeed's
  Count max_live = 0;                ///< stage 3: so many may be gathered at a time
  Count max_reuse_distance = 0;      ///< stage 3: what is used again within so many stays
  Count sub_group = 0;               ///< stage 3: parts of so many are stepped together
  bool overlap = true;               ///< overlap_comm
  bool keeps_frozen = true;          ///< stage 3, behind re-entrant checkpoints: DeepSpeed from 0.19.3 on

  bool operator==(const Zero&) const = default;
  std::partial_ordering operator<=>(const Zero&) const = default;
};

/// The autoencoder that turns pictures into latents before a denoiser sees them.
enum class Vae : std::uint8_t {
  kCached,  ///< latents were made before: it is not on the card
  kMixed,   ///< it encodes in every step, in the dtype of mixed precision
  kWide     ///< and in fp32
};

/// Training on answers that people prefer, as TRL's trainers do it.
enum class Preference : std::uint8_t {
  kNone,
  kDpo,        ///< pairs: rows of chosen answers above as many of rejected ones; against a reference
  kKto,        ///< single answers, some of them wanted; against a reference
  kOrpo,       ///< pairs, without a reference
  kCpo,        ///< pairs, without a reference
  kSimpo,      ///< the same without the loss of the chosen answers' tokens
  kReward,     ///< pairs, a score each
  kGrpo,       ///< answers that the model generates itself, which rewards compare
  kRloo,       ///< the same, each weighed as a whole
  kGkd,        ///< single samples, whose tokens a teacher predicts, too
  kBco,        ///< single answers, told apart by a binary classifier; against a reference
  kPpo,        ///< answers that the model generates itself, which one model scores and a second one, trained, values
  kTpo,        ///< triples: chosen, rejected and gold answers, without a reference
  kOnlineDpo,  ///< pairs of answers that the model generates itself before each micro-batch; against a reference
};

/// Whether the model generates what it trains on.
constexpr bool generates(Preference preference) {
  return preference == Preference::kGrpo || preference == Preference::kRloo || preference == Preference::kPpo;
}
/// Whether each row of a batch is an answer of its own, wanted or not.
constexpr bool has_single_answers(Preference preference) {
  return preference == Preference::kKto || preference == Preference::kBco;
}
/// Rows of a batch that one sample makes.
constexpr Count answers_per_sample(Preference preference) {
  if (preference == Preference::kTpo) return 3;
  const bool alone = preference == Preference::kNone || preference == Preference::kGkd ||
                     has_single_answers(preference) || generates(preference);
  return alone ? 1 : 2;
}
constexpr bool has_reference(Preference preference) {
  return preference == Preference::kDpo || preference == Preference::kOnlineDpo || has_single_answers(preference) ||
         generates(preference);
}

/// Where a reference's log-probabilities come from.
enum class Reference : std::uint8_t {
  kCopy,         ///< a frozen copy of the model on the same card
  kAdapterOff,   ///< the model without its adapter
  kPrecomputed,  ///< they were computed before training
  kNone,         ///< nothing is compared with one
};

/// Who generates the answers that a job trains on.
enum class RolloutEngine : std::uint8_t {
  kTransformers,  ///< the model's own generate()
  kVllm,          ///< vLLM on the same card (colocate)
  kServer,        ///< vLLM on cards of its own
};

/// Answers that are generated between steps, as TRL's GRPOConfig and RLOOConfig say them (trl 1.9
/// trainer/{grpo,rloo}_config.py).
struct Rollout {
  Count answer = 256;       ///< tokens of an answer, of the sequence that prompt and answer are
  Count per_prompt = 0;     ///< answers of each prompt (num_generations); 0: as many as the trainer's default
  Count micro_batches = 0;  ///< that are generated together; 0: those of a step (steps_per_generation)
  Count iterations = 1;     ///< how often each of them is trained on
  Count rows_at_once = 64;  ///< PPO: generated and scored at a time (local_rollout_forward_batch_size)
  RolloutEngine engine = RolloutEngine::kTransformers;
  double share = 0.3;          ///< of the card's memory that vLLM on it takes
  bool sleeps = false;         ///< which it gives back while the model trains
  Bytes reserved = 0;          ///< the same in bytes, where the card is known
  bool judged = true;          ///< of pairs: a reward model on the card scores them; else functions do
  bool gathers = true;         ///< ZeRO-3 gathers all weights at once for generate() (ds3_gather_for_generation)
  bool taught = false;         ///< what a teacher predicts is part of what an answer earns (ms-swift's OPD-RL)
  std::optional<Dtype> judge;  ///< dtype of a reward model's weights, where it is not the model's
  Count features = 0;  ///< layers whose states in a frozen model answers are scored by (ebft.feature_layers); 0: none

  bool operator==(const Rollout&) const = default;
  std::partial_ordering operator<=>(const Rollout&) const = default;
};

/// What a student is compared with, as TRL's GKDConfig says it (trl 1.9 experimental/gkd/gkd_config.py).
struct Distillation {
  double student_share = 0.5;  ///< of the micro-batches, those that the student generates (lmbda)
  double beta = 0.5;           ///< 0: the teacher's divergence alone, 1: the student's; between: of both from the mean
  std::optional<Dtype> teacher;  ///< dtype of the teacher's weights, where it is not the student's

  bool operator==(const Distillation&) const = default;
  std::partial_ordering operator<=>(const Distillation&) const = default;
};

/// Evaluation between training steps, as transformers' Trainer runs it.
struct Evaluation {
  Count micro_batch_size = 0;  ///< samples per forward; 0: there is none
  bool keeps_logits = false;   ///< each batch's logits stay on the card until evaluation ends
  Count samples = 0;           ///< of the evaluation set, where its logits stay; 0: unknown
  bool generates = false;      ///< before each forward the model generates from the batch (predict_with_generate)
  Count new_tokens = 0;        ///< that it generates for a row; 0: as many as a row of the labels has
  Count beams = 1;             ///< rows that generation keeps for each sample

  bool operator==(const Evaluation&) const = default;
  std::partial_ordering operator<=>(const Evaluation&) const = default;
};

/// What waits in host memory, or beyond it.
struct Offload {
  bool optimizer = false, parameters = false, gradients = false;
  bool states_on_disk = false, weights_on_disk = false;  ///< ZeRO-Infinity: those of the former two on NVMe
  bool pinned = true;                                    ///< DeepSpeed's pin_memory
  Count state_buffers = 4, weight_buffers = 5;           ///< what passes through the host on its way to the disk
  Count weight_buffer_size = 100'000'000;                ///< elements of one
  Count max_in_cpu = 1'000'000'000;                      ///< elements of weights that stay in host memory nevertheless
  bool activations = false;                              ///< all that autograd saves
  double optimizer_share = 1.0;                          ///< of what the optimizer steps, that it steps on the host

  bool operator==(const Offload&) const = default;
  std::partial_ordering operator<=>(const Offload&) const = default;
};

/// Quantisation-aware training, as Axolotl's `qat` says it.
struct Qat {
  FakeQuant weights = FakeQuant::kNone, activations = FakeQuant::kNone;  ///< of linear layers; activations are inputs
  Count group_size = 32;                                                 ///< a weight's elements that share a scale
  bool embeddings = false;                                               ///< the token table, too

  bool is_used() const { return weights != FakeQuant::kNone; }
  bool operator==(const Qat&) const = default;
  std::partial_ordering operator<=>(const Qat&) const = default;
};

/// GPUs that see other rows each.
struct DataParallel {
  Count degree = 1;                      ///< GPUs; 1: it is not used
  bool gradient_as_bucket_view = false;  ///< DDP: gradients are parts of the buckets, not copied into them
  double bucket_cap_mb = 25.0;           ///< DDP: MiB of gradients that are reduced together
  Sharding sharding = Sharding::kNone;
  Count rank = -1;           ///< ZeRO-1 and -2: the answer is about this one; −1: the one with the token table
  bool one_process = false;  ///< nn.DataParallel instead of DistributedDataParallel
  Count replicas = 1;        ///< groups of GPUs that hold all shards each
  Count per_node = 8;        ///< GPUs that share a host
  Fsdp fsdp;
  Zero zero;

  bool is_used() const { return degree > 1; }
  bool is_sharded() const { return is_used() && sharding != Sharding::kNone; }
  bool is_replicated() const { return is_used() && sharding == Sharding::kNone && !one_process; }
  bool is_one_process() const { return is_used() && one_process; }
  Count shards() const { return degree / replicas; }
  bool operator==(const DataParallel&) const = default;
  std::partial_ordering operator<=>(const DataParallel&) const = default;
};

/// GPUs that divide heads, feed-forward and vocabulary: torch's parallelize_module by torchtitan's plan, or
/// transformers' own tp_plan="auto".
struct TensorParallel {
  Count degree = 1;       ///< GPUs; 1: it is not used
  bool sequence = false;  ///< between those, each of them has a part of the sequence
  bool loss = false;      ///< the loss is taken of divided logits
  bool hooks = false;  ///< tp_plan: layers of narrower plain weights, whose hooks sum up; vocabulary and loss are whole

  bool is_used() const { return degree > 1; }
  bool has_dtensors() const { return is_used() && !hooks; }
  bool operator==(const TensorParallel&) const = default;
  std::partial_ordering operator<=>(const TensorParallel&) const = default;
};

/// In which order torch.distributed.pipelining runs micro-batches; or accelerate's device_map: one process, whose GPUs
/// wait for one another.
enum class PipelineSchedule : std::uint8_t { k1F1B, kGPipe, kInterleaved, kDeviceMap, kZeroBubble, kZeroBubbleV };

/// GPUs that have some of the layers each.
struct Pipeline {
  /// A module and all in it, and the GPU that device_map puts it on.
  struct Place {
    std::string module;
    std::int16_t card = 0;
    bool operator==(const Place&) const = default;
    std::partial_ordering operator<=>(const Place&) const = default;
  };
  Count stages = 1;         ///< GPUs; 1: it is not used
  Count chunks = 1;         ///< stretches of layers that each of them has
  Count micro_batches = 1;  ///< that a step's rows are cut into
  Count rank = -1;          ///< the answer is about this one; −1: the one that needs most
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  std::vector<Count> layout;  ///< layers of each stage; empty: as equal as they come
  bool counts_ends = false;   ///< then with token table, and norm with head, as a layer each
  Count table = 0;            ///< device_map: the GPU that has the token table
  Count head = -1;            ///< and the one with the head; −1: the last
  Count norm = -1;            ///< and the one with the last norm; −1: that of the head
  Count rotary = -1;          ///< and the one that makes the rotary tables; −1: that of the head
  std::vector<Place> places;  ///< and of all modules

  bool is_used() const { return stages > 1; }
  /// The GPU of the module of that full name.
  std::int16_t card_of(std::string_view module) const;
  /// Backwards are cut in two: what the gradient of a stage's input needs, and later what its weights' need.
  bool is_cut() const { return schedule >= PipelineSchedule::kZeroBubble; }
  /// Several chunks of layers on each GPU.
  bool has_chunks() const { return schedule == PipelineSchedule::kInterleaved || is_cut(); }
  bool is_device_map() const { return is_used() && schedule == PipelineSchedule::kDeviceMap; }
  bool operator==(const Pipeline&) const = default;
  std::partial_ordering operator<=>(const Pipeline&) const = default;
};

/// What computes Megatron-Core's cross entropy (cross_entropy_fusion_impl).
enum class MegatronLoss : std::uint8_t { kNone, kNative, kTransformerEngine };

/// Settings of Megatron-Core.
struct Megatron {
  bool local_layers = false;    ///< its own layers instead of Transformer Engine's
  bool fuses_gradients = true;  ///< gradient_accumulation_fusion: weights' gradients go to their buffer at once
  MegatronLoss loss = MegatronLoss::kNone;

  bool operator==(const Megatron&) const = default;
  std::partial_ordering operator<=>(const Megatron&) const = default;
};

/// What a model's name says of how its weights are stored, which decides what adapters beside them would be.
enum class NameSays {
  kNothing,      ///< nothing, or what nothing trains beside: the base is taken as it is
  kQlora,        ///< bitsandbytes' 4 bits: adapters would be QLoRA
  kOtherPacking  ///< GPTQ, AWQ, 8 bits
};

/// Functions that take the place of PEFT's LoRA layers, several of them at a time (Axolotl's lora_mlp_kernel and so
/// on).
struct LoraKernels {
  bool mlp = false;        ///< gate, up and down
  bool qkv = false;        ///< q, k and v
  bool o = false;          ///< the attention's output
  bool embedding = false;  ///< the token table

  bool any() const { return mlp || qkv || o || embedding; }
  bool operator==(const LoraKernels&) const = default;
  std::partial_ordering operator<=>(const LoraKernels&) const = default;
};

/// What a second replay takes for true, to find an end of the range.
struct Assumptions {
  bool convolution_workspaces = false;  ///< cuDNN's, as large as were measured
  bool other_padding = false;           ///< a row's last eighth is padding, and pictures, all of one size, have no mask

  bool operator==(const Assumptions&) const = default;
  std::partial_ordering operator<=>(const Assumptions&) const = default;
};

/// How the model is trained, as each GPU sees it. All defaults are those of the contract.
struct TrainingJob {
  Method method = Method::kFull;
  Adapter adapter;                     ///< read when method is lora or qlora
  Quantization quantization;           ///< read when method is qlora
  std::vector<std::string> freeze;     ///< module-name patterns that are not trained
  std::vector<std::string> trainable;  ///< patterns that are, whatever `freeze` says; without that, nothing else is
  Recipe recipe;
  std::optional<Dtype> stored;        ///< of the checkpoint's weights, where its config says
  Count micro_batch_size = 1;         ///< B
  Count sequence_length = 2048;       ///< S
  Count decoder_sequence_length = 0;  ///< target length of encoder–decoders; 0 = S
  double audio_seconds = 0.0;         ///< of a recording; 0 = what the family's models take
  Count gradient_accumulation_steps = 1;
  Count images_per_sample = 0;              ///< of models that see; 0: text alone
  Count video_frames = 0;                   ///< of the video in each sample, in place of pictures
  Count image_height = 0, image_width = 0;  ///< pixels; 0: the model's own
  Count image_tiles = 0;                    ///< that a picture is cut into; 0: as the model cuts one of that size
  Vae vae = Vae::kCached;                   ///< of diffusion models
  bool text_encoders = false;               ///< these are on the card, too, and encode in every step
  bool trained_text_encoders = false;       ///< and are trained: what that takes is not counted
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
  LowRank low_rank;                                  ///< read where the optimizer projects gradients
  double max_grad_norm = 1.0;                        ///< 0 = no clipping
  double neftune_noise_alpha = 0.0;                  ///< noise on the token table's rows; 0: none
  double label_smoothing = 0.0;         ///< the Trainer's share of all words; 0: the model computes its own loss
  bool keeps_states_of_frozen = false;  ///< what is frozen had its turn: its optimizer's states stay
  bool optimizer_in_backward = false;
  Float8 float8 = Float8::kNone;  ///< products of linear layers in 8-bit floats
  Qat qat;
  Loss loss = Loss::kDefault;
  bool liger_rms_norm = false, liger_swiglu = false, liger_rope = false;  ///< Liger kernels in use
  LoraKernels lora_kernels;
  bool fused_attention = false;  ///< Axolotl's fused_attn_kernel: norms over heads and rotations by one kernel
  Preference preference = Preference::kNone;
  Reference reference = Reference::kCopy;  ///< read where the preference needs one
  Rollout rollout;                         ///< read where it generates
  Distillation distillation;               ///< read where a teacher is there
  Evaluation evaluation;
  bool compiled = false;      ///< torch.compile: torchtitan's is modelled, for others' the code as it is stands in
  bool selective_op = false;  ///< torchtitan's policy per operation, between full checkpointing and none
  std::vector<std::string> stand_ins;       ///< what is not modelled itself, and what is answered in its place
  std::vector<std::string> not_counted;     ///< what moves memory and is not modelled, as files and people say it
  NameSays name_says = NameSays::kNothing;  ///< of the base's weights, where the job trains them itself
  bool keep_outputs = false;                ///< a hand-written loop holds `outputs` through backward
  bool outputs_stay = false;         ///< and until the next forward is through, with all that their graph still holds
  bool outputs_to_fp32 = true;       ///< accelerate converts the outputs under autocast
  bool zero_grad_to_none = true;     ///< torch ≥ 2.0
  bool expandable_segments = false;  ///< allocator setting
  DataParallel data_parallel;
  TensorParallel tensor;
  Pipeline pipeline;
  Count context = 1;           ///< GPUs that have a part of every sequence each
  Count expert = 1;            ///< GPUs, among the data-parallel ones, that divide the experts of a mixture
  Count expert_tensor = 0;     ///< GPUs that divide each expert; 0: as many as divide the other matrices
  bool deterministic = false;  ///< CUBLAS_WORKSPACE_CONFIG=:4096:8, as torch's deterministic algorithms want it
  Megatron megatron;           ///< read where Megatron-Core runs the step
  Offload offload;
  Framework framework;
  int compute_capability = 80;      ///< of the GPU that runs it; decides kernels and workspaces
  Bytes misc_overhead = 0;          ///< overrides.misc_overhead_gib
  Assumptions assumptions;          ///< of the replay, not of the job: no request states them
  double activations_factor = 1.0;  ///< a calibration's, for code that differs from the sources; 1: none

  /// PEFT is used.
  bool has_adapter() const { return method == Method::kLora || method == Method::kQlora; }
  /// FSDP 1 lets go of what is frozen as the inputs of its module have their gradients.
  bool frees_frozen_units_by_inputs() const {
    return has_adapter() && !is_megatron() && data_parallel.is_sharded() && data_parallel.sharding == Sharding::kFsdp1;
  }
  /// LoRA's first factors are trained: peft 0.18 optimizers/lorafa.py create_lorafa_optimizer freezes them.
  bool trains_first_factors() const { return optimizer != "lorafa"; }
  /// Parameters are kept from training by their names.
  bool freezes_by_name() const { return !freeze.empty() || !trainable.empty(); }
  /// The loss is computed of the logits that the model returns, which is handed no labels.
  bool has_outer_loss() const { return preference != Preference::kNone || label_smoothing > 0.0; }
  /// Answers are generated between its steps.
  bool generates() const { return tidemark::generates(preference); }
  /// A model scores the answers, and a second one of its kind, trained beside the policy, predicts what they earn.
  bool has_critic() const { return preference == Preference::kPpo; }
  /// Each micro-batch is of pairs that the model generated just before.
  bool generates_pairs() const { return preference == Preference::kOnlineDpo; }
  /// A reward model on the card scores the answers.
  bool has_judge() const { return has_critic() || (generates_pairs() && rollout.judged); }
  /// The loss is of what a second model of its own predicts of the same tokens.
  bool distils() const { return preference == Preference::kGkd; }
  /// Or that model scores generated answers.
  bool has_teacher() const { return distils() || (preference == Preference::kGrpo && rollout.taught); }
  /// The same, or a student or a policy does so before its micro-batches.
  bool rolls_out() const { return generates() || generates_pairs() || (distils() && distillation.student_share > 0.0); }
  /// Tokens of an answer: the sequence begins with a prompt.
  Count answer_length() const { return std::max<Count>(1, std::min(rollout.answer, sequence_length - 1)); }
  /// Micro-batches whose answers are generated together.
  Count generated_together() const {
    return rollout.micro_batches > 0 ? rollout.micro_batches : gradient_accumulation_steps;
  }
  /// Micro-batches from one generation to the next.
  Count generates_every() const { return generated_together() * rollout.iterations; }
  /// Tokens that a learned prompt puts before each sample's.
  Count virtual_tokens() const { return has_adapter() && adapter.has_prompt() ? adapter.num_virtual_tokens : 0; }
  /// Keys and values that come before those of a sample's tokens (prefix tuning).
  Count prefix_length() const {
    return has_adapter() && adapter.kind == AdapterKind::kPrefixTuning ? adapter.num_virtual_tokens : 0;
  }
  /// All GPUs of the job.
  Count gpus() const {
    return data_parallel.degree * tensor.degree * pipeline.stages * context * (divides_experts_alone() ? expert : 1);
  }
  /// transformers' own expert parallelism: GPUs that see the same batch, and have a part of all experts each. Elsewhere
  /// the GPUs that divide experts are some of the data-parallel ones.
  bool divides_experts_alone() const { return expert > 1 && !is_megatron() && !data_parallel.is_sharded(); }
  /// Routed experts lie in host memory and are computed there.
  bool has_experts_on_host() const { return experts >= ExpertsKernel::kHostBf16; }
  /// DeepSpeed's engine runs the model.
  bool runs_deepspeed() const {
    return data_parallel.is_sharded() && data_parallel.sharding >= Sharding::kZero1 && !is_megatron();
  }
  /// Megatron-Core runs the step, with its own code of the model; or what it was, with DeepSpeed's engine.
  bool is_megatron() const { return framework.name == "megatron" || is_megatron_deepspeed(); }
  /// BigScience's fork of Megatron-LM and DeepSpeed.
  bool is_megatron_deepspeed() const { return framework.name == "megatron-deepspeed"; }
  bool operator==(const TrainingJob&) const = default;
  std::partial_ordering operator<=>(const TrainingJob&) const = default;
};

}  // namespace tidemark
