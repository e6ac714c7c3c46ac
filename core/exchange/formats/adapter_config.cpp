// PEFT's adapter_config.json (peft 0.18.0 config.py: PeftConfigMixin.save_pretrained; tuners/lora/config.py:
// LoraConfig).
#include <iterator>

#include "core/exchange/fields.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_adapter_config(const Look& look) {
  return look.is_map() && look.has("peft_type") ? 95 : 0;
}

/// Fields that are in the request as they are in the file, unless they say nothing.
void copy_adapter(Keys& keys) {
  for (const char* name : {"r", "lora_alpha", "lora_dropout", "target_modules"}) {
    keys.copy(std::string{"adapter."} + name, name);
  }
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
  keys.state("method", of(keys.truthy("use_dora") ? "lora" : type), {keys["peft_type"]});
  copy_adapter(keys);
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
