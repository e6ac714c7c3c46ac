// unsloth@015bdef0 unsloth/models/llama.py: FastLlamaModel.from_pretrained, get_peft_model.
#include "core/exchange/out/preferences.hpp"
#include "core/exchange/out/python.hpp"

namespace tidemark::exchange {
namespace {

std::vector<std::string> modules_of(const ExportJob& job) {
  const ModuleChoice& choice = job.job.adapter.target_modules;
  if (choice.kind == ModuleChoice::Kind::kNames) return choice.names;
  if (choice.kind == ModuleChoice::Kind::kAttention) return attention_modules(job);
  return {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};
}

/// "unsloth" keeps the inputs in host memory.
std::string_view checkpointing_of(const TrainingJob& job) {
  if (job.checkpointing == Checkpointing::kOffload) return "\"unsloth\"";
  return checkpoints(job) ? "True" : "False";
}

void write_load(const ExportJob& job, Writer& out) {
  const bool four = is_quantised(job.job) && job.job.quantization.bits == 4;
  const bool eight = is_quantised(job.job) && job.job.quantization.bits == 8;
  out.line("model, tokenizer = FastLanguageModel.from_pretrained(");
  out.line("    model_name=" + quoted(job.model) + ",");
  out.line("    max_seq_length=" + std::to_string(job.job.sequence_length) + ",");
  out.line("    dtype=torch." + std::string{torch_name(job.job.recipe.weights)} + ",");
  out.line(std::string{"    load_in_4bit="} + (four ? "True" : "False") + ",");
  if (eight) out.line("    load_in_8bit=True,");
  if (!has_adapter(job.job)) {
    out.line("    full_finetuning=True,");
    out.line("    use_gradient_checkpointing=" + std::string{checkpointing_of(job.job)} + ",");
  }
  out.line(")");
}

void write_adapter(const ExportJob& job, Writer& out) {
  const Adapter& adapter = job.job.adapter;
  out.line("model = FastLanguageModel.get_peft_model(");
  out.line("    model,");
  out.line("    r=" + std::to_string(adapter.r) + ",");
  out.line("    lora_alpha=" + number(adapter.lora_alpha) + ",");
  out.line("    lora_dropout=" + number(adapter.lora_dropout) + ",");
  out.line("    target_modules=" + quoted_list(modules_of(job)) + ",");
  if (!adapter.modules_to_save.empty()) out.line("    modules_to_save=" + quoted_list(adapter.modules_to_save) + ",");
  out.line("    use_gradient_checkpointing=" + std::string{checkpointing_of(job.job)} + ",");
  out.line(")");
  if (adapter.use_dora) out.lacks("/adapter/use_dora", "DoRA: Unsloth has none");
  if (adapter.target_modules.kind == ModuleChoice::Kind::kByPeft) out.lacks("/adapter/target_modules", kNoneByPeft);
  if (adapter.target_modules.kind == ModuleChoice::Kind::kExpression) {
    out.lacks("/adapter/target_modules", "modules by an expression; all seven projections are adapted here");
  }
}

}  // namespace

Exported write_unsloth(const ExportJob& job) {
  Writer out;
  out.comment("A job from Tidemark for unsloth 2026.8 and trl 0.24. The data set is yours to fill in.");
  out.line("from unsloth import FastLanguageModel");
  out.line("import torch");
  out.line("from datasets import load_dataset");
  out.line("from trl import SFTConfig, SFTTrainer");
  out.line();
  write_load(job, out);
  if (has_adapter(job.job)) write_adapter(job, out);
  out.line("dataset = load_dataset(\"json\", data_files=\"train.jsonl\", split=\"train\")  # yours");
  write_arguments(job, "SFTConfig", out);
  lacks_loss(job, out);
  out.line("    max_length=" + std::to_string(job.job.sequence_length) + ",");
  out.line(std::string{"    packing="} + (job.job.packing ? "True" : "False") + ",");
  out.line(")");
  if (job.job.framework.name != "unsloth") {
    out.lacks("/framework", "the framework: ask for \"unsloth\" to get the figure of its kernels and its loss");
  }
  lacks_without_deepspeed(job, out);
  lacks_task(job, false, out);
  out.line("trainer = SFTTrainer(model=model, tokenizer=tokenizer, args=args, train_dataset=dataset)");
  out.line("trainer.train()");
  return out.finish("An Unsloth script");
}

}  // namespace tidemark::exchange
