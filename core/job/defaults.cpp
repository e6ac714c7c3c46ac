#include "core/job/defaults.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "core/job/foreign_names.hpp"
#include "core/job/framework.hpp"
#include "core/job/mixed_precision.hpp"
#include "core/job/recipe.hpp"

namespace tidemark {
namespace {

/// In which dtype a framework loads the weights when nobody says.
enum class Loading : std::uint8_t {
  kTransformers,    ///< as from_pretrained does: fp32 in 4.x, the checkpoint's dtype since 5.0
  kHalf,            ///< bf16, or fp16 under fp16=True
  kCheckpointHalf,  ///< the checkpoint's dtype, fp32 ones as half
  kTrainedWide,     ///< half, but what is trained becomes fp32
  kFullWide,        ///< the checkpoint's dtype beside adapters, else fp32; nobody autocasts
};

/// Who runs the step.
enum class Loop : std::uint8_t {
  kTrainer,     ///< transformers' Trainer: drops the outputs before backward, accelerate makes them fp32
  kByHand,      ///< outputs = model(**batch); outputs.loss.backward(): they live through backward
  kAccelerate,  ///< by hand, with a model that accelerate has prepared
};

enum class Reentrant : std::uint8_t { kTransformers, kAlways, kNever };

/// What a framework does where its user says nothing.
struct Habits {
  std::string_view name;
  Loading loading = Loading::kTransformers;
  Loop loop = Loop::kTrainer;
  Reentrant reentrant = Reentrant::kTransformers;
  bool stood_for = false;  ///< its own code of the model is not modelled: transformers' stands in
};

constexpr Habits kHabits[] = {
    {"transformers"},
    // torch.optim.AdamW and torch.autocast around the modelling code of transformers.
    {"pytorch", Loading::kTransformers, Loop::kByHand},
    // accelerate utils/operations.py: ConvertOutputsToFp32 around forward.
    {"accelerate", Loading::kTransformers, Loop::kAccelerate},
    // TRL 1.16 trainer/sft_trainer.py: use_reentrant False unless set, dtype left to from_pretrained.
    {"trl", Loading::kTransformers, Loop::kTrainer, Reentrant::kNever},
    // axolotl utils/config/__init__.py: bf16 "auto" makes torch_dtype bf16, use_reentrant True when unset.
    {"axolotl", Loading::kHalf, Loop::kTrainer, Reentrant::kAlways},
    // LLaMA-Factory model/adapter.py: trainable parameters are cast to fp32; hparams/model_args.py: use_reentrant_gc.
    {"llama_factory", Loading::kTrainedWide, Loop::kTrainer, Reentrant::kAlways},
    // LLaMA-Factory ff6d4d12 src/llamafactory/v1/core/model_engine.py: _init_model; core/base_trainer.py: __init__.
    {"llama_factory_v1", Loading::kFullWide, Loop::kByHand, Reentrant::kNever},
    // ms-swift arguments/sft_args.py: torch_dtype of the checkpoint, fp32 becomes bf16; bf16 and fp16 flags follow it.
    {"ms_swift", Loading::kCheckpointHalf},
    // autotrain trainers/clm: AutoModelForCausalLM.from_pretrained without a dtype, transformers' Trainer.
    {"autotrain"},
    // Megatron-LM training/arguments.py: bf16 weights; tensor_parallel/random.py: checkpoint is a CheckpointFunction.
    {"megatron", Loading::kHalf, Loop::kTrainer, Reentrant::kAlways},
    {"megatron-deepspeed", Loading::kHalf, Loop::kTrainer, Reentrant::kAlways},
    // Loops of their own around models of their own; outputs live through backward in each. torchtune 0.6
    // recipes/full_finetune_single_device.py: _loss_step; litgpt 0.5 finetune/lora.py: fit; torchtitan 0.2 train.py:
    // forward_backward_step; Automodel recipes/llm/train_ft.py: _forward_backward_step.
    {"torchtune", Loading::kHalf, Loop::kByHand, Reentrant::kNever, true},
    {"torchtitan", Loading::kTransformers, Loop::kByHand, Reentrant::kNever, true},
    {"litgpt", Loading::kHalf, Loop::kByHand, Reentrant::kNever, true},
    {"nemo-automodel", Loading::kHalf, Loop::kByHand, Reentrant::kNever, true},
    // unsloth 2026.8.19 models/llama.py: from_pretrained(dtype=None), inside transformers' Trainer.
    {"unsloth", Loading::kHalf, Loop::kTrainer, Reentrant::kTransformers, true},
    // sd-scripts 48d368f train_network.py: process_batch, whose prediction ends with it.
    {"sd_scripts", Loading::kTransformers, Loop::kByHand},
    // Hetu-Galvatron core/runtime/parallel.py: wrap_data_parallel.
    {"galvatron", Loading::kHalf, Loop::kByHand, Reentrant::kNever, true},
};

const Habits* habits_of(std::string_view name) {
  for (const Habits& habits : kHabits) {
    if (habits.name == name) return &habits;
  }
  return nullptr;
}

struct Chosen {
  Dtype weights = Dtype::kFp32;
  std::string why;  ///< of the weights
};

std::string release_of(const Framework& framework) {
  return std::to_string(framework.major) + "." + std::to_string(framework.minor);
}

/// from_pretrained without a dtype. 4.x: torch's default dtype, and fp16 beside bitsandbytes' weights
/// (transformers 4.57 quantizers/quantizer_bnb_4bit.py: update_dtype). 5.x: dtype="auto" (modeling_utils.py:
/// _get_dtype).
Chosen transformers_loads(const TrainingJob& job, std::optional<Dtype> checkpoint) {
  const std::string release = "transformers " + release_of(job.framework);
  if (!job.framework.at_least(5, 0)) {
    if (job.method == Method::kQlora) return {Dtype::kFp16, release + " loads fp16 beside quantised weights"};
    return {Dtype::kFp32, release + " loads fp32 unless told"};
  }
  if (!checkpoint) return {Dtype::kFp32, "the configuration states no dtype, as those of fp32 checkpoints"};
  return {*checkpoint, release + " loads the checkpoint's dtype"};
}

Chosen loaded(const Habits& habits, const TrainingJob& job, std::optional<Dtype> checkpoint, Dtype half) {
  const bool adapters = job.method == Method::kLora || job.method == Method::kQlora;
  switch (habits.loading) {
    case Loading::kTransformers:
      return transformers_loads(job, checkpoint);
    case Loading::kHalf:
      return {half, std::string{habits.name} + " loads " + std::string{name_of(half)}};
    case Loading::kCheckpointHalf:
      if (checkpoint && *checkpoint != Dtype::kFp32) return {*checkpoint, "ms_swift loads the checkpoint's dtype"};
      return {half, "ms_swift loads fp32 checkpoints in half precision"};
    case Loading::kTrainedWide:
      if (adapters) return {half, "llama_factory loads " + std::string{name_of(half)} + " and casts what is trained"};
      // LLaMA-Factory model/adapter.py: init_adapter.
      if (job.optimizer == "badam") return {half, "llama_factory casts nothing beside BAdam"};
      return {Dtype::kFp32, "llama_factory casts what is trained to fp32"};
    case Loading::kFullWide:
      if (adapters) return {checkpoint.value_or(Dtype::kFp32), "LLaMA-Factory's own loop loads the checkpoint's dtype"};
      return {Dtype::kFp32, "LLaMA-Factory's own loop trains fp32 weights"};
  }
  return {};
}

/// The flag of mixed precision: as stated, else bf16. It does not follow the card, so that a card's figures are the
/// same whichever others are asked about beside it; check_kernels() warns of cards that only emulate bf16. unsloth
/// alone asks the card (unsloth 2026.10.9 models/_utils.py: SUPPORTS_BFLOAT16; models/rl.py: use_bf16).
std::optional<Dtype> autocast_of(const LeftOpen& open, const TrainingJob& job) {
  const bool has_bf16 = job.compute_capability >= 80;  // Ampere
  if (job.framework.name == "unsloth" && !has_bf16 && !open.bf16 && !open.fp16) return Dtype::kFp16;
  if (open.bf16.value_or(false)) return Dtype::kBf16;
  if (open.fp16.value_or(false)) return Dtype::kFp16;
  if (open.bf16 || open.fp16) return std::nullopt;
  return Dtype::kBf16;
}

Recipe recipe_of(Dtype weights, std::optional<Dtype> autocast) {
  Recipe recipe;
  recipe.weights = recipe.gradients = recipe.optimizer_states = weights;
  recipe.autocast = autocast;
  recipe.name = "custom";
  take_name(recipe);
  return recipe;
}

// transformers 5.12 quantizers/quantizer_awq.py: AwqQuantizer.update_dtype.
void settle_packed(const LeftOpen& open, TrainingJob& job, Issues& issues) {
  if (job.method != Method::kQlora || job.quantization.is_bitsandbytes()) return;
  if (job.quantization.quant_type == QuantType::kAwq && job.recipe.weights == Dtype::kBf16) {
    job.recipe = recipe_of(Dtype::kFp16, job.recipe.autocast);
    issues.push_back({"CHANGED_PRECISION", Severity::kWarning, "/precision",
                      "transformers loads models that AWQ has packed in fp16, whatever is asked for.", ""});
  }
  // hqq's compute_dtype, which whoever packs names: in another one than autocast's backward fails.
  const std::optional<Dtype> autocast = job.recipe.autocast;
  const bool mixed = autocast && job.recipe.weights != *autocast;
  if (job.quantization.quant_type == QuantType::kHqq && open.precision && mixed) {
    job.recipe = recipe_of(*autocast, autocast);
    issues.push_back({"CHANGED_PRECISION", Severity::kNote, "/precision",
                      "Of a model that HQQ packs all weights are taken in autocast's dtype: elsewhere backward fails.",
                      ""});
  }
  if (job.gpus() > 1) {
    job.stand_ins.emplace_back("packed weights on several GPUs, answered without what DDP copies of their buffers");
  }
}

/// Mixed precision as accelerate has it under FSDP 2: its policy for fully_shard alone. prepare_model, which autocasts
/// and converts outputs, is not called, and what is trained becomes fp32. Source: accelerate 1.14 accelerator.py:
/// _prepare_fsdp2; utils/fsdp_utils.py: fsdp2_prepare_model; utils/dataclasses.py: set_mixed_precision.
void take_mixed_precision(Dtype weights, Dtype half, TrainingJob& job) {
  Fsdp& fsdp = job.data_parallel.fsdp;
  if (!fsdp.param) fsdp.param = half;
  if (!fsdp.reduce) fsdp.reduce = half;
  const bool adapters = job.method == Method::kLora || job.method == Method::kQlora;
  job.recipe = adapters ? recipe_of(weights, std::nullopt) : *named_recipe("fsdp_bf16");
}

/// LLaMA-Factory ff6d4d12 src/llamafactory/v1: bf16, true unless stated, is a word for
/// plugins/trainer_plugins/distributed/fsdp2.py alone (get_mp_policy).
void settle_full_wide(std::optional<Dtype> half, TrainingJob& job, Chosen& chosen) {
  job.recipe = recipe_of(chosen.weights, std::nullopt);
  const DataParallel& data = job.data_parallel;
  if (!half || !data.is_sharded() || data.sharding != Sharding::kFsdp2) {
    chosen.why += "; without FSDP 2 nothing autocasts";
    return;
  }
  Fsdp& fsdp = job.data_parallel.fsdp;
  if (!fsdp.param) fsdp.param = half;
  if (!fsdp.reduce) fsdp.reduce = Dtype::kFp32;
  if (chosen.weights == Dtype::kFp32) job.recipe = *named_recipe("fsdp_bf16");
  chosen.why += "; under FSDP 2 it gathers " + std::string{name_of(*half)};
}

void settle_precision(const LeftOpen& open, const Habits& habits, std::optional<Dtype> checkpoint, TrainingJob& job,
                      Issues& issues) {
  const std::optional<Dtype> autocast = autocast_of(open, job);
  const Dtype half = autocast.value_or(Dtype::kBf16);
  Chosen chosen = loaded(habits, job, checkpoint, half);
  if (open.dtype) chosen = {*open.dtype, "dtype is stated"};
  const bool adapters = job.method == Method::kLora || job.method == Method::kQlora;
  if (autocast == Dtype::kFp16 && !adapters && !open.dtype && chosen.weights != Dtype::kFp32) {
    // torch/amp/grad_scaler.py: "Attempting to unscale FP16 gradients."
    chosen = {Dtype::kFp32, "the loss scaling of fp16 refuses 16-bit gradients"};
  }
  job.recipe = recipe_of(chosen.weights, autocast);
  // LLaMA-Factory model/adapter.py: _setup_freeze_tuning; v1/plugins/model_plugins/peft.py: get_freeze_model.
  const bool by_factory = habits.loading == Loading::kTrainedWide || habits.loading == Loading::kFullWide;
  if (by_factory && (job.method == Method::kFreeze || job.freezes_by_name()) && chosen.weights == Dtype::kFp32) {
    job.stand_ins.emplace_back("weights of another dtype where they are not trained, answered by those of the recipe");
  }
  if (habits.loading == Loading::kFullWide) {
    settle_full_wide(autocast, job, chosen);
  } else if (job.is_megatron()) {
    job.recipe = *named_recipe("megatron_bf16");
    chosen.why = "Megatron-LM trains in bf16 with fp32 gradients and master weights";
  } else if (job.data_parallel.is_sharded() && job.data_parallel.sharding >= Sharding::kZero1) {
    // transformers 5.12 integrations/deepspeed.py: bf16.enabled and fp16.enabled follow the Trainer's flags.
    job.recipe = *named_recipe(half == Dtype::kBf16 ? "deepspeed_bf16" : "deepspeed_fp16");
    chosen.why = "DeepSpeed's engine runs the model in 16 bits";
  } else if (autocast && habits.loop != Loop::kByHand && job.data_parallel.is_sharded() &&
             job.data_parallel.sharding == Sharding::kFsdp2) {
    take_mixed_precision(chosen.weights, half, job);
    if (!adapters) chosen.why = "accelerate makes trained weights fp32";
    chosen.why += "; under FSDP 2 it gathers " + std::string{name_of(half)} + " and does not autocast";
  }
  std::string message =
      "Precision is left to the framework: " + in_words(job.recipe) + " (" + job.recipe.name + "), as " + chosen.why;
  if (!open.bf16 && !open.fp16 && habits.loading != Loading::kFullWide) message += ", under bf16=True";
  issues.push_back({"CHOSEN_PRECISION", Severity::kNote, "/precision", message + ".", ""});
}

constexpr const char* kFullRows = "padded or packed rows under Megatron-Core, answered by full rows of one length";
constexpr const char* kFullDividedRows =
    "padded or packed rows under tensor parallelism, answered by full rows of one length";

/// trl 1.16 trainer/sft_trainer.py: DataCollatorForLanguageModeling with padding_free: one row of the samples of a
/// batch, told apart by their positions, and no mask.
void join_samples(TrainingJob& job) {
  job.padding = false;
  if (job.is_megatron() || job.tensor.has_dtensors()) {
    job.stand_ins.emplace_back(job.is_megatron() ? kFullRows : kFullDividedRows);
  } else if (job.preference == Preference::kNone) {
    job.packing = true;
    job.sequence_length *= job.micro_batch_size;
    job.micro_batch_size = 1;
  } else {
    job.stand_ins.emplace_back("pairs joined into one row, answered by rows of their own without a mask");
  }
}

/// ms-swift 3602360a swift/dataset/packing.py: PackingDataset: as many samples to a row as have packing_length tokens,
/// chosen and rejected answers together, which varlen kernels tell apart.
void pack_answers(TrainingJob& job) {
  const bool pairs = job.preference == Preference::kDpo || has_single_answers(job.preference);
  if (!job.packing || (!pairs && !job.distils())) return;
  job.packing = job.padding = false;
  if (pairs) job.sequence_length = (job.sequence_length + 1) / 2;
  job.stand_ins.emplace_back("packed answers, answered by as many tokens in rows of their own without a mask");
}

/// sentence-transformers 5.1 losses/MultipleNegativesRankingLoss.py: forward: the model runs once for each text of a
/// sample, and all that backward needs of each run waits until the loss.
void gather_texts(Count texts, TrainingJob& job) {
  job.micro_batch_size *= texts;
  job.stand_ins.emplace_back(
      "sentence-transformers' runs through the model, pooling and loss, answered by one run with a row for each text");
}

/// torchtitan 0.2: run_train.sh asks for expandable segments, multinode_trainer.slurm does not;
/// models/llama3/infra/parallelize.py: apply_fsdp.
void settle_torchtitan(const LeftOpen& open, TrainingJob& job) {
  constexpr int kExpandable = date_of(2024, 10, 22);  // a5e57e4a9
  constexpr int kGroups = date_of(2025, 7, 28);       // 83e694105
  const int date = job.framework.date > 0 ? job.framework.date : date_of(2100, 1, 1);
  const Count gpus = job.data_parallel.degree * job.tensor.degree * job.pipeline.stages;
  if (open.expandable_segments) {
    job.expandable_segments = date >= kExpandable && gpus <= job.data_parallel.per_node;
  }
  // parallelize.py: apply_tp; parallelism.disable_loss_parallel is off.
  if (open.sequence_parallel && job.tensor.is_used()) job.tensor.sequence = true;
  if (open.loss_parallel && job.tensor.is_used()) job.tensor.loss = true;
  Fsdp& fsdp = job.data_parallel.fsdp;
  // Adapters are stood for, around one unit for all that lies outside the layers.
  if (open.fsdp_groups && date >= kGroups && !job.has_adapter()) fsdp.groups = FsdpGroups::kSeparate;
  if (open.reshard_last) fsdp.reshard_last = date >= kGroups;
  // distributed/pipeline_parallel.py: generate_llm_fqn_per_model_part counts embedding and head as a layer each.
  Pipeline& pipeline = job.pipeline;
  if (pipeline.schedule == PipelineSchedule::kInterleaved && pipeline.chunks == 1) pipeline.chunks = 2;
  pipeline.counts_ends = true;
}

/// accelerate 1.15 utils/fsdp_utils.py: fsdp2_prepare_model; before 1.14 (11 June 2026) fully_shard on the model got
/// reshard_after_forward as the layers did. It is settled whatever divides the model: advice may come to FSDP 2.
void settle_accelerate(const Habits& habits, TrainingJob& job, Issues& issues) {
  constexpr int kGroups = date_of(2026, 6, 11);
  // plugins/trainer_plugins/distributed/fsdp2.py prepare_model: what reshard_after_forward says is for the root, too.
  if (runs_llama_factory_v1(job)) job.data_parallel.fsdp.groups = FsdpGroups::kReshardedRoot;
  if (habits.loop == Loop::kByHand || job.is_megatron()) return;
  const Framework& framework = job.framework;
  const bool old = framework.date > 0 ? framework.date < kGroups : !framework.at_least(5, 0);
  DataParallel& data = job.data_parallel;
  data.fsdp.groups = old ? FsdpGroups::kReshardedRoot : FsdpGroups::kAccelerate;
  if (!data.is_sharded() || data.sharding != Sharding::kFsdp2 || fsdp_groups(job) == FsdpGroups::kRoot) return;
  issues.push_back(
      {"CHOSEN_UNITS", Severity::kNote, "/parallelism/fsdp_options/groups",
       old ? "FSDP 2's units are left to the framework: as accelerate until 1.13 makes them, token table, last "
             "norm and head are one unit, which is let go after forward as the layers are."
           : "FSDP 2's units are left to the framework: as accelerate makes them from 1.14 on, the token "
             "table is a unit of its own, and last norm with head another one, which stays whole after "
             "forward; a head that is tied to the table is one unit with it.",
       ""});
}

/// Autocast that a request states, where accelerate would not.
void leave_autocast(TrainingJob& job, Issues& issues) {
  if (!job.recipe.autocast || !is_divided_by_accelerate(job)) return;
  const Dtype half = *job.recipe.autocast;
  take_mixed_precision(job.recipe.weights, half, job);
  issues.push_back(
      {"NO_AUTOCAST", Severity::kWarning, "/precision",
       "Under FSDP 2 accelerate does not autocast: it makes trained weights fp32, gathers and reduces in " +
           std::string{name_of(half)} + ", and outputs stay as they are. The figures are those of " +
           in_words(job.recipe) + " (" + job.recipe.name +
           "); a loop of your own that autocasts is framework \"pytorch\".",
       ""});
}

/// Megatron-DeepSpeed (bigscience) megatron/model/transformer.py: unfused attention; DeepSpeed 0.7
/// runtime/bf16_optimizer.py adds gradients up in fp32, runtime/zero/stage_1_and_2.py keeps those of fp16 as they are.
void settle_megatron_deepspeed(TrainingJob& job) {
  job.megatron = {true, false, MegatronLoss::kNone};
  job.recipe.gradients = job.recipe.weights == Dtype::kBf16 ? Dtype::kFp32 : job.recipe.weights;
}

}  // namespace

bool is_stood_for(const Framework& framework) {
  const Habits* habits = habits_of(framework.name);
  return habits != nullptr && habits->stood_for;
}

bool is_divided_by_accelerate(const TrainingJob& job) {
  const Habits* habits = habits_of(job.framework.name);
  const DataParallel& how = job.data_parallel;
  if (habits != nullptr && habits->loop == Loop::kByHand) return false;
  if (job.is_megatron() || !how.is_sharded() || how.sharding != Sharding::kFsdp2) return false;
  const FsdpGroups groups = fsdp_groups(job);
  return groups == FsdpGroups::kAccelerate || groups == FsdpGroups::kReshardedRoot;
}

bool wraps_named_classes(const TrainingJob& job) {
  const Habits* habits = habits_of(job.framework.name);
  const DataParallel& how = job.data_parallel;
  if ((habits != nullptr && habits->loop == Loop::kByHand) || job.is_megatron() || !how.is_sharded()) return false;
  return how.sharding == Sharding::kFsdp2 ? is_divided_by_accelerate(job) : how.sharding == Sharding::kFsdp1;
}

// Of classes without _no_split_modules accelerate 1.15 utils/dataclasses.py (set_auto_wrap_policy) makes a policy that
// takes nothing.
bool wraps_no_layers(const Architecture& architecture, const TrainingJob& job) {
  return is_divided_by_accelerate(job) && architecture.facts.no_split == NoSplit::kNone;
}

Count unwrapped_layers(const Architecture& architecture, const TrainingJob& job) {
  if (wraps_no_layers(architecture, job)) return std::numeric_limits<Count>::max();
  // A wave's convolutions, which run ahead, are none of the layers that a class or a user names.
  const DataParallel& how = job.data_parallel;
  const bool over_wave = !architecture.conv_kernels.empty() && !architecture.conv_strides.empty();
  if (over_wave && how.is_sharded() && is_fsdp(how.sharding)) return static_cast<Count>(architecture.conv_dims.size());
  if (architecture.parts.empty() || !is_divided_by_accelerate(job)) return 0;
  if (architecture.facts.no_split != NoSplit::kNotTower) return 0;
  Count layers = 0;
  for (std::size_t i = architecture.num_decoder_layers > 0 ? 1 : 0; i < architecture.parts.size(); ++i) {
    const Architecture& tower = architecture.parts[i];
    if (tower.parts.empty()) layers += tower.num_layers;
    for (const Architecture& stage : tower.parts) layers += stage.num_layers;
  }
  return layers;
}

namespace {

/// The same of tensor parallelism. Beside weights in 16 bits autocast changes norms and softmax alone.
void stand_for_divided(TrainingJob& job) {
  if (job.padding || job.packing) {
    job.padding = job.packing = false;
    job.stand_ins.emplace_back(kFullDividedRows);
  }
  if (job.recipe.autocast && job.recipe.autocast == job.recipe.weights) {
    job.recipe.autocast.reset();
    job.stand_ins.emplace_back("autocast under tensor parallelism, answered without");
  }
  if (job.loss == Loss::kCutCrossEntropy) {
    job.stand_ins.emplace_back("a fused loss under tensor parallelism, answered by that of a GPU's part of the head");
  }
}

// trl 1.9 models/activation_offloading.py update_model_params notes weights before anything is wrapped. What FSDP
// gathers and ZeRO-1 and -2 make flat are others, and views of them, as Linear saves, go to the host as well; not from
// within checkpoints, but where they are re-entrant. DeepSpeed's Linear of stage 3 saves the parameter, which stays.
bool offloads_weights(const TrainingJob& job) {
  if (!job.offload.activations || !job.data_parallel.is_sharded()) return false;
  if (job.data_parallel.sharding == Sharding::kZero3) return false;
  return job.checkpointing != Checkpointing::kFull || job.use_reentrant;
}

/// What is not modelled in this company, and has a neighbour that is.
void stand_for_combinations(TrainingJob& job, Issues& issues) {
  if (job.is_megatron()) {
    const Sharding sharding = job.data_parallel.is_sharded() ? job.data_parallel.sharding : Sharding::kNone;
    if (sharding != Sharding::kNone && sharding != Sharding::kZero1) {
      job.stand_ins.emplace_back(
          "Megatron-Core's FSDP, answered by its distributed optimizer with parts of what FSDP divides, two layers' "
          "weights and one layer's gradients");
    }
    if (job.is_megatron_deepspeed()) settle_megatron_deepspeed(job);
    if (job.padding || job.packing) job.stand_ins.emplace_back(kFullRows);
    job.padding = job.packing = false;
    return;
  }
  DataParallel& data = job.data_parallel;
  Offload& offload = job.offload;
  const bool fsdp = is_fsdp(data.sharding);
  // CPUOffload(offload_params=True), CPUOffloadPolicy: what waits on the host is stepped there.
  if (fsdp && offload.parameters) offload.optimizer = offload.gradients = true;
  if (job.tensor.is_used() && data.is_sharded() && data.sharding == Sharding::kFsdp1) {
    data.sharding = Sharding::kFsdp2;
    data.fsdp.reshard_after_forward = !data.fsdp.keeps_gathered;
    job.stand_ins.emplace_back("FSDP 1 beside tensor parallelism, answered by FSDP 2");
  }
  if (job.pipeline.is_used() && job.pipeline.chunks == 1 && data.is_sharded() && data.sharding == Sharding::kZero1) {
    job.stand_ins.emplace_back("DeepSpeed's pipeline engine, answered by torch's schedule around ZeRO-1");
  }
  if (data.degree == 1 && data.sharding != Sharding::kNone && (offload.optimizer || offload.parameters)) {
    data.degree = 2;
    issues.push_back({"ASSUMED_GPUS", Severity::kNote, "/parallelism/data",
                      "What is sharded and offloaded runs on several GPUs: 2 are assumed. State parallelism.data.",
                      "2"});
  }
  if (offloads_weights(job)) {
    job.stand_ins.emplace_back("weights in host memory with the activations, answered by activations alone");
  }
  if (job.tensor.has_dtensors()) stand_for_divided(job);
  if (job.expert > 1 && data.sharding == Sharding::kFsdp2 && job.framework.name != "torchtitan") {
    data.degree = std::max(data.degree, job.expert);
    divide_experts_like_weights(job);
  }
  // Adapters are so small that their states decide nothing.
  const bool adapters = job.method == Method::kLora || job.method == Method::kQlora;
  if (data.is_sharded() && offload.optimizer && adapters && job.optimizer.rfind("paged_adamw", 0) == 0) {
    job.stand_ins.emplace_back(std::string{job.optimizer} +
                               " on parts of adapters, answered by torch's AdamW on the card");
    job.optimizer = "adamw_torch_fused";
  }
  if (job.generates() && (job.images_per_sample > 0 || job.video_frames > 0)) {
    job.stand_ins.emplace_back(
        "GRPO with pictures, answered by its parts as records of texts and of pictures have them");
  }
  if (job.distils() && (job.images_per_sample > 0 || job.video_frames > 0)) {
    job.stand_ins.emplace_back(
        "distillation with pictures, answered by the loop that records of texts have, with pictures in both models");
  }
  if (job.compiled && !is_stood_for(job.framework)) {
    job.stand_ins.emplace_back("torch.compile, answered by the code as it is, which as a rule keeps more");
  }
  if (job.preference != Preference::kNone && job.preference != Preference::kReward && job.loss != Loss::kDefault) {
    job.loss = Loss::kDefault;
    job.stand_ins.emplace_back("a fused loss of preferences, answered by that of all logits");
  }
  if (job.has_experts_on_host()) {
    job.stand_ins.emplace_back(
        "KTransformers' experts in host memory, answered by what its source leaves on the card, which no record holds");
  }
  if (job.has_teacher() && data.is_sharded()) {
    job.stand_ins.emplace_back("a teacher beside weights that GPUs divide, which no record holds");
  }
}

}  // namespace

void divide_experts_like_weights(TrainingJob& job) {
  if (job.expert == 1) return;
  job.expert = 1;
  job.stand_ins.emplace_back("expert parallelism, answered by GPUs that divide experts as they do all other weights");
}

bool runs_own_code(const TrainingJob& job) {
  return job.framework.name == "torchtitan" && (job.framework.date > 0 || !job.tensor.is_used());
}

void stand_in(TrainingJob& job) {
  // The records of tensor parallelism are of torchtitan's plan around the modules of transformers.
  if (job.framework.name != "torchtitan" || !job.tensor.is_used() || runs_own_code(job)) {
    const bool trains_by_trainer = job.framework.name == "unsloth";
    job.stand_ins.push_back(job.framework.name +
                            "'s step and its own code of the model, answered by transformers' code " +
                            (trains_by_trainer ? "with a loss that makes logits in chunks" : "in a loop of one's own"));
  }
  // A release of its own says nothing of transformers': the newest stands in.
  if (job.framework.major == 0) {
    const Framework newest;
    job.framework.major = newest.major;
    job.framework.minor = newest.minor;
  }
  ModuleChoice& targets = job.adapter.target_modules;
  const bool foreign = targets.kind == ModuleChoice::Kind::kNames && job.framework.name != "unsloth";
  if (foreign) targets.names = in_transformers_words(targets.names);
  if (targets.kind == ModuleChoice::Kind::kExpression && job.framework.name == "nemo-automodel") {
    // nemo_automodel 0.7 components/_peft/module_matcher.py: wildcard_match.
    std::string whole;
    for (const char letter : targets.expression) {
      if (letter == '*' && (whole.empty() || whole.back() != '.')) whole += '.';
      whole += letter;
    }
    targets.expression = std::move(whole);
  }
  if ((job.data_parallel.is_sharded() || job.tensor.has_dtensors()) && job.loss == Loss::kChunked) {
    job.loss = Loss::kDefault;
    job.stand_ins.emplace_back("a loss in chunks where GPUs divide the head, answered by that of all logits at once");
  }
}

// sd-scripts 48d368f library/sdxl_original_unet.py: USE_REENTRANT; library/original_unet.py: use_reentrant=False.
// diffusers 0.42 models/modeling_utils.py: _gradient_checkpointing_func is torch's, use_reentrant=False.
bool checkpoints_reentrantly(const Denoiser& denoiser, const TrainingJob& job) {
  return runs_sd_scripts(job) && denoiser.size_width > 0;
}

Dtype loaded_by_name(const TrainingJob& job, std::optional<Dtype> checkpoint) {
  const Habits* habits = habits_of(job.framework.name);
  if (habits != nullptr && habits->loading == Loading::kCheckpointHalf) {
    return loaded(*habits, job, checkpoint, job.recipe.autocast.value_or(Dtype::kBf16)).weights;
  }
  return job.framework.at_least(5, 0) ? checkpoint.value_or(Dtype::kFp32) : Dtype::kFp32;
}

bool precision_follows_method(const TrainingJob& job) {
  const Habits* habits = habits_of(job.framework.name);
  return !job.framework.at_least(5, 0) || (habits != nullptr && habits->loading == Loading::kTrainedWide);
}

std::optional<Dtype> checkpoint_dtype(const Value& config) {
  for (std::string_view key : {"dtype", "torch_dtype"}) {
    const Value* value = config.find(key);
    if (value == nullptr || !value->is_string()) continue;
    std::string_view word = value->string;
    if (word.substr(0, 6) == "torch.") word.remove_prefix(6);
    if (word == "bfloat16") return Dtype::kBf16;
    if (word == "float16") return Dtype::kFp16;
    if (word == "float32") return Dtype::kFp32;
  }
  const Value* text = config.find("text_config");
  if (text != nullptr && text->is_object()) return checkpoint_dtype(*text);
  return std::nullopt;
}

namespace {

/// trl 1.9 experimental/ppo/ppo_trainer.py: a loop and an Accelerator of its own, which TrainingArguments tell nothing.
void settle_policy(const LeftOpen& open, TrainingJob& job, Issues& issues) {
  job.max_grad_norm = 0.0;  // train() clips nothing
  if (open.precision && job.recipe.autocast && job.framework.at_least(5, 0)) {
    job.recipe = recipe_of(job.recipe.weights, std::nullopt);
    issues.push_back({"NO_AUTOCAST", Severity::kWarning, "/precision",
                      "PPOTrainer makes an Accelerator of its own, which bf16 and fp16 of its arguments do not reach: "
                      "it runs in " +
                          std::string{name_of(job.recipe.weights)} +
                          ". Where accelerate launch has --mixed_precision, say amp_bf16 or bf16_amp.",
                      ""});
  }
  if (job.checkpointing == Checkpointing::kNone) return;
  job.checkpointing = Checkpointing::kNone;
  issues.push_back({"IGNORED_OPTION", Severity::kWarning, "/gradient_checkpointing",
                    "PPOTrainer has a train() of its own, in which nobody switches checkpointing on.", "none"});
}

/// from_pretrained(tp_plan="auto"), which accelerate's ParallelismConfig(tp_size) asks for as well. A plan that says
/// what it does with the sequence or the loss is torch's parallelize_module.
void settle_tp_plan(const Habits& habits, TrainingJob& job) {
  TensorParallel& tensor = job.tensor;
  tensor.hooks = tensor.is_used() && !job.is_megatron() && !habits.stood_for && !job.pipeline.is_used();
  if (tensor.hooks && !job.framework.at_least(5, 0)) {
    job.stand_ins.emplace_back(
        "tp_plan of transformers 4, whose parts are DTensors, answered by that of transformers 5");
  }
}

}  // namespace

void settle_defaults(const LeftOpen& open, std::optional<Dtype> checkpoint, TrainingJob& job, Issues& issues) {
  const Habits* known = habits_of(job.framework.name);
  const Habits& habits = known != nullptr ? *known : kHabits[0];
  // accelerate 1.14 utils/dataclasses.py ParallelismConfig, torchtitan 0.2 distributed/parallel_dims.py: FSDP 2 divides
  // weights among all that share a sequence, too.
  DataParallel& data = job.data_parallel;
  // torchtitan 0.2 models/llama4/infra/parallelize.py: fully_shard wherever experts are divided.
  if (job.framework.name == "torchtitan" && job.expert > 1) {
    if (data.sharding == Sharding::kNone) data.sharding = Sharding::kFsdp2;
    if (data.degree == 1) data.degree = job.expert;
  }
  if (!job.is_megatron() && data.sharding == Sharding::kFsdp2) data.degree *= job.context;
  const bool own = runs_own_code(job);
  if (open.sequence_parallel && open.loss_parallel) settle_tp_plan(habits, job);
  // torchtitan's MixedPrecisionPolicy, Galvatron's MixedPrecision: the fp32 parts are the master weights.
  const Recipe& recipe = job.recipe;
  if (habits.stood_for && recipe.weights == Dtype::kBf16 && recipe.master_weights == Dtype::kFp32 && !recipe.autocast &&
      data.is_sharded() && data.sharding < Sharding::kZero1) {
    job.recipe = *named_recipe("fsdp_bf16");
  }
  // Vocabularies are divided up to the loss (Galvatron models/gpt_hf, Megatron's cross entropy).
  if (job.framework.name == "galvatron" && open.loss_parallel && job.tensor.is_used()) job.tensor.loss = true;
  if (own) {
    settle_torchtitan(open, job);
  } else if (habits.stood_for) {
    stand_in(job);
  }
  // Without sequence parallelism torch's optimizers meet DTensors beside plain norms.
  const bool whole = open.sequence_parallel && job.tensor.has_dtensors() && !job.tensor.sequence;
  if (whole && !own && !job.is_megatron() && !data.is_sharded()) {
    job.tensor.sequence = true;
    job.stand_ins.emplace_back(
        "a plan whose residual stream is whole, answered by torchtitan's with sequence parallelism");
  }
  // torchtitan 0.2 distributed/utils.py maybe_enable_amp: on one GPU autocast does what FSDP's policy does on several.
  if (habits.stood_for && !job.data_parallel.is_sharded() && job.recipe.name == "fsdp_bf16") {
    // Beside tensor parallelism or a pipeline there is none ("only supported when FSDP/HSDP/CP is enabled").
    job.recipe = *named_recipe(job.pipeline.is_used() ? "fp32" : "amp_bf16");
  }
  if (open.precision) {
    settle_precision(open, habits, checkpoint, job, issues);
  } else if (job.recipe.name == "custom") {
    take_name(job.recipe);
  }
  settle_packed(open, job, issues);
  if (data.is_one_process() && job.recipe.autocast && habits.loop == Loop::kTrainer) {
    job.recipe = recipe_of(job.recipe.weights, std::nullopt);
    issues.push_back(
        {"NO_AUTOCAST", Severity::kWarning, "/precision",
         "Under nn.DataParallel the Trainer leaves the model to nobody who would autocast (accelerate does "
         "elsewhere): bf16 and fp16 do nothing, and it runs in " +
             std::string{name_of(job.recipe.weights)} + ". Start it with torchrun or accelerate launch.",
         ""});
  }
  if (job.has_critic()) settle_policy(open, job, issues);
  // transformers 4.54 training_args.py: fused since torch 2.8, foreach before; torch.optim.AdamW by hand is foreach.
  if (open.optimizer) {
    const bool fused = habits.loop == Loop::kTrainer && job.framework.at_least(4, 54);
    job.optimizer = fused ? "adamw_torch_fused" : "adamw_torch";
  }
  stand_for_combinations(job, issues);
  if (open.fsdp_groups) {
    settle_accelerate(habits, job, issues);
  } else if (data.is_sharded() && data.sharding == Sharding::kFsdp2 && data.fsdp.groups != fsdp_groups(job)) {
    if (job.pipeline.is_used()) {
      issues.push_back(
          {"UNSUPPORTED_VALUE", Severity::kError, "/parallelism/fsdp_options/groups",
           "accelerate has no pipelines: there one unit holds what lies outside the layers, or torchtitan's "
           "two do (\"separate\").",
           "root"});
    } else {
      data.fsdp.groups = fsdp_groups(job);
      job.stand_ins.emplace_back(
          "accelerate's units beside tensor parallelism, answered by one unit of what lies outside the layers");
    }
  }
  leave_autocast(job, issues);
  if (job.context > 1 && !job.is_megatron()) {
    job.stand_ins.emplace_back(
        "context parallelism, answered by a GPU with its part of every sequence and without the keys and values that "
        "go "
        "round");
  }
  // Megatron-LM training/arguments.py, torch's schedules: several chunks of layers on a GPU are interleaved.
  if (job.pipeline.is_cut() && job.pipeline.chunks == 1) job.pipeline.chunks = 2;
  if (job.pipeline.chunks > 1 && !job.pipeline.is_cut()) job.pipeline.schedule = PipelineSchedule::kInterleaved;
  // torch 2.11 distributed/pipelining/schedules.py: Schedule1F1B refuses fewer micro-batches than there are stages.
  if (open.micro_batches && job.pipeline.is_used() && !job.pipeline.is_device_map()) {
    job.pipeline.micro_batches = job.pipeline.stages;
  }
  // torchtitan 0.2 distributed/fsdp.py get_fsdp_reshard_after_forward_policy: a pipeline would gather for each
  // micro-batch.
  if (job.pipeline.is_used() && open.reshard) data.fsdp.reshard_after_forward = false;
  // DeepSpeed 0.19.3 is of July 2026, transformers 5.0 of half a year before.
  if (open.deepspeed && !job.framework.at_least(5, 0)) data.zero.keeps_frozen = false;
  // transformers 4.57 modeling_utils.py: gradient_checkpointing_enable sets True; 5.0: False.
  if (open.use_reentrant) {
    job.use_reentrant = habits.reentrant == Reentrant::kAlways ||
                        (habits.reentrant == Reentrant::kTransformers && !job.framework.at_least(5, 0));
  }
  // TRL trainer/dpo_trainer.py: __init__: without adapters a copy, with them the model without.
  const bool adapters = job.method == Method::kLora || job.method == Method::kQlora;
  // transformers 5.12 trainer.py: _fsdp_qlora_plugin_updates takes PEFT's policy.
  if (open.fsdp_wrap) data.fsdp.trained_leaves = adapters;
  if (open.reference) {
    job.reference = adapters ? Reference::kAdapterOff : Reference::kCopy;
    // trl 1.9 trainer/{grpo,rloo}_trainer.py: __init__: with beta 0.0, GRPO's default, there is none. RLOO's is 0.05.
    const bool compares = open.compares.value_or(job.preference == Preference::kRloo);
    if (job.generates() && !job.has_critic() && !compares) job.reference = Reference::kNone;
  }
  // TRL 1.9 trainer/{dpo,kto,reward}_trainer.py: __init__: whatever is asked for (trl issue 2514).
  const bool forced = has_reference(job.preference) || job.preference == Preference::kReward;
  if (forced && adapters && data.is_sharded() && data.sharding == Sharding::kZero3) job.use_reentrant = true;
  // trl 1.9 models/utils.py disable_gradient_checkpointing: off where a reference or generated answers are scored, and
  // on again for all layers.
  const bool scores = job.rolls_out() || (has_reference(job.preference) && job.reference != Reference::kPrecomputed);
  if (scores && job.checkpointing == Checkpointing::kEvery) {
    job.checkpointing = Checkpointing::kFull;
    issues.push_back({"IGNORED_OPTION", Severity::kWarning, "/gradient_checkpointing/every",
                      "TRL's trainers switch checkpointing off while they score answers, and on again for every layer.",
                      "full"});
  }
  const bool again = job.use_reentrant && job.checkpointing != Checkpointing::kNone;
  if (adapters && again && !data.zero.keeps_frozen && data.is_sharded() && data.sharding == Sharding::kZero3) {
    job.stand_ins.emplace_back("DeepSpeed before 0.19.3, answered by 0.19.8 without what that keeps gathered");
  }
  // disable_dropout is True unless set, in all trainers of preferences but those that generate.
  const bool calm = !job.generates() || job.has_critic();
  if (job.preference != Preference::kNone && calm) job.adapter.lora_dropout = 0.0;
  if (open.keep_outputs) job.keep_outputs = habits.loop != Loop::kTrainer && !own && !runs_llama_factory_v1(job);
  // trl 1.9: its trainers hand their models to accelerate, which converts what they return.
  const bool converts = habits.loop != Loop::kByHand;
  if (converts && job.preference != Preference::kNone && !open.outputs_to_fp32 && !job.outputs_to_fp32) {
    issues.push_back({"IGNORED_OPTION", Severity::kWarning, "/outputs_to_fp32",
                      "TRL's trainers run under accelerate, which converts the outputs in any case.", "true"});
    job.outputs_to_fp32 = true;
  }
  if (open.outputs_to_fp32) job.outputs_to_fp32 = converts;
}

namespace {

void refuse(std::string_view path, std::string message, Issues& issues) {
  issues.push_back({"INVALID_VALUE", Severity::kError, std::string{path}, std::move(message), ""});
}

void warn_of_prompt(std::string message, Issues& issues) {
  issues.push_back({"IGNORED_OPTION", Severity::kWarning, "/max_prompt_length", std::move(message), ""});
}

/// trl 1.9 trainer/{grpo,rloo}_config.py: __post_init__.
void settle_groups(const Foreign& foreign, TrainingJob& job, Issues& issues) {
  Rollout& rollout = job.rollout;
  const bool by_whole = job.preference == Preference::kRloo;
  const std::string name = by_whole ? "RLOO" : "GRPO";
  if (rollout.per_prompt == 0) rollout.per_prompt = by_whole ? 2 : 8;
  const Count together = job.micro_batch_size * job.data_parallel.degree;
  if (foreign.generation_batch > 0) {
    if (rollout.micro_batches > 0) {
      refuse("/generation_batch_size", "TRL takes one of generation_batch_size and steps_per_generation.", issues);
    } else if (foreign.generation_batch % together != 0) {
      refuse("/generation_batch_size",
             "generation_batch_size must be a multiple of the " + std::to_string(together) +
                 " answers that all GPUs train on at a time.",
             issues);
    } else {
      rollout.micro_batches = foreign.generation_batch / together;
    }
  }
  const Count n = rollout.per_prompt;
  // A teacher's word for each token needs no others to compare with.
  if (n < 2 && !job.has_teacher())
    return refuse("/num_generations", name + " compares at least 2 answers of a prompt.", issues);
  if (together % n * (job.generated_together() % n) % n != 0) {
    issues.push_back({"INCOMPLETE_GROUPS", Severity::kWarning, "/num_generations",
                      name + "Trainer refuses this: the answers that are generated together (" +
                          std::to_string(together) + " of micro_batch_size times GPUs, " +
                          std::to_string(job.generated_together()) + " times) are no multiple of num_generations, " +
                          std::to_string(n) + ". The figures do not depend on it.",
                      ""});
  }
}

/// trl 1.9 experimental/gkd/gkd_trainer.py, online_dpo/online_dpo_trainer.py: training_step: each micro-batch has
/// answers of its own.
void settle_rollout(const Foreign& foreign, TrainingJob& job, Issues& issues) {
  Rollout& rollout = job.rollout;
  if (job.distils() || job.generates_pairs()) rollout.micro_batches = 1;
  if (job.generates() && !job.has_critic()) settle_groups(foreign, job, issues);
  if (foreign.prompt_length > 0) {
    const Count together = foreign.prompt_length + rollout.answer, stated = job.sequence_length;
    job.sequence_length = together;
    if (stated != together && stated != TrainingJob{}.sequence_length) {
      warn_of_prompt("max_prompt_length and max_completion_length, which are " + std::to_string(together) +
                         " tokens together, replace the " + std::to_string(stated) + " of sequence_length.",
                     issues);
    }
  }
}

}  // namespace

void settle_foreign(const Foreign& foreign, TrainingJob& job, Issues& issues) {
  if (job.rolls_out()) {
    settle_rollout(foreign, job, issues);
  } else if (foreign.prompt_length >= job.sequence_length && job.sequence_length > 0) {
    warn_of_prompt("A prompt of sequence_length tokens and more leaves none to the answer, which is cut there.",
                   issues);
  }
  pack_answers(job);
  if (foreign.padding_free) join_samples(job);
  job.micro_batch_size *= foreign.rows_per_sample;
  if (foreign.texts_per_sample > 1) gather_texts(foreign.texts_per_sample, job);
}

namespace {

/// {"quant_type": {"default": {"_type": "Int8WeightOnlyConfig", …}}}, or "int8_weight_only" until transformers 4.
bool is_int8_weight_only(const Value& own) {
  const Value* type = own.find("quant_type");
  if (type != nullptr && type->is_object()) type = type->find("default");
  if (type != nullptr && type->is_object()) type = type->find("_type");
  return type != nullptr && type->is_string() &&
         (type->string == "Int8WeightOnlyConfig" || type->string == "int8_weight_only");
}

}  // namespace

void settle_quantization(const Value& config, TrainingJob& job, Issues& issues) {
  const Value* own = config.find("quantization_config");
  if (own == nullptr || !own->is_object()) return;
  const auto flag = [&](std::string_view key) {
    const Value* value = own->find(key);
    return value != nullptr && value->is_bool() && value->boolean;
  };
  const auto word = [&](std::string_view key) {
    const Value* value = own->find(key);
    return value != nullptr && value->is_string() ? value->string : std::string{};
  };
  const auto number = [](const Value& from, std::string_view key, Count otherwise) {
    const Value* value = from.find(key);
    return value != nullptr && value->is_integer() ? static_cast<Count>(value->integer) : otherwise;
  };
  const std::string by = word("quant_method");
  // gpt-oss: its reader takes the experts as dequantised.
  if (by == "mxfp4") return;
  Quantization read;
  bool known = true;
  if (by == "gptq" || by == "awq") {
    read.quant_type = by == "gptq" ? QuantType::kGptq : QuantType::kAwq;
    read.bits = static_cast<int>(number(*own, "bits", 4));
    read.group_size = number(*own, "group_size", 128);
    read.desc_act = by == "gptq" && flag("desc_act");
  } else if (by == "hqq") {
    // transformers 4.57 utils/quantization_config.py: HqqConfig.to_dict has hqq's own words.
    read.quant_type = QuantType::kHqq;
    const Value* inner = own->find("quant_config");
    if (inner != nullptr && inner->is_object()) inner = inner->find("weight_quant_params");
    known = inner != nullptr && inner->is_object();
    if (known) {
      read.bits = static_cast<int>(number(*inner, "nbits", 4));
      read.group_size = number(*inner, "group_size", 64);
    }
  } else if (by == "torchao" || by == "quanto" || by == "aqlm") {
    const bool aqlm = by == "aqlm";
    read.quant_type = aqlm ? QuantType::kAqlm : by == "quanto" ? QuantType::kQuanto : QuantType::kTorchao;
    read.bits = aqlm ? 2 : 8;
    // transformers 5.12 utils/quantization_config.py: AqlmConfig, QuantoConfig; TorchAoConfig.to_dict
    known = aqlm             ? number(*own, "num_codebooks", 1) == 1 && number(*own, "nbits_per_codebook", 16) == 16
            : by == "quanto" ? word("weights") == "int8"
                             : is_int8_weight_only(*own);
  } else if (flag("load_in_4bit")) {
    read.quant_type = word("bnb_4bit_quant_type") == "nf4" ? QuantType::kNf4 : QuantType::kFp4;
  } else if (flag("load_in_8bit")) {
    read.quant_type = QuantType::kInt8;
    read.bits = 8;
  } else {
    known = false;
  }
  if (!known) {
    // transformers 5.12 quantizers/quantizer_finegrained_fp8.py: is_trainable.
    issues.push_back(
        {"UNSUPPORTED_OPTION", Severity::kError, "/config/quantization_config",
         "The checkpoint is quantised by \"" + by.substr(0, 40) + "\", " +
             (by == "fp8"
                  ? "beside which transformers trains nothing: load it dequantised, and leave out "
                    "quantization_config."
                  : "which is not modelled yet in that form: bitsandbytes, GPTQ, AWQ, HQQ, quanto and torchao of "
                    "8 bits, and AQLM of one codebook are."),
         ""});
    return;
  }
  if (job.method != Method::kLora && job.method != Method::kQlora) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/method",
                      "The checkpoint's weights are quantised and cannot be trained themselves: write \"method\": "
                      "\"qlora\".",
                      "qlora"});
    return;
  }
  read.double_quant = read.quant_type <= QuantType::kFp4 && flag("bnb_4bit_use_double_quant");
  hold_packed(read,
              {"CHOSEN_QUANTIZATION", Severity::kNote, "/config/quantization_config",
               "The weights are held as the checkpoint's quantization_config says.", ""},
              job, issues);
}

