// torchtune@bd2a0fc7 recipes/configs, torchtune/models/*/_model_builders.py.
#include <algorithm>

#include "core/exchange/out/preferences.hpp"
#include "core/exchange/out/writer.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

/// Model builders by what the Hub calls the model. Of each family those sizes that torchtune has.
struct Builder {
  std::string_view name;     ///< part of the id, in lower case
  std::string_view package;  ///< torchtune.models.<package>
  std::string_view builder;  ///< without lora_ or qlora_
};
constexpr Builder kBuilders[] = {
    {"llama-2-7b", "llama2", "llama2_7b"},         {"llama-2-13b", "llama2", "llama2_13b"},
    {"llama-2-70b", "llama2", "llama2_70b"},       {"llama-3.1-8b", "llama3_1", "llama3_1_8b"},
    {"llama-3.1-70b", "llama3_1", "llama3_1_70b"}, {"llama-3.2-1b", "llama3_2", "llama3_2_1b"},
    {"llama-3.2-3b", "llama3_2", "llama3_2_3b"},   {"llama-3-8b", "llama3", "llama3_8b"},
    {"llama-3-70b", "llama3", "llama3_70b"},       {"mistral-7b", "mistral", "mistral_7b"},
    {"qwen2.5-0.5b", "qwen2_5", "qwen2_5_0_5b"},   {"qwen2.5-7b", "qwen2_5", "qwen2_5_7b_base"},
    {"qwen2.5-3b", "qwen2_5", "qwen2_5_3b"},       {"gemma-2-9b", "gemma2", "gemma2_9b"},
    {"gemma-2-2b", "gemma2", "gemma2_2b"},         {"phi-3-mini", "phi3", "phi3_mini"},
};

const Builder* builder_of(const std::string& model) {
  const std::string name = lower_case(model);
  for (const Builder& builder : kBuilders) {
    if (name.find(builder.name) != std::string::npos) return &builder;
  }
  return nullptr;
}

bool names(const std::vector<std::string>& modules, std::string_view name) {
  return std::find(modules.begin(), modules.end(), name) != modules.end();
}

/// q_proj, k_proj, v_proj and output_proj by name; the three of the feed-forward and the head by a switch each.
void write_targets(const ExportJob& job, Writer& out) {
  const ModuleChoice& choice = job.job.adapter.target_modules;
  const bool by_peft = choice.kind == ModuleChoice::Kind::kByPeft;
  const bool all = by_peft || choice.kind == ModuleChoice::Kind::kAllLinear;
  const bool attention = choice.kind == ModuleChoice::Kind::kAttention;
  std::vector<std::string> modules;
  for (const auto& [ours, theirs] :
       {std::pair{"q_proj", "q_proj"}, {"k_proj", "k_proj"}, {"v_proj", "v_proj"}, {"o_proj", "output_proj"}}) {
    if (all || attention || names(choice.names, ours)) modules.emplace_back(theirs);
  }
  out.yaml("lora_attn_modules", quoted_list(modules), 2);
  const bool gate = names(choice.names, "gate_proj"), up = names(choice.names, "up_proj"),
             down = names(choice.names, "down_proj");
  out.yaml("apply_lora_to_mlp", all || gate || up || down, 2);
  out.yaml("apply_lora_to_output", names(choice.names, "lm_head"), 2);
  if ((gate || up || down) && !(gate && up && down)) {
    out.lacks("/adapter/target_modules", "one layer of the feed-forward alone");
  }
  if (by_peft) out.lacks("/adapter/target_modules", kNoneByPeft);
  if (choice.kind == ModuleChoice::Kind::kExpression) out.lacks("/adapter/target_modules", "modules by an expression");
}

void write_model(const ExportJob& job, Writer& out) {
  const Builder* builder = builder_of(job.model);
  if (builder == nullptr) out.lacks("/model", "this model: name torchtune's builder for it");
  const std::string_view method = is_quantised(job.job) ? "qlora_" : has_adapter(job.job) ? "lora_" : "";
  out.line("model:");
  out.yaml("_component_",
           "torchtune.models." + std::string{builder == nullptr ? "llama3_1" : builder->package} + "." +
               std::string{method} + std::string{builder == nullptr ? "llama3_1_8b" : builder->builder},
           2);
  if (!has_adapter(job.job)) return;
  write_targets(job, out);
  out.yaml("lora_rank", job.job.adapter.r, 2);
  out.yaml("lora_alpha", number(job.job.adapter.lora_alpha), 2);
  out.yaml("lora_dropout", number(job.job.adapter.lora_dropout), 2);
  if (job.job.adapter.use_dora) out.yaml("use_dora", true, 2);
  if (!job.job.adapter.modules_to_save.empty()) out.lacks("/adapter/modules_to_save", "modules trained in full");
  if (is_quantised(job.job)) out.lacks("/quantization", "bitsandbytes: torchtune packs weights by torchao's NF4");
}

