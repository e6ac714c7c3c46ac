// A request as this tool writes it (`tidemark export request`, the page's JSON): docs/request.schema.json.
#include "core/exchange/fields.hpp"

namespace tidemark::exchange {
namespace {

int recognise_request(const Look& look) {
  if (!look.is_map() || look.syntax != Look::Syntax::kJson) return 0;
  const Node* schema = look.document.root.find("schema");
  if (schema != nullptr && schema->is_integer()) return 97;
  const bool of_model = look.has("model") || look.has("config") || look.has("parameters");
  return of_model && (look.has("method") || look.has("micro_batch_size") || look.has("gpus")) ? 70 : 0;
}

/// Each option by itself, so that each has its line; a model's configuration is one.
void read_options(Keys& keys, const Node& node, const std::string& prefix) {
  for (std::size_t at = 0; at < node.keys.size(); ++at) {
    const std::string path = prefix + node.keys[at];
    const Node& item = node.items[at];
    keys.touch(path);
    if (path == "schema" || item.is_null()) continue;
    if (item.is_map() && !item.keys.empty() && path != "config" && path != "gpu" && path != "model_trace" &&
        prefix.empty()) {
      read_options(keys, item, path + ".");
    } else {
      keys.state(path, to_value(item), {&item});
    }
  }
}

void read_request(const Look& look, Sources, Reading& reading) {
  Keys keys(look.document.root, look.source.name, reading);
  read_options(keys, look.document.root, "");
  if (!keys.has("gpu") && !keys.has("gpus")) keys.unknown("gpu");
}

const Format kRows[] = {
    {"request", "a request of ours", recognise_request, read_request, 85},
};

}  // namespace

extern const FormatRows request_rows;
const FormatRows request_rows = kRows;

}  // namespace tidemark::exchange
