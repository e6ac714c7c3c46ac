#include "core/plan/main_grads.hpp"

#include <algorithm>

#include "core/families/megatron.hpp"
#include "core/plan/zero_sizes.hpp"

namespace tidemark {
namespace {

constexpr const char* kBuffer = "megatron_core 0.16.1 distributed/param_and_grad_buffer.py: _ParamAndGradBuffer";

}  // namespace

// shard_fp32_from_float16_groups: of each parameter what lies in this GPU's part of the buffer; all have as much, as
// parts are of equal size.
Count MainGrads::part_of(const Parameter& p) const {
  if (!job_.data_parallel.is_sharded() && job_.data_parallel.sharding != Sharding::kZero1) return p.shape.numel();
  // An expert's weights are on fewer GPUs than the others.
  const bool is_experts = std::string_view{p.module}.rfind("mlp.experts", 0) == 0;
  Count parts = job_.data_parallel.shards() * job_.context;
  if (is_experts) parts = parts * job_.tensor.degree / (job_.expert * gpus_of_expert(job_));
  return (p.shape.numel() + parts - 1) / parts;
}

bool MainGrads::steps_here() const {
  return !job_.offload.optimizer || job_.offload.optimizer_share < 1.0;
}

// HybridDeviceOptimizer sends parameters to the host one by one, until these are its share of all: here each is cut.
Count MainGrads::stepped_here(Count part) const {
  if (!job_.offload.optimizer) return part;
  return part - static_cast<Count>(job_.offload.optimizer_share * static_cast<double>(part));
}

// A gradient is added to its part of the buffer by a hook and dies (distributed_data_parallel.py:
// _make_backward_post_hook).
void MainGrads::declare(Parameter& p) {
  if (!p.requires_grad) return;  // distributed_data_parallel.py: no buffer, and no optimizer, has what is frozen
  const Scope in(tape_, p.module, kBuffer);
  const Count gradients = divides_gradients() ? part_of(p) : p.shape.numel();
  tape_.buffer("main_grad", gradients * size_of(job_.recipe.gradients), Category::kGradients);
  if (divides_weights()) p.storage_bytes = part_of(p) * size_of(p.dtype);
  if (job_.is_megatron_deepspeed() && job_.recipe.gradients != p.dtype) {
    tape_.buffer("grad", p.shape.numel() * size_of(p.dtype), Category::kGradients);
  }
  tape_.buffer("master weight", stepped_here(part_of(p)) * size_of(Dtype::kFp32), Category::kOptimizerStates);
}

bool MainGrads::divides_weights() const {
  const Sharding how = job_.data_parallel.sharding;
  return job_.data_parallel.is_sharded() && how != Sharding::kZero1 && how != Sharding::kZero2;
}

bool MainGrads::divides_gradients() const {
  return divides_weights() || (job_.data_parallel.is_sharded() && job_.data_parallel.sharding == Sharding::kZero2);
}

void MainGrads::keep_units() {
  Count outside = 0, largest = 0, layer = 0;
  std::int16_t instance = -1;
  for (const Parameter& p : tape_.parameters()) {
    if (p.instance < 0) {
      outside += p.shape.numel();
      continue;
    }
    layer = p.instance == instance ? layer + p.shape.numel() : p.shape.numel();
    instance = p.instance;
    largest = std::max(largest, layer);
  }
  const Scope in(tape_, "FSDP", "megatron_core 0.16.1 distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py");
  tape_.resume_parameters_outside_layers();
  const auto keep = [&](const char* name, Count count, Dtype dtype) {
    tape_.buffer(name, count * size_of(dtype), Category::kCommunication);
  };
  if (divides_weights()) keep("gathered weights", outside + 2 * largest, job_.recipe.weights);
  if (divides_gradients()) keep("gradients of a unit", outside + largest, job_.recipe.gradients);
}

void MainGrads::end_micro_steps() {
  keep_units();
  for (Parameter& p : tape_.parameters()) {
    if (!p.requires_grad) continue;
    const Count part = part_of(p);
    if (p.whole == 0) p.whole = p.shape.numel();
    on_host_.emplace_back(p.instance, part - stepped_here(part));
    p.shape = Shape{Dim(stepped_here(part))};
    p.dtype = Dtype::kFp32;
  }
}

void MainGrads::create_states(OptimizerRun& optimizer) {
  if (steps_here()) create_flat_states(optimizer);
}

// optimizer/cpu_offloading/hybrid_optimizer.py HybridDeviceOptimizer, param_update_in_fp32: fp32 copies, both moments,
// and pinned memory for the gradients, which come as they are.
HostMemory MainGrads::host_memory(const LayerPlan& plan) const {
  constexpr Count kCopies = 3;  // the weights and both moments
  HostMemory sum;
  for (const auto& [instance, count] : on_host_) {
    const Count times = plan.multiplicity(instance);
    sum.add(count * size_of(Dtype::kFp32), kCopies * times);
    sum.pin(count * size_of(Dtype::kFp32), times);
  }
  return sum;
}

// optimizer.py _copy_model_grads_to_main_grads: `.float()` of 16-bit buffers makes copies for the step's length.
void MainGrads::prepare_step() {
  if (job_.recipe.gradients == Dtype::kFp32) return;
  if (job_.is_megatron_deepspeed() && job_.data_parallel.is_sharded()) {
    // stage_1_and_2.py reduce_gradients(pipeline_parallel=True): the bucket of the reduction, after the last backward.
    constexpr Count kBucket = 500'000'000;  // runtime/zero/config.py: reduce_bucket_size
    const Count stated = job_.data_parallel.zero.reduce_bucket;
    const Scope in(tape_, "ZeRO", kBuffer);
    const Tensor bucket = tape_.allocate(elements(stated > 0 ? stated : kBucket), job_.recipe.gradients, "ipg_buffer");
  }
  for (Parameter& p : tape_.parameters()) {
    if (!p.reached) continue;
    tape_.begin_segment(Phase::kOptimizer, p.instance);
    const Scope in(tape_, p.module, kBuffer);
    p.grad = tape_.allocate(p.shape, Dtype::kFp32, "main_grad.float()");
    tape_.set_category(p.grad, Category::kGradients);
  }
}

void MainGrads::step(OptimizerRun& optimizer) {
  if (steps_here()) step_flat(optimizer);
}

namespace {

constexpr std::string_view kFramework = "/framework/name";

void refuse(Issues& issues, std::string_view path, std::string message, std::string_view suggestion = {}) {
  issues.push_back(
      {"UNSUPPORTED_VALUE", Severity::kError, std::string{path}, std::move(message), std::string{suggestion}});
}

// Megatron-Bridge 0.3.1 peft/lora.py: LoRA, beside layers of Megatron-Core whose weights are not packed.
void check_adapters(const Architecture& a, const TrainingJob& job, Issues& issues) {
  const Adapter& adapter = job.adapter;
  const Sharding sharding = job.data_parallel.sharding;
  if (job.method != Method::kLora || adapter.kind != AdapterKind::kLora || adapter.use_dora ||
      job.is_megatron_deepspeed()) {
    refuse(issues, "/method", "Of adapters under Megatron-Core LoRA is modelled, on weights of 16 bits.", "lora");
  }
  if (adapter.bias != TrainedBiases::kNone || !adapter.rank_pattern.empty() || !adapter.target_parameters.empty()) {
    refuse(issues, "/adapter", "Under Megatron-Core adapters of one rank are modelled, and no biases beside them.");
  }
  for (const std::string& name : adapter.modules_to_save) {
    if (!name.ends_with("word_embeddings") && !name.ends_with("output_layer")) {
      refuse(issues, "/adapter/modules_to_save",
             "Under Megatron-Core copies of the embedding and the head are modelled (\"word_embeddings\", "
             "\"output_layer\").");
    } else if (a.tie_word_embeddings && name.ends_with("output_layer")) {
      refuse(issues, "/adapter/modules_to_save",
             "The head has no weight of its own here: name the embedding alone, which is both.",
             "[\"word_embeddings\"]");
    }
  }
  if (a.experts.count > 0 && gpus_of_expert(job) > 1 && !job.megatron.local_layers) {
    refuse(issues, "/parallelism/expert_tensor",
           "Adapters on experts that tensor parallelism divides are not modelled beside Transformer Engine's layers "
           "(ms-swift's LoraParallelLinear raises).",
           "1");
  }
  if (adapter.r % (a.experts.count > 0 ? std::max(job.tensor.degree, gpus_of_expert(job)) : job.tensor.degree) != 0) {
    refuse(issues, "/adapter/r",
           "parallelism.tensor must divide the rank: its GPUs divide the ranks of linear_qkv's and linear_fc1's first "
           "factors (ColumnParallelLinear).");
  }
  if (job.data_parallel.is_sharded() && sharding != Sharding::kNone && sharding != Sharding::kZero1) {
    refuse(issues, "/parallelism",
           "Adapters are modelled with Megatron-Core's distributed optimizer (zero_stage 1) or "
           "without it, not with its FSDP.",
           "1");
  }
}

}  // namespace

void check_megatron(const Architecture& a, const TrainingJob& job, Issues& issues) {
  const Count degree = job.tensor.degree;
  const Recipe& recipe = job.recipe;
  if (!is_half(recipe.weights) || recipe.autocast || recipe.master_weights != Dtype::kFp32 ||
      recipe.optimizer_states != Dtype::kFp32) {
    refuse(issues, "/precision", "Megatron-Core is modelled with 16-bit weights and fp32 copies and states of them.",
           "megatron_bf16");
  }
  if (job.has_adapter()) check_adapters(a, job, issues);
  if (job.freezes_by_name() || job.padding || job.packing || job.loss != Loss::kDefault || job.optimizer_in_backward ||
      !job.zero_grad_to_none || job.compiled || job.evaluation.micro_batch_size > 0) {
    refuse(
        issues, kFramework,
        "Under Megatron-Core training of rows of one length is modelled, in full or by LoRA, with its own losses and "
        "without evaluation.");
  }
  if (job.optimizer != "adamw_torch_fused" && job.optimizer != "adamw_torch") {
    refuse(issues, "/optimizer", "Under Megatron-Core its fused Adam is modelled.", "adamw_torch_fused");
  }
  const Sharding sharding = job.data_parallel.sharding;
  if (job.is_megatron_deepspeed() &&
      ((sharding != Sharding::kNone && sharding != Sharding::kZero1) || job.pipeline.chunks > 1 || job.context > 1)) {
    refuse(issues, "/parallelism",
           "DeepSpeed's pipeline goes with ZeRO-1 (zero_stage 1), without chunks of layers and context parallelism.",
           "1");
  }
  if (a.num_heads % degree != 0 || a.num_kv_heads % degree != 0 || a.intermediate_size % degree != 0) {
    refuse(issues, "/parallelism/tensor",
           "parallelism.tensor must divide the heads (also of keys and values) and the feed-forward.");
  }
  if (job.megatron.local_layers && job.context > 1 && !job.is_megatron_deepspeed()) {
    refuse(issues, "/parallelism/context",
           "Megatron-Core's own attention has no context parallelism: Transformer Engine's has.", "1");
  }
  if (job.sequence_length % (job.context * (job.tensor.sequence ? degree : 1)) != 0) {
    refuse(issues, "/sequence_length", "The length must be a multiple of the GPUs that have parts of the sequence.");
  }
  if (job.checkpointing == Checkpointing::kOffload || job.checkpointing == Checkpointing::kEvery) {
    refuse(issues, "/gradient_checkpointing", "Megatron-Core's recomputation is modelled of all layers, or core_attn.",
           "full");
  }
  const Count experts = a.experts.count, parts = experts > 0 ? gpus_of_expert(job) : 1;
  if (job.expert > 1 && (experts == 0 || experts % job.expert != 0)) {
    refuse(issues, "/parallelism/expert", "parallelism.expert must divide the model's experts.", "1");
  }
  const DataParallel& data = job.data_parallel;
  if (data.degree % data.replicas != 0) {
    refuse(issues, "/parallelism/fsdp_options/replicate",
           "Instances of the distributed optimizer (replicate) must divide parallelism.data.", "1");
  } else if (data.shards() * job.context * degree % (job.expert * parts) != 0) {
    refuse(issues, "/parallelism/expert",
           "parallelism.expert times .expert_tensor must divide .data times .context times .tensor: these are the GPUs "
           "that divide experts.");
  }
  if (experts > 0 && a.experts.width % parts != 0) {
    refuse(issues, "/parallelism/expert_tensor", "It must divide the width of the experts.", "1");
  }
  if (experts > 0 && job.tensor.is_used() && !job.tensor.sequence) {
    refuse(issues, "/parallelism/sequence_parallel",
           "Megatron-Core trains experts beside tensor parallelism with sequence parallelism alone (moe_layer.py: "
           "MoELayer.forward).",
           "true");
  }
  const bool divides = sharding != Sharding::kNone && sharding != Sharding::kZero1;
  if (job.offload.parameters || job.offload.gradients || (job.offload.optimizer && divides)) {
    refuse(
        issues, "/offload",
        "Of offloading under Megatron-Core the optimizer's is modelled (optimizer_cpu_offload), not beside its FSDP.");
  }
}

}  // namespace tidemark
