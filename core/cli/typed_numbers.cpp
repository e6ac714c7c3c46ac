#include "core/cli/typed_numbers.hpp"

#include <cmath>
#include <cstdint>

#include "core/units/letters.hpp"
#include "core/units/make_value.hpp"
#include "core/wire/json.hpp"

namespace tidemark {
namespace {

// Up to here a double counts every whole number.
constexpr double kExact = 9007199254740992.0;

/// Digits of which commas or points part thousands: "4,096", "1.000.000".
bool parts_thousands(std::string_view text) {
  const std::size_t head = text.find_first_of(",.");
  if (head == std::string_view::npos || head == 0 || head > 3 || (text.size() - head) % 4 != 0) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_sign = text[i] == ',' || text[i] == '.';
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (!is_digit && !is_sign) return false;
    if (is_sign != (i >= head && (i - head) % 4 == 0)) return false;
  }
  return true;
}

}  // namespace

Value json_or_text(const std::string& text) {
  Issues none;
  Value value = parse_json(text, "", none);
  return has_error(none) ? to_value(text) : value;
}

Value count_from(const std::string& text) {
  if (!text.empty()) {
    const char suffix = lower_case(text.substr(text.size() - 1))[0];
    const double factor = suffix == 'k' ? 1e3 : suffix == 'm' ? 1e6 : suffix == 'b' ? 1e9 : suffix == 't' ? 1e12 : 0.0;
    if (factor > 0.0) {
      const Value number = json_or_text(text.substr(0, text.size() - 1));
      if (number.is_number()) return to_value(number.real * factor);
    }
  }
  return json_or_text(text);
}

Value whole_from(const std::string& text) {
  std::string digits = text;
  std::erase_if(digits, [](char c) { return c == ' ' || c == '_' || c == '\''; });
  double factor = 1.0;
  if (!digits.empty() && (digits.back() == 'k' || digits.back() == 'K')) factor = 1024.0;
  if (!digits.empty() && (digits.back() == 'm' || digits.back() == 'M')) factor = 1024.0 * 1024.0;
  if (factor > 1.0) digits.pop_back();
  if (parts_thousands(digits)) std::erase_if(digits, [](char c) { return c == ',' || c == '.'; });
  const Value number = json_or_text(digits);
  if (!number.is_number()) return json_or_text(text);
  const double value = number.real * factor;
  const bool is_whole = value == std::floor(value) && std::fabs(value) < kExact;
  return factor == 1.0 ? number : is_whole ? to_value(static_cast<std::int64_t>(value)) : to_value(value);
}

}  // namespace tidemark
