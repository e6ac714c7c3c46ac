// YAML of TRL's command line and the alignment handbook: TrainingArguments, ModelConfig and the trainer's own config in
// one file (trl v1.9.0 trl/trainer/{base,sft,dpo,model}_config.py; defaults by version in docs/imports.md).
#include <algorithm>
#include <utility>

#include "core/exchange/formats/shared.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_trl_yaml(const Look& look) {
  if (!look.is_map() || !look.has("model_name_or_path") || look.has("finetuning_type") || look.has("template"))
    return 0;
  int score = 40;
  for (const char* key :
       {"per_device_train_batch_size", "torch_dtype", "dtype", "dataset_mixer", "dataset_name", "use_peft",
        "learning_rate", "bf16", "gradient_checkpointing", "max_seq_length", "max_length", "num_train_epochs",
        "report_to", "gradient_accumulation_steps", "attn_implementation", "dataset_mixture"}) {
    if (look.has(key)) score += 10;
  }
  return std::min(score, 85);
}

/// The recipe that the weights' dtype and the autocast flag make (transformers 4; docs/imports.md).
void read_precision(Keys& keys) {
  const Node* dtype = keys.any({"torch_dtype", "dtype", "model_init_kwargs.torch_dtype", "model_init_kwargs.dtype"});
  const Node* bf16 = keys["bf16"];
  const Node* fp16 = keys["fp16"];
  const bool brain = bf16 != nullptr && bf16->boolean;
  const bool half = fp16 != nullptr && fp16->boolean;
  const std::string word = dtype == nullptr ? std::string{} : dtype->text;
  refuse_both_halves(keys.reading, brain, half);
  if (word == "auto") return keys.unknown("precision: torch_dtype auto is the checkpoint's dtype");
  if (contains(word, "float16")) {
    const std::string_view loaded = contains(word, "bfloat16") ? "bf16" : "fp16";
    return keys.state("precision", precision_of(loaded, brain ? "bf16" : half ? "fp16" : ""), {dtype, bf16, fp16});
  }
  if (brain || half) {
    return keys.state("precision", of(brain ? "amp_bf16" : "amp_fp16"), {brain ? bf16 : fp16, dtype},
                      dtype == nullptr ? "no dtype: TRL's ModelConfig has float32" : "");
  }
  keys.unknown("precision");
}

void read_method(Keys& keys) {
  const Node* peft = keys["use_peft"];
  const Node* four = keys["load_in_4bit"];
  const Node* eight = keys["load_in_8bit"];
  const Node* rank = keys["lora_r"];
  const bool bits4 = four != nullptr && four->boolean;
  const bool bits8 = eight != nullptr && eight->boolean;
  // The handbook's older code took lora_r alone for use_peft.
  const bool adapted = peft != nullptr ? peft->boolean : bits4 && rank != nullptr;
  refuse_both_widths(keys.reading, bits4, bits8);
  if (!adapted && (bits4 || bits8)) refuse_packed_alone(keys.reading, bits4 ? "load_in_4bit" : "load_in_8bit");
  if (!adapted) return keys.state("method", of("full"), {peft}, "use_peft defaults to false (TRL ModelConfig)");
  keys.state("method", of(bits4 || bits8 ? "qlora" : "lora"), {peft, four, eight, rank});
  if (bits4 || bits8) {
    const Node* node = bits4 ? four : eight;
    keys.state("quantization.bits", of(bits4 ? 4 : 8), {node});
    const Node* kind = keys["bnb_4bit_quant_type"];
    const Node* nested = keys["use_bnb_nested_quant"];
    keys.state("quantization.quant_type",
               of(!bits4            ? "int8"
                  : kind != nullptr ? kind->text
                                    : "nf4"),
               {kind, node}, kind == nullptr ? "TRL ModelConfig: nf4" : "");
    if (bits4) {
      keys.state("quantization.double_quant", of(nested != nullptr && nested->boolean), {nested, node},
                 nested == nullptr ? "TRL ModelConfig: use_bnb_nested_quant defaults to false" : "");
    }
  }
  const auto option = [&](const char* path, const char* key, Value standard, const char* why) {
    if (!keys.copy(path, key)) keys.assume(path, std::move(standard), why);
  };
  option("adapter.r", "lora_r", of(16), "TRL ModelConfig: 16");
  option("adapter.lora_alpha", "lora_alpha", of(32), "TRL ModelConfig: 32");
  option("adapter.lora_dropout", "lora_dropout", of(0.05), "TRL ModelConfig: 0.05");
  if (const Node* modules = keys["lora_target_modules"]; modules != nullptr) {
    const bool one = modules->is_list() && modules->items.size() == 1 && modules->items[0].text == "all-linear";
    keys.state("adapter.target_modules", one ? of("all-linear") : to_value(*modules), {modules});
  } else {
    keys.assume("adapter.target_modules", of("auto"),
                "TRL ModelConfig: None, which is PEFT's choice for the model type");
  }
  if (const Node* saved = keys["lora_modules_to_save"]; saved != nullptr)
    keys.state("adapter.modules_to_save", to_value(*saved), {saved});
}

