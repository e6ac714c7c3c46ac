#include "core/options/module_choice.hpp"

#include "core/units/letters.hpp"

namespace tidemark {

ModuleChoice module_choice(const OptionValue& value) {
  const std::string& word = value.list.size() == 1 ? value.list.front() : value.text;
  if (lower_case(word) == "all-linear") return {ModuleChoice::Kind::kAllLinear, {}, {}};
  if (word == "attention") return {ModuleChoice::Kind::kAttention, {}, {}};
  if (value.text.empty()) return {ModuleChoice::Kind::kNames, value.list, {}};
  return {ModuleChoice::Kind::kExpression, {}, value.text};
}

}  // namespace tidemark
