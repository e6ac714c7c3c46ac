#include "core/plan/main_grads.hpp"

#include "core/plan/zero_sizes.hpp"

namespace tidemark {
namespace {

constexpr const char* kBuffer = "megatron_core 0.16.1 distributed/param_and_grad_buffer.py: _ParamAndGradBuffer";

}  // namespace

// shard_fp32_from_float16_groups: of each parameter what lies in this GPU's part of the buffer; all have as much, as
// parts are of equal size.
Count MainGrads::part_of(const Parameter& p) const {
  if (job_.data_parallel.sharding != Sharding::kZero1) return p.shape.numel();
  // An expert's weights are on fewer GPUs than the others.
  const bool is_experts = std::string_view{p.module} == "mlp.experts";
  const Count parts = job_.data_parallel.shards() * job_.context / (is_experts ? job_.expert : 1);
  return (p.shape.numel() + parts - 1) / parts;
}

// A gradient is added to its part of the buffer by a hook and dies (distributed_data_parallel.py:
// _make_backward_post_hook).
void MainGrads::declare(Parameter& p) {
  const Scope in(tape_, p.module, kBuffer);
  tape_.buffer("main_grad", p.shape.numel() * size_of(job_.recipe.gradients), Category::kGradients);
  tape_.buffer("master weight", part_of(p) * size_of(Dtype::kFp32), Category::kOptimizerStates);
}

void MainGrads::end_micro_steps() {
  for (Parameter& p : tape_.parameters()) {
    const Count part = part_of(p);
    if (p.whole == 0) p.whole = p.shape.numel();
    p.shape = Shape{Dim(part)};
    p.dtype = Dtype::kFp32;
  }
}

void MainGrads::create_states(OptimizerRun& optimizer) {
  create_flat_states(optimizer);
}

// optimizer.py _copy_model_grads_to_main_grads: `.float()` of 16-bit buffers makes copies for the step's length.
void MainGrads::prepare_step() {
  if (job_.recipe.gradients == Dtype::kFp32) return;
  for (Parameter& p : tape_.parameters()) {
    if (!p.reached) continue;
    tape_.begin_segment(Phase::kOptimizer, p.instance);
    const Scope in(tape_, p.module, kBuffer);
    p.grad = tape_.allocate(p.shape, Dtype::kFp32, "main_grad.float()");
    tape_.set_category(p.grad, Category::kGradients);
  }
}

void MainGrads::step(OptimizerRun& optimizer) {
  step_flat(optimizer);
}

namespace {

constexpr std::string_view kFramework = "/framework/name";

void refuse(Issues& issues, std::string_view path, std::string message, std::string_view suggestion = {}) {
  issues.push_back(
      {"UNSUPPORTED_VALUE", Severity::kError, std::string{path}, std::move(message), std::string{suggestion}});
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
  if (job.method != Method::kFull || !job.freeze.empty() || job.padding || job.packing || job.loss != Loss::kDefault ||
      job.optimizer_in_backward || !job.zero_grad_to_none || job.compiled || job.evaluation.micro_batch_size > 0) {
    refuse(issues, kFramework,
           "Under Megatron-Core full training of rows of one length is modelled, with its own losses and without "
           "evaluation.");
  }
  if (job.optimizer != "adamw_torch_fused" && job.optimizer != "adamw_torch") {
    refuse(issues, "/optimizer", "Under Megatron-Core its fused Adam is modelled.", "adamw_torch_fused");
  }
  const Sharding sharding = job.data_parallel.sharding;
  if (sharding != Sharding::kNone && sharding != Sharding::kZero1) {
    refuse(issues, "/parallelism",
           "Of Megatron-Core the distributed optimizer is modelled (zero_stage 1), not its FSDP.", "1");
  }
  if (a.num_heads % degree != 0 || a.num_kv_heads % degree != 0 || a.intermediate_size % degree != 0) {
    refuse(issues, "/parallelism/tensor",
           "parallelism.tensor must divide the heads (also of keys and values) and the feed-forward.");
  }
  if (job.sequence_length % (job.context * (job.tensor.sequence ? degree : 1)) != 0) {
    refuse(issues, "/sequence_length", "The length must be a multiple of the GPUs that have parts of the sequence.");
  }
  if (job.checkpointing == Checkpointing::kOffload || job.checkpointing == Checkpointing::kEvery) {
    refuse(issues, "/gradient_checkpointing", "Megatron-Core's recomputation is modelled of all layers, or core_attn.",
           "full");
  }
  const Count experts = a.experts.count;
  if (job.expert > 1 && (experts == 0 || experts % job.expert != 0)) {
    refuse(issues, "/parallelism/expert", "parallelism.expert must divide the model's experts.", "1");
  }
  const DataParallel& data = job.data_parallel;
  if (data.degree % data.replicas != 0) {
    refuse(issues, "/parallelism/fsdp_options/replicate",
           "Instances of the distributed optimizer (replicate) must divide parallelism.data.", "1");
  } else if (data.shards() * job.context % job.expert != 0) {
    refuse(issues, "/parallelism/expert",
           "The GPUs that divide experts are among those of parallelism.data (times .context), which it must divide.");
  }
  if (experts > 0 && job.tensor.is_used()) {
    refuse(issues, "/parallelism/tensor", "Experts under tensor parallelism are not modelled.", "1");
  }
  if (job.offload.optimizer || job.offload.parameters || job.offload.gradients) {
    refuse(issues, "/offload", "Offloading is not modelled under Megatron-Core.");
  }
}

}  // namespace tidemark
