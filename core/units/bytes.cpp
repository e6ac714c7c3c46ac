#include "core/units/bytes.hpp"

namespace tidemark {
namespace {

// Fixed-point division by integers only: a float's last digit differs between C libraries.
std::string fixed_point(Bytes bytes, Bytes unit, int decimals) {
  const bool negative = bytes < 0;
  std::uint64_t magnitude = negative ? 0ULL - static_cast<std::uint64_t>(bytes) : static_cast<std::uint64_t>(bytes);
  const auto divisor = static_cast<std::uint64_t>(unit);
  std::uint64_t whole = magnitude / divisor;
  std::uint64_t rest = magnitude % divisor;
  std::string digits;
  for (int i = 0; i < decimals; ++i) {
    rest *= 10;
    digits += static_cast<char>('0' + rest / divisor);
    rest %= divisor;
  }
  if (rest * 2 >= divisor) {
    int i = decimals - 1;
    for (; i >= 0; --i) {
      char& digit = digits[static_cast<std::size_t>(i)];
      if (digit != '9') {
        ++digit;
        break;
      }
      digit = '0';
    }
    if (i < 0) ++whole;
  }
  std::string text = negative ? "-" : "";
  text += std::to_string(whole);
  if (decimals > 0) text += "." + digits;
  return text;
}

}  // namespace

std::string format_gib(Bytes bytes, int decimals) {
  return fixed_point(bytes, kGiB, decimals) + " GiB";
}

std::string format_gb(Bytes bytes, int decimals) {
  return fixed_point(bytes, 1000000000, decimals) + " GB";
}

std::string format_grouped(std::int64_t value) {
  const std::string plain = std::to_string(value);
  const std::size_t sign = value < 0 ? 1 : 0;
  std::string text = plain.substr(0, sign);
  for (std::size_t i = sign; i < plain.size(); ++i) {
    if (i > sign && (plain.size() - i) % 3 == 0) text += ' ';
    text += plain[i];
  }
  return text;
}

}  // namespace tidemark
