#include "core/exchange/unsloth_targets.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace tidemark::exchange {
namespace {

void add(std::string& list, bool wanted, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (!wanted) return;
    if (!list.empty()) list += '|';
    list += word;
  }
}

std::string_view stem(std::string_view name) {
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name;
}

/// Names of modules as an expression takes them: none of theirs means more than itself but for the dot. What several of
/// them differ in is a number at the end: that may be any, so that the engine need not tell layers apart by it.
std::string names_of(const UnslothParts& parts) {
  std::vector<std::string> all;
  for (const std::string& name : parts.names) {
    const auto alike = std::count_if(parts.names.begin(), parts.names.end(),
                                     [&](const std::string& other) { return stem(other) == stem(name); });
    const bool any_number = alike > 1 && stem(name).size() < name.size();
    std::string words;
    for (const char letter : any_number ? stem(name) : std::string_view{name}) {
      if (letter == '.') words += '\\';
      words += letter;
    }
    if (any_number) words += "\\d+";
    if (std::find(all.begin(), all.end(), words) == all.end()) all.push_back(std::move(words));
  }
  std::string list;
  for (const std::string& one : all) list += (list.empty() ? "" : "|") + one;
  return list;
}

// The ends of what the linear layers of attention and feed-forward are called in transformers' models.
constexpr std::string_view kLinear =
    "proj|in_proj\\w+|qkv|query|key|value|dense|dense_\\w+|linear|fc\\d|w\\d|Wqkv|Wi|Wo|c_attn|c_fc";

}  // namespace

// Where no names are given Unsloth lists those of the model's linear layers that occur more than once; the reader knows
// no model, and names those of all.
std::string unsloth_targets(const UnslothParts& parts) {
  std::string where;
  add(where, parts.vision, {"vision", "image", "visual", "patch"});
  add(where, parts.language, {"language", "text"});
  std::string what;
  add(what, parts.attention, {"self_attn", "attention", "attn", "mixer"});
  add(what, parts.mlp, {"mlp", "feed_forward", "ffn", "dense", "mixer"});
  if (where.empty() || what.empty()) return "(?!x)x";  // Unsloth raises: nothing is left to tune
  const bool all = parts.names.empty();
  const std::string names = all ? std::string{kLinear} : names_of(parts);
  std::string targets = ".*?(?:" + where + ").*?(?:" + what + ").*?(?:" + names + ")(?:\\.linear)?";
  // A language model by itself has no part of such a name.
  if (parts.language)
    targets += "|model\\.layers\\.\\d+\\.(?:" + what + ")\\." + (all ? "\\w*" : "") + "(?:" + names + ")";
  return targets;
}

}  // namespace tidemark::exchange
