#include "core/exchange/text/node.hpp"

#include <utility>

#include "core/units/decimal.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

/// "1e-4", "5.", ".5", "1_000": PyYAML wants a dot in a real, but tools convert such words later, so they are numbers.
bool is_number_word(std::string_view word, bool& whole) {
  std::size_t at = !word.empty() && (word[0] == '-' || word[0] == '+') ? 1 : 0;
  std::size_t digits = 0;
  whole = true;
  for (; at < word.size() && (is_digit(word[at]) || (word[at] == '_' && digits > 0)); ++at) ++digits;
  if (at < word.size() && word[at] == '.') {
    whole = false;
    for (++at; at < word.size() && is_digit(word[at]); ++at) ++digits;
  }
  if (digits == 0) return false;
  if (at < word.size() && (word[at] == 'e' || word[at] == 'E')) {
    whole = false;
    ++at;
    if (at < word.size() && (word[at] == '-' || word[at] == '+')) ++at;
    const std::size_t first = at;
    while (at < word.size() && is_digit(word[at])) ++at;
    if (at == first) return false;
  }
  return at == word.size();
}

/// decimal_value reads JSON's numbers: no plus, no underscores, a digit before the point and behind it.
double number_of(std::string_view word) {
  std::string plain;
  for (char letter : word) {
    if (letter == '_' || letter == '+') continue;
    if (letter == '.' && (plain.empty() || !is_digit(plain.back()))) plain += '0';
    if ((letter == 'e' || letter == 'E') && !plain.empty() && plain.back() == '.') plain += '0';
    plain += letter;
  }
  if (!plain.empty() && plain.back() == '.') plain += '0';
  const std::size_t sign = plain.find('-') == 0 ? 1 : 0;
  while (plain.size() > sign + 1 && plain[sign] == '0' && is_digit(plain[sign + 1])) plain.erase(sign, 1);
  return decimal_value(plain);
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (std::size_t at = 0; at < keys.size(); ++at) {
    if (keys[at] == key) return &items[at];
  }
  return nullptr;
}

const Node* Node::at(std::string_view dotted) const {
  const Node* node = this;
  while (node != nullptr && !dotted.empty()) {
    const std::size_t dot = dotted.find('.');
    node = node->find(dotted.substr(0, dot));
    dotted = dot == std::string_view::npos ? std::string_view{} : dotted.substr(dot + 1);
  }
  return node;
}

Value to_value(const Node& node) {
  Value value;
  value.kind = node.kind;
  value.boolean = node.boolean;
  value.integer = node.integer;
  value.real = node.real;
  if (node.is_string()) value.string = node.text;
  for (std::size_t at = 0; at < node.items.size(); ++at) {
    Value item = to_value(node.items[at]);
    if (node.is_map()) {
      value.members.push_back({node.keys[at], std::move(item)});
    } else {
      value.items.push_back(std::move(item));
    }
  }
  return value;
}

Node plain_scalar(std::string_view word) {
  Node node;
  node.text = word;
  const std::string lower = word.size() <= 5 ? lower_case(word) : std::string{};
  if (word.empty() || word == "~" || lower == "null" || word == "None") return node;
  if (lower == "true" || lower == "yes" || lower == "on" || lower == "false" || lower == "no" || lower == "off") {
    node.kind = Node::Kind::kBool;
    node.boolean = lower == "true" || lower == "yes" || lower == "on";
    return node;
  }
  bool whole = false;
  node.kind = Node::Kind::kString;
  if (word.size() > 64 || !is_number_word(word, whole)) return node;
  node.real = number_of(word);
  node.kind = Node::Kind::kReal;
  if (whole && node.real < 9e15 && node.real > -9e15) {
    node.kind = Node::Kind::kInteger;
    node.integer = static_cast<std::int64_t>(node.real);
  }
  return node;
}

}  // namespace tidemark::exchange
