// LLaMA-Factory@ff6d4d12 src/llamafactory/hparams/{finetuning_args,model_args,data_args}.py, model/adapter.py.
#include "core/exchange/out/preferences.hpp"
#include "core/exchange/out/writer.hpp"

namespace tidemark::exchange {
namespace {

std::string joined_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

std::string targets(const ExportJob& job, Writer& out) {
  const ModuleChoice& choice = job.job.adapter.target_modules;
  if (choice.kind == ModuleChoice::Kind::kNames) return joined_names(choice.names);
  if (choice.kind == ModuleChoice::Kind::kAttention) return joined_names(attention_modules(job));
  if (choice.kind == ModuleChoice::Kind::kExpression) {
    out.lacks("/adapter/target_modules", "modules by an expression; all linear layers are adapted here");
  }
  if (choice.kind == ModuleChoice::Kind::kByPeft) out.lacks("/adapter/target_modules", kNoneByPeft);
  return "all";
}

void write_adapter(const ExportJob& job, Writer& out) {
  const Adapter& adapter = job.job.adapter;
  out.yaml("lora_rank", adapter.r);
  out.yaml("lora_alpha", number(adapter.lora_alpha));
  out.yaml("lora_dropout", number(adapter.lora_dropout));
  out.yaml("lora_target", quoted(targets(job, out)));
  if (!adapter.modules_to_save.empty()) out.yaml("additional_target", quoted(joined_names(adapter.modules_to_save)));
  if (adapter.use_dora) out.yaml("use_dora", true);
  if (!is_quantised(job.job)) return;
  const Quantization& how = job.job.quantization;
  out.yaml("quantization_bit", Count{how.bits});
  out.yaml("quantization_method", "bnb");
  if (how.bits == 4) {
    out.yaml("quantization_type", how.quant_type == QuantType::kFp4 ? "fp4" : "nf4");
    out.yaml("double_quantization", how.double_quant);
  }
  if (how.prepare_kbit == PrepareKbit::kNormsOnly) out.yaml("upcast_layernorm", true);
  if (how.prepare_kbit == PrepareKbit::kAll) {
    out.lacks("/quantization/prepare_kbit", "fp32 for all that is not quantised; only norms can be made so");
  }
}

/// model/adapter.py: what is trained becomes fp32 unless pure_bf16, whatever it was loaded as.
void write_precision(const TrainingJob& job, Writer& out) {
  const bool cast = job.recipe.autocast.has_value();
  const bool full = !has_adapter(job);
  const bool pure = job.recipe.weights == Dtype::kBf16 && !cast;
  out.yaml("bf16", !pure && casts_to(job, Dtype::kBf16));
  out.yaml("fp16", casts_to(job, Dtype::kFp16));
  if (pure) out.yaml("pure_bf16", true);
  if (!pure && !cast)
    out.lacks("/precision", "weights without autocast but bf16's; it takes the checkpoint's dtype then");
  if (full && cast && is_half(job.recipe.weights) && !job.recipe.master_weights) {
    out.lacks("/precision", "16-bit weights under autocast; LLaMA-Factory trains all weights in fp32");
  }
  if (!full && cast && job.recipe.weights != *job.recipe.autocast) {
    out.lacks("/precision", "a base in another dtype than autocast's; it is loaded in that");
  }
}

std::string_view flash_attn(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::kEager:
      return "disabled";
    case AttentionKernel::kFlashAttention2:
      return "fa2";
    case AttentionKernel::kFlashAttention3:
      return "fa3";
    default:
      return "sdpa";
  }
}

}  // namespace

Exported write_llama_factory(const ExportJob& job) {
  Writer out;
  out.comment("A job from Tidemark for LLaMA-Factory 0.9.4. Data set and template are yours to fill in.");
  out.yaml("model_name_or_path", job.model);
  const PreferenceWords& words = preference_words(job.job.preference);
  const std::string_view on_text = job.task == "pretrain" ? "pt" : "sft";
  out.yaml("stage", words.llama_factory.empty() ? on_text : words.llama_factory);
  out.yaml("pref_loss", words.pref_loss);
  lacks_task(job, !words.llama_factory.empty(), out);
  lacks_reference(job, false, out);
  out.yaml("do_train", true);
  out.yaml("finetuning_type", has_adapter(job.job) ? "lora" : "full");
  if (job.job.method == Method::kFreeze)
    out.lacks("/freeze", "which modules are frozen; freeze trains the last layers");
  if (has_adapter(job.job)) write_adapter(job, out);
  out.yaml("dataset", "identity  # yours");
  out.yaml("template", "default  # the model's");
  out.yaml("cutoff_len", job.job.sequence_length);
  out.yaml("packing", job.job.packing);
  out.yaml("per_device_train_batch_size", job.job.micro_batch_size);
  out.yaml("gradient_accumulation_steps", job.job.gradient_accumulation_steps);
  write_precision(job.job, out);
  out.yaml("flash_attn", flash_attn(job.job.attention));
  out.yaml("disable_gradient_checkpointing", !checkpoints(job.job));
  if (checkpoints(job.job)) out.yaml("use_reentrant_gc", job.job.use_reentrant);
  if (job.job.checkpointing == Checkpointing::kOffload) out.yaml("use_unsloth_gc", true);
  out.yaml("optim", job.job.optimizer);
  if (projects(job.job)) out.lacks("/optim_args", "which gradients are projected, and to what rank");
  out.yaml("max_grad_norm", number(job.job.max_grad_norm));
  if (job.job.neftune_noise_alpha > 0.0) out.yaml("neftune_noise_alpha", number(job.job.neftune_noise_alpha));
  if (job.job.label_smoothing > 0.0) out.yaml("label_smoothing_factor", number(job.job.label_smoothing));
  out.yaml("enable_liger_kernel", job.job.loss == Loss::kLiger);
  if (job.job.loss != Loss::kLiger && job.job.loss != Loss::kDefault) out.lacks("/loss", "how the loss is computed");
  if (job.zero_stage > 0) {
    const bool offload = job.zero_stage > 1 && (job.offload_optimizer || job.offload_parameters);
    out.yaml("deepspeed",
             "examples/deepspeed/ds_z" + std::to_string(job.zero_stage) + (offload ? "_offload" : "") + "_config.json");
  }
  if (job.fsdp != "none") out.lacks("/parallelism/fsdp", "FSDP: accelerate's YAML says it, `export accelerate`");
  lacks_without_deepspeed(job, out);
  out.yaml("output_dir", "out");
  return out.finish("LLaMA-Factory");
}

}  // namespace tidemark::exchange
