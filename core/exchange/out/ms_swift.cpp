// ms-swift@3602360a swift/arguments/base_args/base_args.py, arguments/tuner_args.py, trainers/arguments.py.
#include "core/exchange/out/preferences.hpp"
#include "core/exchange/out/writer.hpp"

namespace tidemark::exchange {
namespace {

std::string words(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + shell(name);
  return text;
}

void add_adapter(const ExportJob& job, Command& command) {
  const Adapter& adapter = job.job.adapter;
  command.flag("lora_rank", adapter.r);
  command.flag("lora_alpha", number(adapter.lora_alpha));
  command.flag("lora_dropout", number(adapter.lora_dropout));
  const ModuleChoice& choice = adapter.target_modules;
  if (choice.kind == ModuleChoice::Kind::kExpression) {
    command.flag("target_regex", shell(choice.expression));
  } else if (choice.kind == ModuleChoice::Kind::kAllLinear || choice.kind == ModuleChoice::Kind::kByPeft) {
    command.flag("target_modules", "all-linear");
  } else {
    command.flag("target_modules",
                 words(choice.kind == ModuleChoice::Kind::kAttention ? attention_modules(job) : choice.names));
  }
  if (!adapter.modules_to_save.empty()) command.flag("modules_to_save", words(adapter.modules_to_save));
  if (adapter.use_dora) command.flag("use_dora", true);
  if (adapter.dtype != Dtype::kFp32) command.flag("lora_dtype", torch_name(adapter.dtype));
  if (!is_quantised(job.job)) return;
  const Quantization& how = job.job.quantization;
  command.flag("quant_method", "bnb");
  command.flag("quant_bits", Count{how.bits});
  if (how.bits == 8) return;
  command.flag("bnb_4bit_quant_type", how.quant_type == QuantType::kFp4 ? "fp4" : "nf4");
  command.flag("bnb_4bit_use_double_quant", how.double_quant);
}

std::string_view attention_word(AttentionKernel kernel) {
  const std::string_view name = attention_name(kernel);
  return name == "flash_attention_2" ? "flash_attn" : name;
}

void add_parallelism(const ExportJob& job, Command& command) {
  if (job.zero_stage > 0) {
    const bool offload = job.offload_optimizer || job.offload_parameters;
    command.flag("deepspeed", "zero" + std::to_string(job.zero_stage) + (offload ? "_offload" : ""));
  }
  if (job.fsdp != "none") command.flag("fsdp", job.fsdp == "fsdp2" ? "fsdp2" : "'full_shard auto_wrap'");
}

}  // namespace

Exported write_ms_swift(const ExportJob& job) {
  Writer out;
  Command command;
  command.flag("model", shell(job.model));
  command.flag("tuner_type", has_adapter(job.job) ? "lora" : "full");
  if (has_adapter(job.job)) add_adapter(job, command);
  if (has_adapter(job.job) && job.job.adapter.target_modules.kind == ModuleChoice::Kind::kByPeft)
    out.lacks("/adapter/target_modules", kNoneByPeft);
  command.flag("torch_dtype", torch_name(job.job.recipe.weights));
  command.flag("bf16", casts_to(job.job, Dtype::kBf16));
  command.flag("fp16", casts_to(job.job, Dtype::kFp16));
  command.flag("per_device_train_batch_size", job.job.micro_batch_size);
  command.flag("gradient_accumulation_steps", job.job.gradient_accumulation_steps);
  command.flag("max_length", job.job.sequence_length);
  command.flag("packing", job.job.packing);
  command.flag("attn_impl", attention_word(job.job.attention));
  command.flag("gradient_checkpointing", checkpoints(job.job));
  if (checkpoints(job.job)) {
    command.flag("gradient_checkpointing_kwargs",
                 job.job.use_reentrant ? "'{\"use_reentrant\": true}'" : "'{\"use_reentrant\": false}'");
  }
  command.flag("optim", job.job.optimizer);
  if (projects(job.job)) out.lacks("/optim_args", "which gradients are projected, and to what rank");
  command.flag("max_grad_norm", number(job.job.max_grad_norm));
  if (job.job.neftune_noise_alpha > 0.0) command.flag("neftune_noise_alpha", number(job.job.neftune_noise_alpha));
  if (job.job.label_smoothing > 0.0) command.flag("label_smoothing_factor", number(job.job.label_smoothing));
  if (job.job.loss == Loss::kLiger) command.flag("use_liger_kernel", true);
  add_parallelism(job, command);
  command.flag("dataset", "train.jsonl");
  command.flag("output_dir", "out");
  if (job.job.loss != Loss::kLiger && job.job.loss != Loss::kDefault) out.lacks("/loss", "how the loss is computed");
  if (job.job.checkpointing == Checkpointing::kOffload) {
    out.lacks("/gradient_checkpointing", "that the layers' inputs wait in host memory");
  }
  if (is_quantised(job.job) && job.job.quantization.prepare_kbit != PrepareKbit::kOff) {
    out.lacks("/quantization/prepare_kbit", "fp32 for what is not quantised");
  }
  if (job.job.freezes_by_name()) out.lacks("/freeze", "which modules are frozen");
  lacks_without_deepspeed(job, out);
  out.comment("A job from Tidemark for ms-swift 4.0. The data set is yours to fill in.");
  const std::string processes = job.gpus > 1 ? "NPROC_PER_NODE=" + std::to_string(job.gpus) + " " : "";
  const std::string_view rlhf = preference_words(job.job.preference).swift;
  if (!rlhf.empty()) command.flag("rlhf_type", rlhf);
  lacks_task(job, !rlhf.empty(), out);
  lacks_reference(job, false, out);
  const std::string_view on_text = job.task == "pretrain" ? "pt" : "sft";
  out.line(processes + "swift " + std::string{rlhf.empty() ? on_text : "rlhf"} + command.lines());
  return out.finish("ms-swift");
}

}  // namespace tidemark::exchange
