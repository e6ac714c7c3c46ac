// The YAML of LLaMA-Factory's own loop (LLaMA-Factory ff6d4d12 src/llamafactory/v1: config/{model_args,training_args,
// data_args}.py, plugins/model_plugins/{peft,quantization}.py, plugins/trainer_plugins/distributed/interface.py).
#include <string>
#include <utility>

#include "core/exchange/formats/shared.hpp"
#include "core/exchange/other_work.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_own_loop(const Look& look) {
  if (!look.has("model")) return 0;
  if (look.has("peft_config") && look.document.root.at("peft_config.export_dir") != nullptr) return 80;
  return look.has("train_dataset") && look.has("cutoff_len") ? 80 : 0;
}

void read_method(Keys& keys) {
  const Node* adapter = keys["peft_config"];
  const Node* packed = keys["quant_config"];
  // quantization_auto without bits: "No quantization method applied."
  if (keys.text("quant_config.name") == "auto" && keys["quant_config.quantization_bit"] == nullptr) packed = nullptr;
  const std::string name = adapter == nullptr ? "full" : keys.text("peft_config.name");
  keys.state("method", of(name == "lora" && packed != nullptr ? "qlora" : name), {adapter, packed},
             adapter == nullptr ? "without peft_config all is trained (core/model_engine.py: _init_model)" : "");
  if (packed != nullptr) {
    const Node* bits = keys["quant_config.quantization_bit"];
    const bool eight = bits != nullptr && bits->integer == 8;
    const Node* kind = keys["quant_config.quantization_type"];
    const Node* nested = keys["quant_config.double_quantization"];
    const char* why = "default (plugins/model_plugins/quantization.py: BnbParams)";
    keys.state("quantization.bits", of(eight ? 8 : 4), {bits, packed}, bits == nullptr ? why : "");
    keys.state("quantization.quant_type",
               of(eight             ? "int8"
                  : kind == nullptr ? "nf4"
                                    : kind->text),
               {kind, packed}, kind == nullptr ? why : "");
    if (!eight) {
      keys.state("quantization.double_quant", of(nested == nullptr || nested->boolean), {nested, packed},
                 nested == nullptr ? why : "");
      const Node* dtype = keys["quant_config.compute_dtype"];
      keys.state("quantization.quant_storage", of(dtype == nullptr ? "float16" : dtype->text), {dtype, packed},
                 "words are stored in compute_dtype, float16 unless stated");
    }
    keys.assume("quantization.prepare_kbit", of(false), "nothing is prepared");
    keys.touch("quant_config.name");
  }
  if (name == "freeze") {
    if (!keys.copy("freeze_trainable_layers", "peft_config.freeze_trainable_layers"))
      keys.assume("freeze_trainable_layers", of(2), "default 2 (plugins/model_plugins/peft.py: FreezeParams)");
    if (!keys.copy("freeze_trainable_modules", "peft_config.freeze_trainable_modules"))
      keys.assume("freeze_trainable_modules", of("all"), "default all (plugins/model_plugins/peft.py: FreezeParams)");
    keys.copy("freeze_extra_modules", "peft_config.freeze_extra_modules");
  }
}

void read_adapter(Keys& keys) {
  if (keys.text("peft_config.name") != "lora") return;
  const char* why = "default (plugins/model_plugins/peft.py: LoraParams)";
  const Node* target = keys["peft_config.target_modules"];
  const bool all = target == nullptr || target->text == "all";
  const Value names = all                 ? of("all-linear")
                      : target->is_list() ? word_list(*target)
                                          : of(std::vector{of(target->text)});
  keys.state("adapter.target_modules", names, {target}, target == nullptr ? why : "");
  if (!keys.copy("adapter.r", "peft_config.r")) keys.assume("adapter.r", of(8), why);
  if (!keys.copy("adapter.lora_alpha", "peft_config.lora_alpha")) keys.assume("adapter.lora_alpha", of(16), why);
  if (!keys.copy("adapter.lora_dropout", "peft_config.lora_dropout"))
    keys.assume("adapter.lora_dropout", of(0.05), why);
  for (const char* name : {"use_dora", "use_rslora"}) {
    const std::string key = std::string{"peft_config."} + name;
    if (keys.truthy(key)) keys.copy(std::string{"adapter."} + name, key);
  }
  if (const Node* beside = keys["peft_config.modules_to_save"]; beside != nullptr)
    keys.state("adapter.modules_to_save", word_list(*beside), {beside});
}

/// Rows by batching_strategy (core/utils/batching.py, plugins/trainer_plugins/batching.py): a budget of tokens is
/// micro_batch_size rows of cutoff_len.
void read_batch(Keys& keys) {
  if (!keys.copy("sequence_length", "cutoff_len")) keys.assume("sequence_length", of(2048), "default 2048");
  if (!keys.copy("micro_batch_size", "micro_batch_size")) keys.assume("micro_batch_size", of(1), "default 1");
  keys.copy("global_batch_size", "global_batch_size");
  const Node* strategy = keys["batching_strategy"];
  const bool joined = strategy != nullptr && contains(strategy->text, "padding_free");
  if (joined) {
    keys.state("padding_free", of(true), {strategy});
  } else {
    keys.state("padding", of(true), {strategy}, "rows are padded to the longest of their batch");
  }
}