/// The task stands in the command or the file's name, not in the file.
std::string task_of(Keys& keys) {
  const std::string path = lower_case(keys.file);
  for (const char* task :
       {"grpo", "rloo", "orpo", "simpo", "kto", "bco", "online_dpo", "dpo", "reward", "gkd", "ppo", "prm", "tpo"}) {
    if (contains(path, task)) return task;
  }
  if (keys["num_generations"] != nullptr) return "grpo";
  if (keys["lmbda"] != nullptr || keys["teacher_model_name_or_path"] != nullptr) return "gkd";
  return keys["beta"] != nullptr || keys["max_prompt_length"] != nullptr ? "dpo" : "sft";
}

void read_lengths(Keys& keys, const std::string& task) {
  if (!keys.copy_any("sequence_length", {"max_length", "max_seq_length"}) && !generates_answers(task)) {
    const bool pairs = task == "online_dpo";  // trl 1.9 experimental/online_dpo/online_dpo_config.py
    keys.assume("sequence_length", of(pairs ? 512 : 1024),
                pairs ? "OnlineDPOConfig's default" : "TRL default 1024 (SFTConfig since 0.15, DPOConfig since 0.14)");
  }
  keys.copy("max_prompt_length", "max_prompt_length");
  if (generates_answers(task)) {
    state_rollout(keys, "", "vllm_gpu_memory_utilization", "colocate", "the trainer's default in trl 1, server before");
    keys.copy("reward_model", "reward_model_name_or_path");  // trl 1.9 scripts/{grpo,rloo}.py
    if (!keys.has("max_prompt_length")) keys.unknown("max_prompt_length: prompts are not cut; 512 before trl 0.26");
  }
  if (task == "online_dpo") {
    keys.copy("max_completion_length", "max_new_tokens");
    keys.copy("reward_model", "reward_model_path");
    keys.assume("padding", of(true), "answers end at different lengths");
  }
  if (task == "gkd") {
    for (const OfRollout& one : distillation_words()) keys.copy(one.path, one.key);
  }
  keys.copy("packing", "packing");
  keys.copy("padding_free", "padding_free");
  keys.copy("activation_offloading", "activation_offloading");
  if (task == "dpo" || task == "kto" || task == "bco" || task == "online_dpo") {
    const Finding* method = find(keys.reading, "method");
    keys.state("reference_model.present", of(true), {keys["use_peft"]}, "the loss compares with a reference model");
    keys.assume("reference_model.shared_with_adapter", of(method != nullptr && method->value.string != "full"),
                "with an adapter it is the model without it; else a copy");
  }
}

