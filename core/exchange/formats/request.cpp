// A request as this tool writes it (`tidemark export request`, the page's JSON): docs/request.schema.json.
#include <algorithm>
#include <string>
#include <string_view>

#include "core/exchange/fields.hpp"
#include "core/options/options.hpp"

namespace tidemark::exchange {
namespace {

/// Whether an option's name goes on behind this one: "parallelism.fsdp_options" holds
/// "parallelism.fsdp_options.groups".
bool holds_options(std::string_view path) {
  return std::any_of(options().begin(), options().end(), [&](const Option& option) {
    return option.name.size() > path.size() && option.name[path.size()] == '.' &&
           option.name.substr(0, path.size()) == path;
  });
}

bool is_key_of_requests(const std::string& key) {
  return key == "schema" || key == "verb" || find_option(key) != nullptr || holds_options(key);
}

bool says_model(const Look& look) {
  return look.has("model") || look.has("config") || look.has("parameters") || look.has("model_trace");
}

/// A document of none but our keys is ours, whatever the objects in it look like; with some that we do not know it is
/// unless another format claims it: the engine names the nearest word.
int recognise_request(const Look& look) {
  using Syntax = Look::Syntax;
  if (!look.is_map() || (look.syntax != Syntax::kJson && look.syntax != Syntax::kYaml)) return 0;
  if (!look.document.error.empty()) return 0;  // half of a request is another job
  const bool is_json = look.syntax == Syntax::kJson;
  const auto& keys = look.document.root.keys;
  const auto ours = std::count_if(keys.begin(), keys.end(), is_key_of_requests);
  const Node* schema = look.document.root.find("schema");
  const bool all = ours == std::ssize(keys);
  if (schema != nullptr && schema->is_integer() && (is_json || all)) return 98;
  if (!says_model(look)) return 0;
  if (all && (is_json || ours > 1)) return 98;
  return is_json && ours > 1 && 2 * ours >= std::ssize(keys) ? 70 : 0;
}

/// null leaves the default, unless it is one of the option's words (core/wire/read_request.cpp).
bool is_left_out(const std::string& path, const Node& item) {
  if (!item.is_null()) return false;
  const Option* const option = find_option(path);
  return option == nullptr || find_choice(*option, "null") == nullptr;
}

/// Each option by itself, so that each has its line; a model's configuration is one.
void read_options(Keys& keys, const Node& node, const std::string& prefix) {
  for (std::size_t at = 0; at < node.keys.size(); ++at) {
    const std::string path = prefix + node.keys[at];
    const Node& item = node.items[at];
    keys.touch(path);
    // Which question it was is for who reads it to say again.
    if (path == "schema" || path == "verb" || is_left_out(path, item)) continue;
    if (item.is_map() && !item.keys.empty() && holds_options(path)) {
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
