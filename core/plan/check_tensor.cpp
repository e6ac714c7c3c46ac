// Which jobs of tensor parallelism are modelled.
#include <string>

#include "core/layers/program.hpp"
#include "core/plan/sharded.hpp"

namespace tidemark {
namespace {

constexpr std::string_view kTensor = "/parallelism/tensor";

void refuse(Issues& issues, std::string_view path, std::string message, std::string_view suggestion = {}) {
  issues.push_back(
      {"UNSUPPORTED_VALUE", Severity::kError, std::string{path}, std::move(message), std::string{suggestion}});
}

void check_heads(const Architecture& a, Count degree, Issues& issues) {
  if (a.num_heads % degree != 0 || a.num_kv_heads % degree != 0) {
    refuse(issues, kTensor,
           "Tensor parallelism divides heads: parallelism.tensor must divide " + std::to_string(a.num_heads) +
               " heads and " + std::to_string(a.num_kv_heads) + " of keys and values.");
  }
}

void check_sizes(const Architecture& a, const TrainingJob& job, Issues& issues) {
  const Count degree = job.tensor.degree;
  check_heads(a, degree, issues);
  if (a.intermediate_size % degree != 0 || a.vocab_size % degree != 0) {
    refuse(issues, kTensor, "Parts of unequal size of feed-forward or vocabulary are not modelled.");
  }
  if (job.tensor.sequence && job.sequence_length % degree != 0) {
    refuse(issues, "/sequence_length",
           "With sequence parallelism the length must be a multiple of parallelism.tensor.");
  }
}

/// Whether FSDP 2 divides the parts further; what else trains on other rows is refused.
bool check_data(const TrainingJob& job, Issues& issues) {
  const DataParallel& data = job.data_parallel;
  const bool fully = data.is_sharded() && data.sharding == Sharding::kFsdp2;
  if (data.is_used() && !fully) {
    refuse(issues, "/parallelism/fsdp", "Beside tensor parallelism data parallelism is modelled with FSDP 2.", "fsdp2");
  }
  return fully;
}

void check_company(const TrainingJob& job, Issues& issues) {
  const bool fully = check_data(job, issues);
  // torch/optim/adam.py and nn/utils/clip_grad.py: one operation on a list that holds both raises.
  if (!fully && !job.tensor.sequence) {
    refuse(issues, "/parallelism/sequence_parallel",
           "Without sequence parallelism norms are plain tensors beside DTensors, which torch's optimizers do not take "
           "together.",
           "true");
  }
}

bool steps_dtensors(std::string_view optimizer) {
  return optimizer == "adamw_torch" || optimizer == "adamw_torch_fused";
}

/// transformers 5.12 integrations/tensor_parallel.py: what is divided is a plain model of narrower layers.
void check_tp_plan(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (a.program == nullptr || !a.program->has_tp_plan) {
    refuse(issues, kTensor,
           "tp_plan is modelled where it divides each projection by itself (Llama, Mistral, Qwen, Gemma and kin).",
           "1");
    return;
  }
  check_heads(a, job.tensor.degree, issues);
  check_data(job, issues);
  if (job.method == Method::kQlora || job.adapter.kind != AdapterKind::kLora) {
    refuse(issues, job.method == Method::kQlora ? "/method" : "/adapter/kind",
           "Under tp_plan full training and LoRA of weights that are not quantised are modelled.", "lora");
  }
  // core_model_loading.py calls update_module_attributes for weight and bias alike: out_features are divided twice.
  if (job.has_adapter() && (a.attention_bias || a.attention_out_bias || a.mlp_bias)) {
    refuse(issues, "/method",
           "Under tp_plan transformers 5 divides the sizes of a projection with a bias twice, and PEFT's matrices do "
           "not fit it. Use FSDP 2, or full training.",
           "full");
  }
}

}  // namespace

void check_tensor(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const TensorParallel& tp = job.tensor;
  if (!tp.is_used() || job.is_megatron()) return;
  if (tp.hooks) return check_tp_plan(architecture, job, issues);
  const Program* program = architecture.program;
  if (program == nullptr || !program->is_divisible || architecture.head != Head::kCausalLm ||
      architecture.tie_word_embeddings) {
    refuse(issues, kTensor,
           "Tensor parallelism is modelled for causal language models with Llama's modules whose head has a weight of "
           "its own (torchtitan's plan).");
    return;
  }
  check_sizes(architecture, job, issues);
  check_company(job, issues);
  if (job.has_adapter()) {
    // Tried with torch 2.14 and PEFT 0.18 (distributed/tensor/parallel/style.py: ColwiseParallel._apply).
    refuse(issues, kTensor,
           "torchtitan's plan fails on PEFT's layers (\"ColwiseParallel currently only support nn.Linear and "
           "nn.Embedding!\").",
           "1");
    return;
  }
  const bool losses = job.loss == Loss::kDefault || job.loss == Loss::kCutCrossEntropy;
  const bool plain = !job.recipe.master_weights && job.recipe.gradients == job.recipe.weights;
  if (!losses || job.recipe.autocast || (!plain && job.data_parallel.is_sharded())) {
    refuse(issues, kTensor,
           "Tensor parallelism is modelled for full training with the default loss, without autocast; beside FSDP its "
           "fp32 parts are the master weights (fsdp_bf16).");
  }
  if (architecture.sliding_window > 0 && job.sequence_length > architecture.sliding_window) {
    refuse(issues, "/sequence_length", "Windows shorter than the sequence are not modelled under tensor parallelism.");
  }
  if (job.padding || job.packing || !steps_dtensors(job.optimizer) || job.optimizer_in_backward ||
      !job.zero_grad_to_none) {
    refuse(issues, kTensor,
           "Tensor parallelism is modelled without padding, with torch's AdamW and gradients that go with zero_grad.");
  }
  const bool recomputes = job.checkpointing != Checkpointing::kNone;
  if (recomputes && (job.use_reentrant || job.checkpointing != Checkpointing::kFull)) {
    refuse(issues, "/gradient_checkpointing",
           "Under tensor parallelism every layer is checkpointed, not re-entrant, or none.", "full");
  }
  if (job.attention == AttentionKernel::kEager && tp.sequence) {
    refuse(issues, "/attention", "Eager attention's mask is as long as this GPU's part of the sequence: it fails.",
           "sdpa");
  }
  if (job.liger_rms_norm || job.liger_swiglu || job.liger_rope) {
    refuse(issues, "/liger", "Liger's kernels do not take DTensors.");
  }
}

}  // namespace tidemark