void read_step(Keys& keys) {
  const Node* again = keys["enable_activation_checkpointing"];
  keys.state("gradient_checkpointing", of(again == nullptr || again->boolean ? "full" : "none"), {again},
             again == nullptr ? "on unless enable_activation_checkpointing is false" : "");
  const Node* attention = keys["flash_attn"];
  keys.state("attention", of(attention == nullptr ? "sdpa" : attention->text), {attention},
             attention == nullptr ? "default sdpa (config/model_args.py)" : "");
  // kernel_config: "auto" means kernels of Ascend's cards (plugins/model_plugins/kernels/interface.py).
  const Node* kernels = keys["kernel_config.name"];
  if (kernels != nullptr && contains(kernels->text, "liger")) {
    keys.state("liger", words({"rope", "rms_norm", "swiglu", "cross_entropy"}), {kernels},
               "as training needs the logits, the fused loss is switched off");
  }
  const Node* optimizer = keys["optim_config.name"];
  keys.state("optimizer", of(optimizer == nullptr ? "adamw_torch" : optimizer_word(optimizer->text)), {optimizer},
             optimizer == nullptr ? "torch.optim.AdamW (core/base_trainer.py: _init_optimizer)" : "");
  if (!keys.copy("max_grad_norm", "max_grad_norm")) keys.assume("max_grad_norm", of(1.0), "default 1.0");
  if (const Node* half = keys["bf16"]; half != nullptr) keys.state("bf16", to_value(*half), {half});
}

void read_parallelism(Keys& keys) {
  const Node* section = keys["dist_config"];
  const std::string name = keys.text("dist_config.name");
  const bool turbo = name == "fsdpturbo";
  if (name == "fsdp2" || turbo) {
    keys.state("parallelism.fsdp", of("fsdp2"), {section});
    const Node* reshard = keys["dist_config.reshard_after_forward"];
    keys.state("parallelism.reshard_after_forward", of(reshard == nullptr || reshard->boolean), {reshard},
               reshard == nullptr ? "default true" : "");
    if (keys.truthy("dist_config.offload_params"))
      keys.state("offload.parameters", of("cpu"), {keys["dist_config.offload_params"]});
    if (turbo) keys.copy("parallelism.expert", "dist_config.ep_size");
  } else if (name == "deepspeed") {
    state_deepspeed_file(keys, keys["dist_config.config_file"], false);
  } else if (section != nullptr) {
    keys.unknown("dist_config.name " + name);
  }
  if (const Node* context = keys["cp_size"]; context != nullptr && context->integer > 1)
    keys.state("parallelism.context", to_value(*context), {context});
  keys.copy("parallelism.fsdp_options.replicate", "mp_replicate_size");
  if (!keys.copy("parallelism.data", "dp_size")) keys.unknown("parallelism.data (launcher)");
}

/// What is trained for is said by the command (launcher.py: sft, dpo, rm), which names the file.
void read_task(Keys& keys) {
  const Node* loss = keys.any({"pref_loss", "pref_beta"});
  const Node* dataset = keys["train_dataset"];
  const std::string words_of = lower_case(std::string{base_name(keys.file)} + " " + keys.text("train_dataset"));
  const bool compares = loss != nullptr || contains(words_of, "dpo");
  const std::string word = keys.text("pref_loss");
  const bool sees = contains(words_of, "multimodal");
  if (sees) keys.unknown("images per sample, sizes");
  const std::string task = !compares ? (sees ? "vlm" : "sft") : word.empty() || word == "sigmoid" ? "dpo" : word;
  keys.state("task", of(task), {loss, dataset}, "which command reads the file is not in it");
}

void read_own_loop(const Look& look, Sources, Reading& reading) {
  Keys keys(look.document.root, look.source.name, reading);
  if (keys["peft_config.export_dir"] != nullptr)
    return tell_other_work(reading, keys.file, work_in_words("export_dir", kConverts));
  keys.assume("framework.name", of("llama_factory_v1"), "its keys are of LLaMA-Factory's own loop (USE_V1=1)");
  keys.copy("model", "model");
  const std::string kind = keys.text("model_class");
  if (!kind.empty() && kind != "llm") keys.unknown("model_class " + kind);
  read_parallelism(keys);
  read_method(keys);
  read_adapter(keys);
  read_batch(keys);
  read_step(keys);
  read_task(keys);
  keys.unknown("gpu");
  keys.unknown("LLaMA-Factory and transformers versions");
  for (const char* name :
       {"kernel_config", "init_config", "optim_config", "lr_scheduler_config", "cp_mode", "dist_config"})
    keys.touch(name);
  keys.tell_unread();
}

const Format kRows[] = {
    {"llamafactory_v1", "LLaMA-Factory v1 configuration", recognise_own_loop, read_own_loop, 50},
};

}  // namespace

extern const FormatRows llamafactory_v1_rows;
const FormatRows llamafactory_v1_rows = kRows;

}  // namespace tidemark::exchange
