// Which sharded jobs are modelled.
#include <algorithm>
#include <string>

#include "core/job/defaults.hpp"
#include "core/job/mixed_precision.hpp"
#include "core/plan/fully_shard.hpp"
#include "core/plan/main_grads.hpp"
#include "core/plan/sharded.hpp"

namespace tidemark {
namespace {

void refuse(Issues& issues, std::string_view path, std::string message, std::string_view suggestion = {}) {
  issues.push_back(
      {"UNSUPPORTED_VALUE", Severity::kError, std::string{path}, std::move(message), std::string{suggestion}});
}

// Optimizers whose states and steps are alike on a part of a parameter.
bool works_on_parts(std::string_view optimizer) {
  for (const std::string_view name : {"adamw_torch", "adamw_torch_fused", "sgd", "sgd_momentum"}) {
    if (optimizer == name) return true;
  }
  return false;
}

void check_optimizer(const TrainingJob& job, Issues& issues) {
  const std::string_view name = job.optimizer, source = find_optimizer(job.optimizer)->source;
  const bool bitsandbytes = source.starts_with("bitsandbytes"), torchao = source.starts_with("torchao");
  const bool others = name == "adagrad" || name == "rmsprop" || name == "adafactor";
  if (!works_on_parts(name) && !bitsandbytes && !torchao && !others) {
    refuse(issues, "/optimizer",
           "On parts of parameters torch's AdamW, SGD, Adagrad and RMSprop, Adafactor, bitsandbytes' and torchao's "
           "optimizers are modelled.",
           "adamw_torch_fused");
  } else if (job.data_parallel.sharding == Sharding::kFsdp2 &&
             (bitsandbytes || name == "adamw_torch_4bit" || name == "adafactor")) {
    // Tried with bitsandbytes 0.50.2, torchao 0.18, transformers 5.12 and torch 2.14: "got mixed torch.Tensor and
    // DTensor"; "wrong number of dimensions".
    refuse(issues, "/optimizer",
           name == "adamw_torch_4bit"
               ? "torchao's 4-bit step fails on FSDP 2's DTensors (\"wrong number of dimensions\")."
           : bitsandbytes ? "FSDP 2's parameters are DTensors, and bitsandbytes' step fails on them (\"got mixed "
                            "torch.Tensor and DTensor\"); FSDP 1 has plain tensors."
                          : "FSDP 2's parameters are DTensors, and Adafactor's step fails on them (\"got mixed "
                            "torch.Tensor and DTensor\"); FSDP 1 has plain tensors.",
           "adamw_torch_8bit");
  }
  // DeepSpeed 0.19.8 runtime/engine.py: _configure_optimizer. (accelerate makes torch's AdamW a DeepSpeedCPUAdam.)
  const Sharding how = job.data_parallel.sharding;
  const bool zero = how == Sharding::kZero1 || how == Sharding::kZero2 || how == Sharding::kZero3;
  if (zero && job.offload.optimizer && name != "adamw_torch" && name != "adamw_torch_fused") {
    issues.push_back({"FORCED_OPTIMIZER", Severity::kWarning, "/optimizer",
                      "On the host DeepSpeed asks for its own Adam, and raises an error for another optimizer unless "
                      "its configuration says \"zero_force_ds_cpu_optimizer\": false.",
                      "adamw_torch"});
  }
}

void check_mesh(const DataParallel& how, Issues& issues) {
  if (how.degree % how.replicas != 0 || how.shards() < 2) {
    refuse(issues, "/parallelism/fsdp_options/replicate",
           "parallelism.data counts all GPUs: it is replicate times the number of GPUs that divide the model, two at "
           "least.");
  }
  const Count k = how.fsdp.reshard_to;
  if (k > 0 && (k == 1 || how.shards() % k != 0)) {
    refuse(issues, "/parallelism/reshard_after_forward",
           "fully_shard takes a divisor of the number of GPUs, larger than one.", "true");
  }
}

// transformers 5.12 and 5.24 integrations/deepspeed.py: trainer_config_finalize fills "auto" in from `hidden_size`,
// `hidden_sizes` or those of `text_config`. Configurations whose parts are named otherwise have neither.
void check_auto_sizes(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const Zero& zero = job.data_parallel.zero;
  const bool third = job.data_parallel.sharding == Sharding::kZero3;
  const bool open = zero.reduce_bucket <= 0 || (third && (zero.prefetch_bucket <= 0 || zero.persistence_threshold < 0));
  if (!zero.hf_auto || !open || architecture.facts.says_width) return;
  refuse(issues, "/parallelism/zero/hf_auto",
         "The Trainer's \"auto\" sizes want a hidden_size, which this model's configuration lacks (ValueError): state "
         "them.",
         "false");
}

// DeepSpeed's engine runs the model in its own dtype; the parts have fp32 master weights.
void check_zero(const TrainingJob& job, Issues& issues) {
  const Recipe& recipe = job.recipe;
  const bool wide = recipe.master_weights == Dtype::kFp32 && recipe.optimizer_states == Dtype::kFp32;
  if (!is_half(recipe.weights) || recipe.autocast || recipe.gradients != recipe.weights || !wide) {
    refuse(issues, "/precision",
           "ZeRO is modelled with 16-bit weights and gradients, fp32 master weights and states, without autocast.",
           "deepspeed_bf16");
  }
  const bool third = job.data_parallel.sharding == Sharding::kZero3;
  if (!third && !job.pipeline.is_used() && job.data_parallel.rank >= job.data_parallel.degree) {
    refuse(issues, "/parallelism/rank", "GPUs count from 0 to parallelism.data - 1.");
  }
  if (third && job.method == Method::kQlora && job.quantization.bits != 4) {
    refuse(issues, "/quantization/bits", "Under ZeRO-3 packed weights of 4 bits are modelled.", "4");
  }
  if (third && job.has_adapter() && job.adapter.use_dora && job.checkpointing != Checkpointing::kNone) {
    refuse(issues, "/adapter/use_dora", "DoRA under ZeRO-3 is modelled without checkpointing.", "false");
  }
  const bool some_layers = job.checkpointing == Checkpointing::kEvery;
  if (third && (some_layers || job.checkpointing == Checkpointing::kSelectiveCoreAttention)) {
    refuse(issues, "/gradient_checkpointing", "ZeRO-3 is modelled with every layer checkpointed, or none.", "full");
  }
  // runtime/zero/partitioned_param_coordinator.py: update_recompute_parameters (DeepSpeed's pull request 8148).
  if (third && job.has_adapter() && job.use_reentrant && job.checkpointing != Checkpointing::kNone) {
    const bool keeps = job.data_parallel.zero.keeps_frozen;
    issues.push_back({keeps ? "FROZEN_STAYS" : "FROZEN_LET_GO", Severity::kWarning, "/use_reentrant",
                      keeps ? "DeepSpeed from 0.19.3 on keeps what is frozen gathered from a re-entrant checkpoint's "
                              "recomputation to the end of backward: all of the base lies on each GPU then. Older "
                              "releases (parallelism.zero.version) let it go and need less; so do checkpoints that "
                              "are not re-entrant."
                            : "DeepSpeed before 0.19.3 is taken, which lets go of frozen weights as backward goes on. "
                              "Later releases (parallelism.zero.version) keep all of them gathered behind re-entrant "
                              "checkpoints, and need that much more.",
                      keeps && job.preference == Preference::kNone ? "false" : ""});
  }
  const Offload& offload = job.offload;
  if (!third && (offload.parameters || offload.gradients)) {
    refuse(issues, "/offload", "ZeRO-1 and -2 offload the optimizer alone.", "none");
  }
  // swap_tensor/utils.py SwapBufferManager.allocate: none are given where there are too few.
  constexpr Count kAdamBuffers = 4;
  if (offload.states_on_disk && offload.state_buffers < kAdamBuffers && job.optimizer.starts_with("adamw")) {
    refuse(issues, "/offload/optimizer_buffer_count",
           "DeepSpeed fails: a weight, its gradient and Adam's two moments pass through a buffer each.", "4");
  }
  if (job.data_parallel.replicas > 1) {
    refuse(issues, "/parallelism/fsdp_options/replicate", "Replicas of all parts are FSDP's.");
  }
}

void check_method(const TrainingJob& job, Issues& issues) {
  const bool packed = job.method == Method::kQlora;
  // What packs weights in words of 16 bits gathers them so.
  const bool alike = mixed_precision(job).gathered.value_or(job.recipe.weights) == job.recipe.weights;
  if (packed && (job.quantization.bits != 4 || !alike || !is_half(job.recipe.weights))) {
    refuse(issues, "/method",
           "Sharded QLoRA is modelled with 4-bit weights in words of 16 bits, gathered as they are: \"pure_bf16\" or "
           "\"bf16_amp\".",
           "pure_bf16");
  }
  // torch 2.14 _flat_param.py _validate_tensors_to_flatten; _fsdp_param.py init_dtype_attrs casts what is no integer.
  const Dtype words = job.quantization.storage.value_or(job.recipe.weights);
  const bool flat = job.data_parallel.sharding == Sharding::kFsdp1;
  if (packed && words != job.recipe.weights && (flat || (words != Dtype::kUint8 && mixed_precision(job).gathered))) {
    refuse(issues, "/quantization/quant_storage",
           flat ? "FSDP 1 flattens packed weights with others of their unit: quant_storage is the weights' dtype."
                : "FSDP 2 would cast packed words to the dtype that it gathers in: quant_storage is that, or uint8.",
           name_of(job.recipe.weights));
  }
  // accelerate 1.14 utils/fsdp_utils.py fsdp2_prepare_model: incompatible_params4bit.
  if (packed && !flat && words == Dtype::kUint8 && fsdp_groups(job) == FsdpGroups::kAccelerate) {
    issues.push_back(
        {"WHOLE_WEIGHTS", Severity::kWarning, "/quantization/quant_storage",
         "accelerate leaves 4-bit weights in words of uint8 out of FSDP 2: each GPU keeps all of them. Set "
         "\"quant_storage\" to the weights' dtype, so that they are divided.",
         std::string{name_of(job.recipe.weights)}});
  }
  if (job.has_adapter() && job.adapter.use_dora && flat && job.data_parallel.fsdp.trained_leaves) {
    refuse(
        issues, "/adapter/use_dora",
        "DoRA asks for lora_A's shape outside of its forward, where a unit of its own is a flat part: PEFT's forward "
        "fails (\"tuple index out of range\").",
        "false");
  }
  if (job.data_parallel.fsdp.groups == FsdpGroups::kSeparate && job.has_adapter()) {
    refuse(issues, "/parallelism/fsdp_options/groups", "Units of their own are modelled for full training.", "root");
  }
}

// accelerate 1.15 utils/dataclasses.py: FullyShardedDataParallelPlugin.set_auto_wrap_policy, of FSDP 1 and 2.
void check_wrapped_classes(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  if (!wraps_named_classes(job)) return;
  const NoSplit named = architecture.facts.no_split;
  const auto assume = [&issues](const char* what) {
    issues.push_back({"ASSUMED_VALUE", Severity::kWarning, "/parallelism/fsdp", what, ""});
  };
  if (named == NoSplit::kAbsentToo) {
    assume(
        "Of the classes that transformers names for this model's units (_no_split_modules) some are not in it, and "
        "accelerate fails (\"Could not find the transformer layer class\") unless "
        "fsdp_transformer_layer_cls_to_wrap names its layers: that is taken to be set, for a tower's layers, too.");
  }
  if (named == NoSplit::kOtherParts) {
    assume(
        "Of this class transformers names other parts than its layers (_no_split_modules: pieces of a "
        "layer, stages, or a tower as a whole): fsdp_transformer_layer_cls_to_wrap is taken to name the "
        "layers.");
  }
  if (named == NoSplit::kEmbeddings) {
    assume(
        "Of this class transformers names the embeddings beside the layers (_no_split_modules), on which "
        "FSDP 2 by accelerate from 1.14 on fails (\"Cannot concatenate overlapping meshes\"): "
        "fsdp_transformer_layer_cls_to_wrap is taken to name the layers alone.");
  }
  const bool flat = job.data_parallel.sharding == Sharding::kFsdp1;
  if (flat && (named == NoSplit::kNone || named == NoSplit::kNoneButSaid)) {
    assume(
        "transformers names no layers of this class (_no_split_modules): "
        "fsdp_transformer_layer_cls_to_wrap is taken to name them. Without it FSDP makes one unit of the "
        "whole model, which each GPU holds from the first forward to the end of backward.");
  }
  if (named != NoSplit::kNotTower) return;
  assume(flat ? "Of this class transformers names the language model's layers alone (_no_split_modules): "
                "fsdp_transformer_layer_cls_to_wrap is taken to name the tower's, too. Without it the root's "
                "unit has them, which is whole longer."
              : "Of this class transformers names the language model's layers alone (_no_split_modules), so "
                "that accelerate leaves the tower's layers with the root's unit, which is whole longer; "
                "fsdp_transformer_layer_cls_to_wrap names them, too.");
}

// Units as accelerate from 1.14 on makes them (utils/fsdp_utils.py: fsdp2_prepare_model); what fails was tried with
// torch 2.14.
void check_units(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  constexpr std::string_view kPath = "/parallelism/fsdp_options/groups";
  if (wraps_no_layers(architecture, job)) {
    issues.push_back({"WHOLE_UNIT", Severity::kWarning, std::string{kPath},
                      "transformers names no layers of this class (_no_split_modules), so that accelerate makes one "
                      "unit of all of them, which is whole from the first forward to the end of backward; "
                      "fsdp_transformer_layer_cls_to_wrap names them, \"root\" here means that.",
                      "root"});
  }
  if (fsdp_groups(job) != FsdpGroups::kAccelerate) return;
  if (!architecture.facts.input_embeddings) {
    refuse(
        issues, std::string{kPath},
        "accelerate from 1.14 on asks get_input_embeddings() of what FSDP 2 divides, which this class cannot answer: "
        "it fails with a NotImplementedError. \"root\" is what 1.13 did.",
        "root");
    return;
  }
  if (architecture.facts.no_split == NoSplit::kNoneButSaid) {
    issues.push_back(
        {"ASSUMED_VALUE", Severity::kWarning, std::string{kPath},
         "transformers names no layers of this class (_no_split_modules): fsdp_transformer_layer_cls_to_wrap "
         "is taken to name them. Without it accelerate makes one unit of all of them, which is whole from "
         "the first forward to the end of backward.",
         ""});
  }
  const bool fused = job.loss == Loss::kLiger || job.loss == Loss::kCutCrossEntropy;
  if (fused && job.has_adapter() && !architecture.tie_word_embeddings) {
    refuse(
        issues, "/loss",
        "Of PEFT's model accelerate from 1.14 on makes the head alone a unit, which is gathered as its module runs; a "
        "fused loss takes its weight without that, and fails (\"got mixed torch.Tensor and DTensor\").",
        "default");
  }
  if (shares_among_units(architecture)) {
    issues.push_back(
        {"ASSUMED_VALUE", Severity::kWarning, std::string{kPath},
         "Modules of this class share a parameter (a token table, a head's bias) that accelerate 1.14 and 1.15 "
         "put into several units: from torch 2.13 on that fails (\"shared with a parameter already managed "
         "by another FSDP group\"). The figure is that of one unit for all that lies outside the layers.",
         "root"});
  } else if (architecture.tie_word_embeddings) {
    issues.push_back({"TIED_UNITS", Severity::kNote, std::string{kPath},
                      "The head is tied to the token table: accelerate 1.14.0 fails on that from torch 2.13 on; 1.15 "
                      "trains it, and the figure is 1.15's.",
                      ""});
  }
}

// One flat tensor for each unit: its parameters are alike.
void check_flat(const TrainingJob& job, Issues& issues) {
  const bool adapters = job.has_adapter();
  if (adapters && !job.data_parallel.fsdp.trained_leaves && job.adapter.dtype != job.recipe.weights) {
    refuse(
        issues, "/parallelism/fsdp_options/wrap",
        "FSDP 1 flattens a unit's parameters into one tensor, so adapters of another dtype than the weights need units "
        "of their own.",
        "peft");
  }
  // Of what is frozen by its name core/step/module_plan.cpp knows more.
  if (!job.data_parallel.fsdp.use_orig_params && adapters && !job.data_parallel.fsdp.trained_leaves) {
    refuse(issues, "/parallelism/fsdp_options/use_orig_params", std::string{kOneFlatTensor}, "true");
  }
  // torch 2.14 _flat_param.py _validate_tensors_to_flatten; trl 1.9 experimental/utils.py: is_sharded_qlora.
  if (job.method == Method::kQlora && job.quantization.prepare_kbit != PrepareKbit::kOff) {
    issues.push_back({"IGNORED_OPTION", Severity::kWarning, "/quantization/prepare_kbit",
                      "FSDP 1 does not flatten fp32 norms with packed words: prepare_model_for_kbit_training is left "
                      "out, as TRL leaves it out.",
                      "false"});
  }
  if (job.data_parallel.fsdp.groups == FsdpGroups::kSeparate || job.data_parallel.fsdp.reshard_to > 0) {
    refuse(issues, "/parallelism/fsdp_options", "Units of their own and smaller meshes are FSDP 2's.");
  }
}

// Elsewhere than under Megatron-Core a GPU's part of the sequence is answered as if it were all
// (core/job/defaults.cpp).
void check_context(const TrainingJob& job, Issues& issues) {
  if (job.context == 1) return;
  if (job.sequence_length % (job.context * (job.tensor.sequence ? job.tensor.degree : 1)) != 0) {
    refuse(issues, "/parallelism/context",
           "parallelism.context, times .tensor with sequence parallelism, must divide the sequence length.");
  }
}

// torchtitan 0.2 distributed/parallel_dims.py seq_len_divisor, which the parallelize.py of each of its models asserts.
void check_length(const TrainingJob& job, Issues& issues) {
  const Count divisor = 2 * job.tensor.degree * job.context;
  if (job.framework.name != "torchtitan" || job.sequence_length % divisor == 0) return;
  refuse(issues, "/sequence_length",
         "torchtitan wants a length that twice the GPUs of tensor and context parallelism divide: here a multiple of " +
             std::to_string(divisor) + ".",
         std::to_string(std::max(divisor, job.sequence_length / divisor * divisor)));
}

// torchtitan 0.2 distributed/parallel_dims.py; what the other GPUs send is not known.
void check_dispatch(const TrainingJob& job, Issues& issues) {
  if (job.data_parallel.shards() % job.expert != 0) {
    refuse(issues, "/parallelism/expert",
           "The GPUs that divide experts are some of those that divide the model: parallelism.expert must divide "
           "parallelism.data.");
  }
  issues.push_back(
      {"ASSUMED_ROUTING", Severity::kNote, "/moe/load_imbalance",
       "As many tokens are taken to come to this GPU's experts as it sends to all: the GPUs' routers choose "
       "evenly. moe.load_imbalance states how many times its share the busiest expert gets.",
       ""});
}

// transformers 5.12 integrations/tensor_parallel.py and the configurations' base_model_ep_plan; the Trainer tells
// accelerate of such GPUs as tensor-parallel ones, which get no DistributedDataParallel around them.
void check_experts(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (job.expert == 1) return;
  constexpr std::string_view kExpert = "/parallelism/expert";
  if (a.experts.count % job.expert != 0) {
    refuse(issues, kExpert,
           "parallelism.expert must divide the model's " + std::to_string(a.experts.count) + " experts.", "1");
  }
  if (job.framework.name == "torchtitan") return check_dispatch(job, issues);
  if (job.data_parallel.degree > 1 || job.tensor.is_used() || job.pipeline.is_used() || job.context > 1) {
    refuse(issues, kExpert,
           "Expert parallelism is modelled of Megatron-Core, of torchtitan with FSDP 2, and of transformers "
           "(DistributedConfig("
           "enable_expert_parallel=True)), whose GPUs share a batch without data, tensor or pipeline parallelism.",
           "1");
    return;
  }
  if (a.model_type != "qwen3_moe" && a.model_type != "gpt_oss") {
    refuse(issues, kExpert,
           "transformers' expert parallelism is modelled of Qwen3-MoE and GPT-OSS. Mixtral's, DeepSeek's and most "
           "others' configurations have no plan "
           "for it (base_model_ep_plan): every GPU would keep all experts.",
           "1");
    return;
  }
  if (!job.framework.at_least(5, 0) || job.method == Method::kQlora || job.preference != Preference::kNone) {
    refuse(issues, kExpert,
           "transformers' expert parallelism is modelled from version 5 on, without packed weights and preferences.",
           "1");
  }
  // modeling_qwen3_moe.py Qwen3MoeExperts.forward, modeling_gpt_oss.py GptOssExperts.forward: others' rows have the
  // index num_experts, which one_hot(num_classes=num_experts) does not take.
  if (job.experts == ExpertsKernel::kEager) {
    refuse(issues, "/moe/implementation",
           "Under expert parallelism the loop over experts fails (\"Class values must be smaller than num_classes\").",
           "grouped_mm");
  }
}

// transformers 5.12 trainer.py: _wrap_model.
void check_one_process(const TrainingJob& job, Issues& issues) {
  constexpr std::string_view kPath = "/parallelism/data_parallel";
  if (job.data_parallel.sharding != Sharding::kNone || job.gpus() != job.data_parallel.degree) {
    refuse(issues, kPath, "nn.DataParallel is one process with whole models: what divides them needs a process each.",
           "ddp");
  }
  if (job.method == Method::kQlora) {
    refuse(issues, kPath,
           "The Trainer leaves packed models out of nn.DataParallel: the first GPU runs the rows of all. Write "
           "parallelism.data 1 and micro_batch_size times the GPUs.",
           "ddp");
  }
  if (job.optimizer_in_backward || job.preference != Preference::kNone || job.loss == Loss::kChunked) {
    refuse(issues, kPath,
           "Under nn.DataParallel a model's own loss is modelled, and an optimizer that steps behind backward.", "ddp");
  }
}

/// ms-swift 3602360a megatron/trainers: what it trains beside language models.
void check_megatron_task(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const bool known = job.preference == Preference::kNone || job.preference == Preference::kDpo ||
                     job.preference == Preference::kKto || job.preference == Preference::kReward ||
                     job.preference == Preference::kGrpo;
  if (!known || (has_reference(job.preference) && job.reference == Reference::kPrecomputed)) {
    refuse(issues, "/task",
           "Under Megatron-Core, DPO, KTO, reward models and GRPO are modelled of what learns from preferences, as "
           "ms-swift's trainers do them.");
  }
  const bool of_tokens = job.preference == Preference::kNone || job.preference == Preference::kGrpo;
  const bool plain = of_tokens && architecture.head == Head::kCausalLm;
  if (!plain && job.pipeline.is_used()) {
    refuse(
        issues, "/parallelism/pipeline",
        "Pipelines of Megatron-Core are modelled for language models' own loss and GRPO, not for preferences, scores "
        "and embeddings.",
        "1");
  }
}

}  // namespace

void check_sharding(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const Offload& offload = job.offload;
  if ((offload.states_on_disk || offload.weights_on_disk) && job.data_parallel.sharding != Sharding::kZero3) {
    refuse(issues, "/offload", "ZeRO-3 alone has a disk (DeepSpeed's ZeRO-Infinity).", "cpu");
  }
  if (job.is_megatron()) {
    check_megatron_task(architecture, job, issues);
    return check_megatron(architecture, job, issues);
  }
  if (job.offload.optimizer && job.offload.optimizer_share < 1.0) {
    refuse(
        issues, "/offload/optimizer_fraction",
        "An optimizer of which the host has a part is modelled under Megatron-Core alone (optimizer_offload_fraction).",
        "1.0");
  }
  check_context(job, issues);
  check_length(job, issues);
  check_experts(architecture, job, issues);
  if (job.expert_tensor > 1) {
    refuse(issues, "/parallelism/expert_tensor", "Experts divided by tensor parallelism are Megatron-Core's.", "1");
  }
  const DataParallel& how = job.data_parallel;
  if (how.is_one_process()) check_one_process(job, issues);
  const bool offloads = job.offload.optimizer || job.offload.parameters || job.offload.gradients;
  if (!how.is_sharded()) {
    if (how.sharding != Sharding::kNone) {
      issues.push_back({"IGNORED_OPTION", Severity::kWarning, "/parallelism/data",
                        "FSDP and ZeRO divide the model among several GPUs: with one they are taken for nothing.", ""});
    }
    if (job.recipe.name == "fsdp_bf16") {
      refuse(issues, "/precision", "fsdp_bf16 is FSDP's: it needs parallelism.fsdp and several GPUs.", "amp_bf16");
    }
    if (offloads) refuse(issues, "/offload", "Offloading is modelled where several GPUs divide the model (FSDP 2).");
    return;
  }
  const bool zero = how.sharding >= Sharding::kZero1;
  if (zero) {
    check_zero(job, issues);
    check_auto_sizes(architecture, job, issues);
  } else {
    check_mesh(how, issues);
    check_method(job, issues);
    check_wrapped_classes(architecture, job, issues);
    if (how.sharding == Sharding::kFsdp1) check_flat(job, issues);
    if (how.sharding == Sharding::kFsdp2) check_units(architecture, job, issues);
  }
  check_optimizer(job, issues);
  if (job.optimizer_in_backward || !job.zero_grad_to_none) {
    refuse(issues, "/parallelism/fsdp",
           "An optimizer in backward and gradients that stay are not modelled where GPUs divide the model.");
  }
  if (!zero && offloads && !(job.offload.optimizer && job.offload.parameters && job.offload.gradients)) {
    refuse(issues, "/offload", "FSDP offloads optimizer, parameters and gradients together (CPUOffloadPolicy).");
  }
}

}  // namespace tidemark