void read_trainer(Keys& keys) {
  if (!keys.copy("micro_batch_size", "per_device_train_batch_size"))
    keys.assume("micro_batch_size", of(8), "default 8");
  if (!keys.copy("gradient_accumulation_steps", "gradient_accumulation_steps"))
    keys.assume("gradient_accumulation_steps", of(1), "default 1");
  // transformers 5.24 training_args.py: the names until 5.22 are aliases.
  const Node* kept = keys["activation_checkpointing"];
  const bool by_new_name = kept != nullptr;
  if (!by_new_name) kept = keys["gradient_checkpointing"];
  const std::string kwargs = by_new_name ? "activation_checkpointing_kwargs" : "gradient_checkpointing_kwargs";
  if (kept != nullptr) {
    const Node* every = keys[kwargs + ".every_n_layers"];
    const bool some = kept->boolean && every != nullptr && every->integer > 1;
    keys.state("gradient_checkpointing",
               some ? object({{"every", of(every->integer)}}) : of(kept->boolean ? "full" : "none"), {kept, every});
    keys.copy("use_reentrant", kwargs + ".use_reentrant");
  } else {
    keys.assume("gradient_checkpointing", of("full"), "on by default since trl 0.22, off before");
  }
  const Node* attention = keys["attn_implementation"];
  keys.state("attention", of(attention == nullptr ? "sdpa" : attention->text), {attention},
             attention == nullptr ? "default" : "");
  keys.copy("optim_args", "optim_args");
  keys.copy("optim_target_modules", "optim_target_modules");
  if (const Node* optim = keys["optim"]; optim != nullptr) {
    keys.state("optimizer", of(optimizer_word(optim->text)), {optim});
  } else {
    keys.unknown("optimizer: adamw_torch, fused with torch 2.8 and later");
  }
  keys.copy("max_grad_norm", "max_grad_norm");
  keys.copy("neftune_noise_alpha", "neftune_noise_alpha");
  keys.copy("label_smoothing_factor", "label_smoothing_factor");
  if (keys.truthy("torch_compile")) keys.state("compile", of("full"), {keys["torch_compile"]});
  if (const Node* deepspeed = keys["deepspeed"]; deepspeed != nullptr) state_deepspeed_file(keys, deepspeed, false);
}

/// trl 1.9 trainer/sft_config.py: __post_init__. max_seq_length is a word of releases before 0.20.
void read_loss(Keys& keys, const std::string& task) {
  const Node* liger = keys.any({"use_liger_kernel", "use_liger", "use_liger_loss"});
  if (liger != nullptr && liger->boolean) return keys.state("loss", of("liger"), {liger});
  const Node* kind = keys["loss_type"];
  if (task == "dpo" && names_sft(kind)) not_counted(keys.reading, kChosenCrossEntropy, {keys.origin(kind)});
  if (task != "sft") return;
  if (kind != nullptr && (kind->text == "chunked_nll" || kind->text == "nll"))
    return keys.state("loss", of(kind->text == "nll" ? "default" : "chunked"), {kind});
  if (kind != nullptr || keys["max_seq_length"] != nullptr) return;
  keys.assume("loss", of("chunked"), "chunked_nll is SFTConfig's default since trl 1.7, nll before");
}

void read_evaluation(Keys& keys) {
  const Node* strategy = keys.any({"eval_strategy", "evaluation_strategy"});
  const Node* batch = keys["per_device_eval_batch_size"];
  if (strategy == nullptr || strategy->is_bool() || strategy->text == "no") return;
  if (batch != nullptr) return keys.state("evaluation.micro_batch_size", to_value(*batch), {batch});
  keys.state("evaluation.micro_batch_size", of(8), {strategy},
             "per_device_eval_batch_size default 8 (TrainingArguments)");
}

void read_trl_yaml(const Look& look, Sources, Reading& reading) {
  Keys keys(look.document.root, look.source.name, reading);
  keys.assume("framework.name", of("transformers"), "TRL's trainers are transformers' Trainer");
  keys.copy("model", "model_name_or_path");
  const std::string task = task_of(keys);
  keys.assume("task", of(task), "from the file path; the YAML does not say");
  read_method(keys);
  read_trainer(keys);
  read_loss(keys, task);
  read_precision(keys);
  read_lengths(keys, task);
  read_evaluation(keys);
  for (const char* question : {"gpu", "parallelism: given by the accelerate config beside it", "versions"})
    keys.unknown(question);
  keys.tell_unread();
}

const Format kRows[] = {
    {"trl_yaml", "TRL or TrainingArguments YAML", recognise_trl_yaml, read_trl_yaml, 50},
};

}  // namespace

extern const FormatRows trl_yaml_rows;
const FormatRows trl_yaml_rows = kRows;

}  // namespace tidemark::exchange
