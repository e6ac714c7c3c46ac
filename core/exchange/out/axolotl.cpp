// axolotl@067b021c (0.13) src/axolotl/utils/schemas/{config,model,peft,training}.py.
#include "core/exchange/out/preferences.hpp"
#include "core/exchange/out/writer.hpp"

namespace tidemark::exchange {
namespace {

void write_adapter(const ExportJob& job, Writer& out) {
  const Adapter& adapter = job.job.adapter;
  const bool eight = is_quantised(job.job) && job.job.quantization.bits == 8;
  out.yaml("adapter", is_quantised(job.job) && !eight ? "qlora" : "lora");
  if (is_quantised(job.job)) out.yaml(eight ? "load_in_8bit" : "load_in_4bit", true);
  out.yaml("lora_r", adapter.r);
  out.yaml("lora_alpha", number(adapter.lora_alpha));
  out.yaml("lora_dropout", number(adapter.lora_dropout));
  switch (adapter.target_modules.kind) {
    case ModuleChoice::Kind::kAllLinear:
      out.yaml("lora_target_linear", true);
      break;
    case ModuleChoice::Kind::kExpression:
      out.yaml("lora_target_modules", quoted(adapter.target_modules.expression));
      break;
    case ModuleChoice::Kind::kAttention:
      out.yaml_list("lora_target_modules", attention_modules(job));
      break;
    case ModuleChoice::Kind::kByPeft:  // where neither is said, PEFT chooses
      break;
    case ModuleChoice::Kind::kNames:
      out.yaml_list("lora_target_modules", adapter.target_modules.names);
      break;
  }
  if (!adapter.modules_to_save.empty()) out.yaml_list("lora_modules_to_save", adapter.modules_to_save);
  if (adapter.use_dora) out.yaml("peft_use_dora", true);
  const Quantization& how = job.job.quantization;
  if (is_quantised(job.job) && !eight && (!how.double_quant || how.quant_type == QuantType::kFp4)) {
    out.line("bnb_config_kwargs:");
    out.yaml("bnb_4bit_quant_type", how.quant_type == QuantType::kFp4 ? "fp4" : "nf4", 2);
    out.yaml("bnb_4bit_use_double_quant", how.double_quant, 2);
  }
  if (is_quantised(job.job) && how.prepare_kbit != PrepareKbit::kAll) {
    out.lacks("/quantization/prepare_kbit", "weights that are not quantised stay as they are; axolotl makes them fp32");
  }
}

/// loaders/utils: bf16 and fp16 load the weights so and cast to it; bfloat16 and float16 load them so and cast nothing.
void write_precision(const TrainingJob& job, Writer& out) {
  const bool half = is_half(job.recipe.weights);
  const bool cast = job.recipe.autocast.has_value();
  const bool bf16 = job.recipe.weights == Dtype::kBf16 || (!half && casts_to(job, Dtype::kBf16));
  const bool fp16 = !bf16 && (half || cast);
  out.yaml("bf16", bf16 && cast);
  out.yaml("fp16", fp16 && cast);
  if (half && !cast) out.yaml(bf16 ? "bfloat16" : "float16", true);
  if (!half && cast) out.lacks("/precision", "fp32 weights under autocast; axolotl loads them in 16 bits");
  if (half && cast && job.recipe.weights != *job.recipe.autocast) {
    out.lacks("/precision", "an autocast dtype that is not the weights'");
  }
}

void write_loss(const TrainingJob& job, Writer& out) {
  std::vector<std::string> plugins;
  const bool kernels = job.liger_rms_norm || job.liger_swiglu || job.liger_rope;
  if (job.loss == Loss::kLiger || kernels) plugins.emplace_back("axolotl.integrations.liger.LigerPlugin");
  if (job.loss == Loss::kCutCrossEntropy) {
    plugins.emplace_back("axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin");
  }
  if (job.loss == Loss::kChunked) out.yaml("chunked_cross_entropy", true);
  if (plugins.empty()) return;
  out.yaml_list("plugins", plugins);
  if (job.loss == Loss::kLiger) out.yaml("liger_fused_linear_cross_entropy", true);
  if (job.liger_rms_norm) out.yaml("liger_rms_norm", true);
  if (job.liger_swiglu) out.yaml("liger_glu_activation", true);
  if (job.liger_rope) out.yaml("liger_rope", true);
  if (job.loss == Loss::kCutCrossEntropy) out.yaml("cut_cross_entropy", true);
}

void write_parallelism(const ExportJob& job, Writer& out) {
  const bool offload = job.offload_optimizer || job.offload_parameters;
  if (job.zero_stage > 0) {
    out.yaml("deepspeed", "deepspeed_configs/zero" + std::to_string(job.zero_stage) + "_bf16" +
                              (job.zero_stage == 3 && offload ? "_cpuoffload_all" : "") + ".json");
  }
  if (job.fsdp == "none") return;
  out.yaml("fsdp_version", Count{job.fsdp == "fsdp2" ? 2 : 1});
  out.line("fsdp_config:");
  out.yaml("offload_params", job.offload_parameters, 2);
  out.yaml("auto_wrap_policy", "TRANSFORMER_BASED_WRAP", 2);
  out.yaml("reshard_after_forward", job.fsdp != "shard_grad_op", 2);
}

}  // namespace

Exported write_axolotl(const ExportJob& job) {
  Writer out;
  out.comment("A job from Tidemark for axolotl 0.13. The data set is yours to fill in.");
  out.yaml("base_model", job.model);
  const PreferenceWords& words = preference_words(job.job.preference);
  if (job.job.preference == Preference::kReward) {
    out.yaml("reward_model", true);
  } else {
    out.yaml("rl", words.axolotl);
  }
  lacks_task(job, !words.axolotl.empty() || job.job.preference == Preference::kReward, out);
  lacks_reference(job, false, out);
  if (has_adapter(job.job)) write_adapter(job, out);
  out.yaml("sequence_len", job.job.sequence_length);
  out.yaml("sample_packing", job.job.packing);
  out.yaml("pad_to_sequence_len", true);
  out.yaml("micro_batch_size", job.job.micro_batch_size);
  out.yaml("gradient_accumulation_steps", job.job.gradient_accumulation_steps);
  write_precision(job.job, out);
  out.yaml("attn_implementation", attention_name(job.job.attention));
  const bool offload = job.job.checkpointing == Checkpointing::kOffload;
  out.yaml("gradient_checkpointing", offload ? "offload" : checkpoints(job.job) ? "true" : "false");
  if (checkpoints(job.job) && !offload) {
    out.line("gradient_checkpointing_kwargs:");
    out.yaml("use_reentrant", job.job.use_reentrant, 2);
  }
  out.yaml("optimizer", job.job.optimizer);
  if (projects(job.job)) {
    const ModuleChoice& targets = job.job.low_rank.targets;
    const bool all = targets.names.empty() && targets.kind != ModuleChoice::Kind::kExpression;
    out.yaml("optim_args", quoted(optim_args(job.job)));
    out.yaml("optim_target_modules", all                     ? "all-linear"
                                     : targets.names.empty() ? quoted(targets.expression)
                                                             : quoted_list(targets.names));
  }
  out.yaml("max_grad_norm", number(job.job.max_grad_norm));
  if (job.job.neftune_noise_alpha > 0.0) out.yaml("neftune_noise_alpha", number(job.job.neftune_noise_alpha));
  if (job.job.label_smoothing > 0.0) out.lacks("/label_smoothing_factor", "label smoothing");
  write_loss(job.job, out);
  write_parallelism(job, out);
  if (!job.job.freeze.empty()) {
    out.lacks("/freeze", "which modules are frozen; unfrozen_parameters names the others");
  } else if (!job.job.trainable.empty()) {
    // src/axolotl/utils/freeze.py: from the name's start; a dot is a dot unless + follows.
    out.line("unfrozen_parameters:");
    for (const std::string& pattern : job.job.trainable)
      out.line("  - " + quoted(pattern.front() == '^' ? pattern : "(.+)?" + pattern));
  }
  lacks_without_deepspeed(job, out);
  out.line("datasets:");
  out.line("  - path: train.jsonl  # yours");
  out.line("    type: completion");
  out.yaml("output_dir", "out");
  return out.finish("Axolotl");
}

}  // namespace tidemark::exchange
