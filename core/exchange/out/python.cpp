#include "core/exchange/out/python.hpp"

#include <algorithm>

namespace tidemark::exchange {
namespace {

std::string python(bool value) {
  return value ? "True" : "False";
}

/// `dtype` is the name since transformers 4.56 (modeling_utils.py: from_pretrained).
std::string_view dtype_word(const Framework& framework) {
  return framework.name != "transformers" || framework.at_least(4, 56) ? "dtype" : "torch_dtype";
}

std::string targets(const ExportJob& job) {
  const ModuleChoice& choice = job.job.adapter.target_modules;
  if (choice.kind == ModuleChoice::Kind::kAllLinear) return quoted("all-linear");
  if (choice.kind == ModuleChoice::Kind::kByPeft) return "None";
  if (choice.kind == ModuleChoice::Kind::kExpression) return quoted(choice.expression);
  return quoted_list(choice.kind == ModuleChoice::Kind::kAttention ? attention_modules(job) : choice.names);
}

std::string_view task_type(const ExportJob& job) {
  const std::string& name = job.class_name;
  const auto holds = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  if (holds("ForSequenceClassification")) return "SEQ_CLS";
  if (holds("ForTokenClassification")) return "TOKEN_CLS";
  if (holds("ForQuestionAnswering")) return "QUESTION_ANS";
  return holds("ForCausalLM") || holds("LMHeadModel") ? "CAUSAL_LM" : "";
}

}  // namespace

std::string auto_class(const std::string& class_name) {
  for (std::string_view head : {"ForCausalLM", "ForSequenceClassification", "ForTokenClassification",
                                "ForQuestionAnswering", "ForMaskedLM", "ForImageClassification"}) {
    if (class_name.find(head) != std::string::npos) return "AutoModel" + std::string{head};
  }
  return class_name.empty() || class_name == "GPT2LMHeadModel" ? "AutoModelForCausalLM" : class_name;
}

void write_quantization(const ExportJob& job, Writer& out) {
  const Quantization& how = job.job.quantization;
  out.line("bnb_config = BitsAndBytesConfig(");
  if (how.bits == 8) {
    out.line("    load_in_8bit=True,");
  } else {
    out.line("    load_in_4bit=True,");
    out.line("    bnb_4bit_quant_type=" + quoted(how.quant_type == QuantType::kFp4 ? "fp4" : "nf4") + ",");
    out.line("    bnb_4bit_use_double_quant=" + python(how.double_quant) + ",");
    const Dtype compute = job.job.recipe.autocast.value_or(job.job.recipe.weights);
    out.line("    bnb_4bit_compute_dtype=torch." + std::string{torch_name(compute)} + ",");
  }
  out.line(")");
}

void write_model(const ExportJob& job, Writer& out) {
  if (is_quantised(job.job)) write_quantization(job, out);
  out.line("model = " + auto_class(job.class_name) + ".from_pretrained(");
  out.line("    " + quoted(job.model) + ",");
  out.line("    " + std::string{dtype_word(job.job.framework)} + "=torch." +
           std::string{torch_name(job.job.recipe.weights)} + ",");
  out.line("    attn_implementation=" + quoted(attention_name(job.job.attention)) + ",");
  if (is_quantised(job.job)) out.line("    quantization_config=bnb_config,");
  out.line(")");
  if (is_quantised(job.job) && job.job.quantization.prepare_kbit == PrepareKbit::kAll) {
    out.line("model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=" +
             python(checkpoints(job.job)) + ")");
  }
}

std::string projected_modules(const ModuleChoice& choice) {
  if (choice.kind == ModuleChoice::Kind::kExpression) return quoted(choice.expression);
  return choice.names.empty() ? "\"all-linear\"" : quoted_list(choice.names);
}

void write_lora_config(const ExportJob& job, Writer& out) {
  const Adapter& adapter = job.job.adapter;
  out.line("peft_config = LoraConfig(");
  out.line("    r=" + std::to_string(adapter.r) + ",");
  out.line("    lora_alpha=" + number(adapter.lora_alpha) + ",");
  out.line("    lora_dropout=" + number(adapter.lora_dropout) + ",");
  out.line("    target_modules=" + targets(job) + ",");
  if (!adapter.modules_to_save.empty()) out.line("    modules_to_save=" + quoted_list(adapter.modules_to_save) + ",");
  if (adapter.use_dora) out.line("    use_dora=True,");
  if (adapter.bias != TrainedBiases::kNone) {
    out.line("    bias=" + quoted(adapter.bias == TrainedBiases::kAll ? "all" : "lora_only") + ",");
  }
  if (const std::string_view type = task_type(job); !type.empty()) {
    out.line("    task_type=" + quoted(type) + ",");
  }
  out.line(")");
  const bool rare = !adapter.exclude_modules.empty() || !adapter.rank_pattern.empty() ||
                    !adapter.layers_to_transform.empty() || !adapter.target_parameters.empty();
  if (rare) out.lacks("/adapter", "ranks, layers or parameters that differ: LoraConfig's rarer keys are left to you");
}

void write_arguments(const ExportJob& job, std::string_view type, Writer& out) {
  const TrainingJob& how = job.job;
  out.line("args = " + std::string{type} + "(");
  out.line("    output_dir=\"out\",");
  out.line("    per_device_train_batch_size=" + std::to_string(how.micro_batch_size) + ",");
  out.line("    gradient_accumulation_steps=" + std::to_string(how.gradient_accumulation_steps) + ",");
  out.line("    bf16=" + python(casts_to(how, Dtype::kBf16)) + ",");
  out.line("    fp16=" + python(casts_to(how, Dtype::kFp16)) + ",");
  out.line("    optim=" + quoted(how.optimizer) + ",");
  if (projects(how)) {
    out.line("    optim_args=" + quoted(optim_args(how)) + ",");
    out.line("    optim_target_modules=" + projected_modules(how.low_rank.targets) + ",");
  }
  out.line("    max_grad_norm=" + number(how.max_grad_norm) + ",");
  if (how.neftune_noise_alpha > 0.0) {
    out.line("    neftune_noise_alpha=" + number(how.neftune_noise_alpha) + ",");
  }
  if (how.label_smoothing > 0.0) out.line("    label_smoothing_factor=" + number(how.label_smoothing) + ",");
  out.line("    gradient_checkpointing=" + python(checkpoints(how)) + ",");
  if (checkpoints(how)) {
    out.line("    gradient_checkpointing_kwargs={\"use_reentrant\": " + python(how.use_reentrant) + "},");
  }
  if (how.loss == Loss::kLiger) out.line("    use_liger_kernel=True,");
  if (how.checkpointing == Checkpointing::kOffload) {
    out.lacks("/gradient_checkpointing", "that the layers' inputs wait in host memory");
  }
  if (how.data_parallel.gradient_as_bucket_view) out.lacks("/parallelism/ddp", "gradient_as_bucket_view");
}

void lacks_loss(const ExportJob& job, Writer& out) {
  const Loss loss = job.job.loss;
  if (loss != Loss::kLiger && loss != Loss::kDefault) out.lacks("/loss", "how the loss is computed");
}

void write_freezing(const ExportJob& job, Writer& out) {
  if (job.job.method != Method::kFreeze || !job.job.freezes_by_name()) return;
  out.line("for name, parameter in model.named_parameters():");
  const std::string trained = quoted_list(job.job.trainable);
  if (job.job.freeze.empty()) {
    out.line("    parameter.requires_grad = any(part in name for part in " + trained + ")");
    return;
  }
  out.line("    if any(part in name for part in " + quoted_list(job.job.freeze) + "):");
  out.line("        parameter.requires_grad = " +
           (job.job.trainable.empty() ? "False" : "any(part in name for part in " + trained + ")"));
}

}  // namespace tidemark::exchange
