#include "core/exchange/python/operators.hpp"

#include <cmath>
#include <optional>

namespace tidemark::exchange {
namespace {

using Kind = PyValue::Kind;

/// Integers up to here are exact as doubles.
constexpr double kLargest = 9e15;
constexpr double kHighestPower = 64;

// std::pow brings tables of 5 KB, for exponents that scripts do not have.
double whole_power(double base, double exponent) {
  double power = 1.0;
  for (double i = 0; i < std::abs(exponent); ++i) power *= base;
  return exponent < 0 ? 1.0 / power : power;
}

std::optional<double> computed(const std::string& op, double left, double right) {
  if (op == "+") return left + right;
  if (op == "-") return left - right;
  if (op == "*") return left * right;
  if ((op == "/" || op == "//" || op == "%") && right == 0) return std::nullopt;
  if (op == "/") return left / right;
  if (op == "//") return std::floor(left / right);
  if (op == "%") return left - right * std::floor(left / right);
  if (op == "**" && right == 0.5 && left >= 0) return std::sqrt(left);
  if (op == "**" && std::abs(right) < kHighestPower && right == std::floor(right)) return whole_power(left, right);
  return std::nullopt;
}

PyValue of_numbers(const std::string& op, const PyValue& left, const PyValue& right) {
  const std::optional<double> result = computed(op, left.real, right.real);
  if (!result || !(std::abs(*result) < kLargest)) return {};
  const bool whole =
      left.kind == Kind::kInteger && right.kind == Kind::kInteger && op != "/" && (op != "**" || right.integer >= 0);
  return whole ? py_integer(static_cast<std::int64_t>(*result)) : py_real(*result);
}

PyValue of_others(const std::string& op, const PyValue& left, const PyValue& right) {
  PyValue value;
  if (op == "+" && left.is_string() && right.is_string()) return py_text(left.text + right.text);
  if (op == "+" && left.kind == Kind::kList && right.kind == Kind::kList) {
    value = left;
    value.items.insert(value.items.end(), right.items.begin(), right.items.end());
    if (value.items.size() > kMostItems) value.items.resize(kMostItems);
    return value;
  }
  if (op != "/" || !right.is_string()) return value;
  if (left.is_string()) return py_text(left.text + "/" + right.text);
  if (left.kind != Kind::kObject && left.kind != Kind::kSymbol) return value;
  value = py_text(right.text);  // a path below something unknown
  value.why = "the last part of a path";
  return value;
}

/// "in" and "not in".
PyValue contained(bool inside, const PyValue& left, const PyValue& right) {
  if (left.is_string() && right.names_parameter) return py_test({{left.text}, !inside});
  if (!left.is_string() || (right.kind != Kind::kList && right.kind != Kind::kDict && !right.is_string())) return {};
  bool found = right.find(left.text) != nullptr;
  if (right.is_string()) found |= right.text.find(left.text) != std::string::npos;
  for (const PyValue& item : right.items)
    found |= right.kind == Kind::kList && item.is_string() && item.text == left.text;
  return py_bool(found == inside);
}

/// Two tests of a name as one: "a" in name or "b" in name; "a" not in name and "b" not in name.
NameTest either(const NameTest& left, const NameTest& right, bool all) {
  if (!left.is_known() || !right.is_known() || left.none != right.none || left.none != all) return {};
  NameTest both = left;
  both.texts.insert(both.texts.end(), right.texts.begin(), right.texts.end());
  return both;
}

}  // namespace

PyValue py_binary(const std::string& op, const PyValue& left, const PyValue& right) {
  const bool numbers = left.is_number() && right.is_number();
  PyValue value = numbers ? of_numbers(op, left, right) : of_others(op, left, right);
  inherit(value, left);
  inherit(value, right);
  return value;
}

PyValue py_compare(const std::string& op, const PyValue& left, const PyValue& right) {
  if (op == "in" || op == "not in") return contained(op == "in", left, right);
  if (!left.is_known() || !right.is_known()) return {};
  if (left.is_number() && right.is_number()) {
    const double a = left.real;
    const double b = right.real;
    return py_bool(op == "=="   ? a == b
                   : op == "!=" ? a != b
                   : op == "<"  ? a < b
                   : op == ">"  ? a > b
                   : op == "<=" ? a <= b
                                : a >= b);
  }
  const bool same = left.kind == right.kind && left.text == right.text && left.boolean == right.boolean &&
                    left.items.size() == right.items.size();
  if (op == "==" || op == "!=") return py_bool(same == (op == "=="));
  return {};
}

PyValue py_logic(const std::string& op, const PyValue& left, const PyValue& right) {
  const int known = truth(left);
  if (left.test.is_known() || right.test.is_known()) return py_test(either(left.test, right.test, op == "and"));
  if (op == "or")
    return known == 1 ? left : known == 0 ? right : right.is_known() && right.kind != Kind::kBool ? right : PyValue{};
  if (known == 0) return left;
  return known == 1 ? right : truth(right) == 0 ? right : PyValue{};
}

PyValue py_unary(const std::string& op, const PyValue& value) {
  if (op == "not" && value.test.is_known()) return py_test({value.test.texts, !value.test.none});
  if (op == "not") return truth(value) < 0 ? PyValue{} : py_bool(truth(value) == 0);
  if (op == "-" && value.kind == Kind::kInteger) return py_integer(-value.integer);
  if (op == "-" && value.kind == Kind::kReal) return py_real(-value.real);
  return value;
}

}  // namespace tidemark::exchange
