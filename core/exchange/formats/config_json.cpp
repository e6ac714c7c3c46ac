// A model's config.json (transformers 5.12.1 configuration_utils.py: PretrainedConfig).
#include "core/exchange/fields.hpp"

namespace tidemark::exchange {
namespace {

int recognise_config_json(const Look& look) {
  if (!look.is_map() || look.syntax != Look::Syntax::kJson) return 0;
  if (look.has("model_type") &&
      (look.has("architectures") || look.has("hidden_size") || look.has("vocab_size") || look.has("ops")))
    return 80;
  return look.has("model_type") && base_name(look.source.name).find("config") != std::string_view::npos ? 60 : 0;
}

void read_config_json(const Look& look, Sources, Reading& reading) {
  Keys keys(look.document.root, look.source.name, reading);
  const Node& root = look.document.root;
  keys.state("config", to_value(root), {&root});
  keys.copy("model_type", "model_type");
  keys.copy_any("checkpoint_dtype", {"dtype", "torch_dtype"});
  if (!keys.has("checkpoint_dtype"))
    keys.copy_any("checkpoint_dtype", {"text_config.dtype", "text_config.torch_dtype"});
  keys.unknown("everything about training");
}

const Format kRows[] = {
    {"config_json", "a model's config.json", recognise_config_json, read_config_json, 20},
};

}  // namespace

extern const FormatRows config_json_rows;
const FormatRows config_json_rows = kRows;

}  // namespace tidemark::exchange
