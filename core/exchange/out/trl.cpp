// trl 1.9.0 trainer/sft_config.py, sft_trainer.py.
#include "core/exchange/out/preferences.hpp"
#include "core/exchange/out/python.hpp"

namespace tidemark::exchange {
namespace {

/// sft_config.py __post_init__: where nothing is said, "chunked_nll", or "nll" beside Liger's.
void write_loss(const ExportJob& job, Writer& out) {
  if (job.job.loss == Loss::kChunked) {
    out.line("    loss_type=\"chunked_nll\",");
  } else if (job.job.loss == Loss::kDefault) {
    out.line("    loss_type=\"nll\",");
  } else {
    lacks_loss(job, out);
  }
}

}  // namespace

Exported write_trl(const ExportJob& job) {
  Writer out;
  const bool prepared = is_quantised(job.job) && job.job.quantization.prepare_kbit == PrepareKbit::kAll;
  out.comment("A job from Tidemark for trl 1.9, transformers 5.12 and peft 0.18. The data set is yours to fill in.");
  out.line("import torch");
  out.line("from datasets import load_dataset");
  if (has_adapter(job.job)) {
    out.line(std::string{"from peft import LoraConfig"} + (prepared ? ", prepare_model_for_kbit_training" : ""));
  }
  out.line("from transformers import " + auto_class(job.class_name) +
           (is_quantised(job.job) ? ", BitsAndBytesConfig" : ""));
  const PreferenceWords& words = preference_words(job.job.preference);
  const bool on_text = words.trl.empty();
  const std::string kind{on_text ? "SFT" : words.trl};
  out.line("from " + std::string{on_text ? "trl" : words.trl_module} + " import " + kind + "Config, " + kind +
           "Trainer");
  lacks_task(job, !on_text, out);
  out.line();
  write_model(job, out);
  write_freezing(job, out);
  if (has_adapter(job.job)) write_lora_config(job, out);
  out.line();
  out.line("dataset = load_dataset(\"json\", data_files=\"train.jsonl\", split=\"train\")  # yours");
  write_arguments(job, kind + "Config", out);
  if (on_text) write_loss(job, out);
  out.line("    max_length=" + std::to_string(job.job.sequence_length) + ",");
  if (on_text) out.line(std::string{"    packing="} + (job.job.packing ? "True" : "False") + ",");
  if (job.job.reference == Reference::kPrecomputed && job.job.preference == Preference::kDpo) {
    out.line("    precompute_ref_log_probs=True,");
  }
  lacks_reference(job, job.job.preference == Preference::kDpo, out);
  if (!on_text) lacks_loss(job, out);
  out.line(")");
  // trl 1.9.0 trainer/sft_trainer.py: adapters beside 4- and 8-bit weights are cast to bf16.
  if (is_quantised(job.job) && job.job.adapter.dtype == Dtype::kFp32) {
    out.lacks("/adapter/dtype", "fp32 adapters beside quantised weights: TRL makes them bf16 since 0.26");
  }
  lacks_without_deepspeed(job, out);
  out.line("trainer = " + kind + "Trainer(");
  out.line("    model=model,");
  out.line("    args=args,");
  out.line("    train_dataset=dataset,");
  if (has_adapter(job.job)) out.line("    peft_config=peft_config,");
  out.line(")");
  out.line("trainer.train()");
  return out.finish("A TRL script");
}

}  // namespace tidemark::exchange