struct OptimizerName {
  std::string_view ours, theirs;
  bool fused = false;
};
constexpr OptimizerName kOptimizers[] = {
    {"adamw_torch_fused", "torch.optim.AdamW", true},
    {"adamw_torch", "torch.optim.AdamW"},
    {"adamw_8bit", "bitsandbytes.optim.AdamW8bit"},
    {"paged_adamw_8bit", "bitsandbytes.optim.PagedAdamW8bit"},
    {"paged_adamw_32bit", "bitsandbytes.optim.PagedAdamW"},
    {"adamw_torch_8bit", "torchao.optim.AdamW8bit"},
    {"sgd", "torch.optim.SGD"},
};

void write_optimizer(const TrainingJob& job, Writer& out) {
  const auto* known = std::find_if(std::begin(kOptimizers), std::end(kOptimizers),
                                   [&](const OptimizerName& row) { return row.ours == job.optimizer; });
  const bool found = known != std::end(kOptimizers);
  if (!found) out.lacks("/optimizer", std::string{job.optimizer} + ": name its class");
  out.line("optimizer:");
  out.yaml("_component_", found ? known->theirs : kOptimizers[0].theirs, 2);
  if (found && known->fused) out.yaml("fused", true, 2);
  out.yaml("optimizer_in_bwd", job.optimizer_in_backward);
}

void write_loss(const TrainingJob& job, Writer& out) {
  const bool chunked = job.loss == Loss::kChunked || job.loss == Loss::kDefault;
  out.line("loss:");
  out.yaml("_component_", "torchtune.modules.loss.LinearCrossEntropyLoss", 2);
  if (job.loss == Loss::kDefault) out.lacks("/loss", "the model's own cross-entropy: torchtune computes it in chunks");
  if (!chunked) out.lacks("/loss", "how the loss is computed");
}

}  // namespace

Exported write_torchtune(const ExportJob& job) {
  Writer out;
  const TrainingJob& how = job.job;
  const std::string recipe = std::string{has_adapter(how) ? "lora_finetune" : "full_finetune"} +
                             (job.gpus > 1 ? "_distributed" : "_single_device");
  const std::string nodes = job.gpus > 1 ? "--nproc_per_node " + std::to_string(job.gpus) + " " : "";
  out.comment("A job from Tidemark for torchtune 0.6: tune run " + nodes + recipe + " --config torchtune.yaml");
  out.comment("tune download " + job.model + " --output-dir checkpoint");
  write_model(job, out);
  out.line("tokenizer:");
  out.yaml("_component_", "torchtune.models.llama3.llama3_tokenizer  # the model's", 2);
  out.yaml("max_seq_len", how.sequence_length, 2);
  out.line("checkpointer:");
  out.yaml("_component_", "torchtune.training.FullModelHFCheckpointer", 2);
  out.yaml("checkpoint_dir", "checkpoint/" + job.model, 2);
  out.line("dataset:");
  out.yaml("_component_", "torchtune.datasets.alpaca_dataset  # yours", 2);
  out.yaml("packed", how.packing, 2);
  out.yaml("batch_size", how.micro_batch_size);
  out.yaml("gradient_accumulation_steps", how.gradient_accumulation_steps);
  write_optimizer(how, out);
  out.yaml("clip_grad_norm", how.max_grad_norm > 0.0 ? number(how.max_grad_norm) : "null");
  write_loss(how, out);
  out.yaml("dtype", how.recipe.weights == Dtype::kFp32 ? "fp32" : "bf16");
  if (how.recipe.weights == Dtype::kFp16) out.lacks("/precision", "fp16: torchtune's recipes train in bf16 or fp32");
  if (how.recipe.autocast) out.lacks("/precision", "autocast: torchtune has none");
  if (has_adapter(how) && how.adapter.dtype != how.recipe.weights) {
    out.lacks("/adapter/dtype", "adapters in another dtype than the weights");
  }
  out.yaml("enable_activation_checkpointing", checkpoints(how));
  out.yaml("enable_activation_offloading", how.checkpointing == Checkpointing::kOffload);
  out.yaml("compile", false);
  lacks_task(job, false, out);
  lacks_without_deepspeed(job, out);
  out.yaml("output_dir", "out");
  out.yaml("device", "cuda");
  return out.finish("torchtune");
}

}  // namespace tidemark::exchange