void hold_packed(Quantization packed, Issue said, TrainingJob& job, Issues& issues) {
  job.method = Method::kQlora;
  packed.prepare_kbit = job.quantization.prepare_kbit;
  packed.storage = job.quantization.storage;
  job.quantization = packed;
  issues.push_back(std::move(said));
}

std::string class_of(const Value& config, const Request& request, std::string_view otherwise) {
  constexpr std::string_view kHeads[][2] = {{"classification", "ForSequenceClassification"},
                                            {"token_classification", "ForTokenClassification"},
                                            {"prm", "ForTokenClassification"},
                                            {"question_answering", "ForQuestionAnswering"},
                                            {"reward", "ForSequenceClassification"},
                                            {"reranker", "ForSequenceClassification"},
                                            {"generative_reranker", "ForSequenceClassification"},
                                            {"embedding", "Model"},
                                            {"vision", "ForImageClassification"}};
  if (!request.class_name.empty()) return request.class_name;
  const Value* classes = config.find("architectures");
  const Value* of_diffusers = config.find("_class_name");
  std::string own{otherwise};
  if (of_diffusers != nullptr) own = of_diffusers->string;
  if (classes != nullptr && !classes->items.empty()) own = classes->items.front().string;
  if (own.empty()) return {};
  for (const auto& [task, head] : kHeads) {
    if (request.task != task) continue;
    // LlamaForCausalLM, GPT2LMHeadModel, BertModel: what stands before the head is the family's.
    const std::size_t end = std::min({own.find("For"), own.find("LMHead"), own.find("Model")});
    return own.substr(0, end) + std::string{head};
  }
  return {};
}

}  // namespace tidemark
