// transformers 5.12.1 training_args.py, modeling_utils.py: from_pretrained; peft 0.18.0 tuners/lora/config.py.
#include "core/exchange/out/preferences.hpp"
#include "core/exchange/out/python.hpp"

namespace tidemark::exchange {
namespace {

void write_imports(const ExportJob& job, Writer& out) {
  const std::string model = auto_class(job.class_name);
  const bool quantised = is_quantised(job.job);
  out.line("import torch");
  out.line("from datasets import load_dataset");
  if (has_adapter(job.job)) {
    const bool prepared = quantised && job.job.quantization.prepare_kbit == PrepareKbit::kAll;
    out.line(std::string{"from peft import LoraConfig, get_peft_model"} +
             (prepared ? ", prepare_model_for_kbit_training" : ""));
  }
  out.line("from transformers import " + model + ", AutoTokenizer, " + (quantised ? "BitsAndBytesConfig, " : "") +
           "DataCollatorForLanguageModeling, Trainer, TrainingArguments");
  out.line();
}

/// Every sample has the stated length, so that no batch is longer.
void write_data(const ExportJob& job, Writer& out) {
  out.line("max_length = " + std::to_string(job.job.sequence_length));
  out.line("tokenizer = AutoTokenizer.from_pretrained(" + quoted(job.model) + ")");
  out.line("tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token");
  out.line("dataset = load_dataset(\"text\", data_files=\"train.txt\", split=\"train\")  # yours");
  out.line("dataset = dataset.map(");
  out.line(
      "    lambda sample: tokenizer(sample[\"text\"], max_length=max_length, padding=\"max_length\", "
      "truncation=True),");
  out.line("    remove_columns=dataset.column_names,");
  out.line(")");
}

}  // namespace

Exported write_trainer(const ExportJob& job) {
  Writer out;
  out.comment("A job from Tidemark for transformers 5.12 and peft 0.18. The data set is yours to fill in.");
  write_imports(job, out);
  write_model(job, out);
  write_freezing(job, out);
  if (has_adapter(job.job)) {
    write_lora_config(job, out);
    // peft 0.18.0 mapping_func.py: adapters of a 16-bit base are fp32 unless told otherwise.
    const bool half = job.job.adapter.dtype != Dtype::kFp32;
    out.line(std::string{"model = get_peft_model(model, peft_config"} +
             (half ? ", autocast_adapter_dtype=False)" : ")"));
  }
  out.line();
  write_data(job, out);
  out.line();
  write_arguments(job, "TrainingArguments", out);
  out.line(")");
  lacks_loss(job, out);
  lacks_task(job, false, out);
  if (job.job.packing) out.lacks("/packing", "packed samples: the Trainer packs none");
  lacks_without_deepspeed(job, out);
  out.line("trainer = Trainer(");
  out.line("    model=model,");
  out.line("    args=args,");
  out.line("    train_dataset=dataset,");
  out.line("    data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),");
  out.line(")");
  out.line("trainer.train()");
  return out.finish("A Trainer script");
}

}  // namespace tidemark::exchange
