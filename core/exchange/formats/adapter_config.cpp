// PEFT's adapter_config.json (peft 0.18.0 config.py: PeftConfigMixin.save_pretrained; tuners/lora/config.py:
// LoraConfig).
#include <iterator>

#include "core/exchange/fields.hpp"
#include "core/exchange/formats/shared.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_adapter_config(const Look& look) {
  return look.is_map() && look.has("peft_type") ? 95 : 0;
}

/// Fields that are in the request as they are in the file, unless they say nothing.
void copy_adapter(Keys& keys, const std::string& type) {
  for (const char* name : {"lora_alpha", "lora_dropout", "target_modules"}) {
    keys.copy(std::string{"adapter."} + name, name);
  }
  // AdaLoRA ignores r; of OFT it is 0 where oft_block_size counts.
  if (const Node* r = keys["r"]; r != nullptr && r->integer > 0 && type != "adalora") keys.copy("adapter.r", "r");
  for (const std::string_view name : adapter_words()) {
    const Node* node = keys[name];
    if (node == nullptr) continue;
    keys.state("adapter." + std::string{name}, to_value(*node), {node});
  }
  keys.copy("adapter.lora_dropout", "vera_dropout");
  if (keys.truthy("coft")) keys.copy("adapter.coft", "coft");
  for (const char* name : {"modules_to_save", "rank_pattern", "alpha_pattern", "layers_to_transform",
                           "target_parameters", "trainable_token_indices", "exclude_modules", "bias"}) {
    const Node* node = keys[name];
    if (node == nullptr || (!node->is_number() && node->items.empty() && node->text.empty())) continue;
    if (node->text != "none") keys.state(std::string{"adapter."} + name, to_value(*node), {node});
  }
  for (const char* name : {"use_dora", "use_rslora"}) {
    if (keys.truthy(name)) keys.copy(std::string{"adapter."} + name, name);
  }
}

void read_adapter_config(const Look& look, Sources, Reading& reading) {
  Keys keys(look.document.root, look.source.name, reading);
  if (!keys.copy("model", "base_model_name_or_path")) keys.unknown("model: base_model_name_or_path is empty");
  const std::string type = lower_case(keys.text("peft_type"));
  keys.copy("peft_type", "peft_type");
  const bool stands = lora_stands_for(type);
  if (stands) not_counted(reading, keys.text("peft_type") + ", in the place of which LoRA stands");
  keys.state("method", of(stands || keys.truthy("use_dora") ? "lora" : type), {keys["peft_type"]});
  copy_adapter(keys, type);
  keys.copy("task_type", "task_type");
  keys.copy("peft_version", "peft_version");
  keys.unknown("lora or qlora: the file does not record quantisation of the base model");
  keys.unknown("batch, length, optimizer, precision: not recorded here");
  keys.unknown("gpu");
  keys.tell_unread();
}

const Format kRows[] = {
    {"adapter_config", "PEFT adapter_config.json", recognise_adapter_config, read_adapter_config, 30},
};

}  // namespace

extern const FormatRows adapter_config_rows;
const FormatRows adapter_config_rows = kRows;

}  // namespace tidemark::exchange
