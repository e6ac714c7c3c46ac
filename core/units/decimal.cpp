// Numbers to text and back, rounded as IEEE 754 wants it. The C library's ways do the same with numbers of 128 bits,
// which take 20 KB of WebAssembly; here it is one number with all its digits.
#include "core/units/decimal.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/units/bits.hpp"

namespace tidemark {
namespace {

constexpr std::uint32_t kLimb = 1'000'000'000;
constexpr int kLimbDigits = 9;
constexpr int kWhole = 36;      // limbs before the point: the largest double has 309 digits
constexpr int kFraction = 122;  // behind it: the least one has 1074
constexpr int kMostShift = 29;  // 2^29 times a limb, and a carry, fit into 64 bits
constexpr int kLeastExponent = -1074;
constexpr std::uint64_t kHidden = std::uint64_t{1} << 52;  // the bit that a double does not store

/// What a number's text says.
struct Parts {
  std::string digits;  ///< without the point
  int point = 0;       ///< how many of them stand before it
  bool negative = false;
};

/// A number of fixed point that is never negative.
class Decimal {
 public:
  /// Adds digit · 10^place. False when that is beyond every double.
  bool add(std::uint32_t digit, int place) {
    if (place >= kWhole * kLimbDigits) return digit == 0;
    if (place < -kFraction * kLimbDigits) {
      limbs_.back() |= digit == 0 ? 0U : 1U;
      return true;
    }
    const int up = place + kFraction * kLimbDigits;
    for (int i = 0; i < up % kLimbDigits; ++i) digit *= 10;
    limbs_[limbs_.size() - 1 - static_cast<std::size_t>(up / kLimbDigits)] += digit;
    return true;
  }

  /// Times two to the power of `shift`, at most kMostShift.
  void double_up(int shift) {
    std::uint64_t carry = 0;
    for (std::size_t i = limbs_.size(); i-- > 0;) {
      carry += std::uint64_t{limbs_[i]} << shift;
      limbs_[i] = static_cast<std::uint32_t>(carry % kLimb);
      carry /= kLimb;
    }
  }

  /// Through two to the power of `shift`. What falls off the end leaves a trace there, so that no tie is seen in it.
  void halve(int shift) {
    std::uint64_t rest = 0;
    for (std::uint32_t& limb : limbs_) {
      const std::uint64_t value = rest * kLimb + limb;
      limb = static_cast<std::uint32_t>(value >> shift);
      rest = value & ((std::uint64_t{1} << shift) - 1);
    }
    if (rest != 0) limbs_.back() |= 1U;
  }

  bool is_zero() const { return all_zero(0); }
  /// Far above 2^53.
  bool is_huge() const {
    return std::any_of(limbs_.begin(), limbs_.begin() + kWhole - 3, [](std::uint32_t limb) { return limb != 0; });
  }
  /// What stands before the point, where that is below 10^18; else something above 2^53.
  std::uint64_t whole() const {
    if (limbs_[kWhole - 3] != 0) return ~std::uint64_t{0};
    return std::uint64_t{limbs_[kWhole - 2]} * kLimb + limbs_[kWhole - 1];
  }
  /// Whether what stands behind the point rounds `whole` up.
  bool rounds_up(std::uint64_t whole) const {
    constexpr std::uint32_t kHalf = kLimb / 2;
    if (limbs_[kWhole] != kHalf) return limbs_[kWhole] > kHalf;
    return !all_zero(kWhole + 1) || whole % 2 == 1;
  }

  /// Its first digits, twice as many as tell doubles apart, and a last one for what follows them.
  Parts first_digits() const {
    constexpr std::size_t kEnough = 4;
    std::size_t first = 0;
    while (first + kEnough < limbs_.size() && limbs_[first] == 0) ++first;
    Parts parts;
    for (std::size_t at = first; at < first + kEnough; ++at) {
      char digits[kLimbDigits];
      std::uint32_t limb = limbs_[at];
      for (int i = kLimbDigits; i-- > 0; limb /= 10) digits[i] = static_cast<char>('0' + limb % 10);
      parts.digits.append(digits, kLimbDigits);
    }
    parts.digits += all_zero(first + kEnough) ? '0' : '1';
    const std::size_t zeros = parts.digits.find_first_not_of('0');
    parts.digits.erase(0, zeros);
    parts.point = (kWhole - static_cast<int>(first)) * kLimbDigits - static_cast<int>(zeros);
    return parts;
  }

 private:
  bool all_zero(std::size_t from) const {
    return std::all_of(limbs_.begin() + static_cast<std::ptrdiff_t>(from), limbs_.end(),
                       [](std::uint32_t limb) { return limb == 0; });
  }

  std::array<std::uint32_t, kWhole + kFraction> limbs_{};
};

double nearest_double(Decimal decimal) {
  if (decimal.is_zero()) return 0.0;
  int exponent = 0;
  for (; decimal.is_huge(); exponent += kMostShift) decimal.halve(kMostShift);
  for (; decimal.whole() >= 2 * kHidden; ++exponent) decimal.halve(1);
  while (decimal.whole() < kHidden && exponent > kLeastExponent) {
    const int shift = decimal.whole() == 0 ? std::min(kMostShift, exponent - kLeastExponent) : 1;
    decimal.double_up(shift);
    exponent -= shift;
  }
  std::uint64_t whole = decimal.whole();
  if (decimal.rounds_up(whole)) ++whole;
  return std::ldexp(static_cast<double>(whole), exponent);
}

Parts parts_of(std::string_view text) {
  // No exponent that is beyond this one makes a difference, however many digits there are before it.
  constexpr int kFar = 100'000'000;
  Parts parts;
  bool before_point = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '-') {
      parts.negative = true;
    } else if (c == '.') {
      before_point = false;
    } else if (c == 'e' || c == 'E') {
      const bool down = i + 1 < text.size() && text[i + 1] == '-';
      int exponent = 0;
      for (const char digit : text.substr(i + 1)) {
        if (digit >= '0' && digit <= '9') exponent = std::min(exponent * 10 + (digit - '0'), kFar);
      }
      parts.point += down ? -exponent : exponent;
      break;
    } else {
      parts.digits += c;
      if (before_point) ++parts.point;
    }
  }
  return parts;
}

/// Digits and power of ten that doubles hold exactly: one operation, rounded once (Clinger, 1990).
bool is_simple(const Parts& parts) {
  const int power = parts.point - static_cast<int>(parts.digits.size());
  return parts.digits.size() <= 15 && power >= -22 && power <= 22;
}

double simple_value(const Parts& parts) {
  double value = 0.0, scale = 1.0;
  for (const char digit : parts.digits) value = value * 10.0 + (digit - '0');
  const int power = parts.point - static_cast<int>(parts.digits.size());
  for (int i = 0; i < std::abs(power); ++i) scale *= 10.0;
  return power < 0 ? value / scale : value * scale;
}

double value_of(const Parts& parts) {
  if (is_simple(parts)) return simple_value(parts);
  Decimal decimal;
  for (std::size_t i = 0; i < parts.digits.size(); ++i) {
    const auto digit = static_cast<std::uint32_t>(parts.digits[i] - '0');
    if (!decimal.add(digit, parts.point - 1 - static_cast<int>(i))) return std::numeric_limits<double>::infinity();
  }
  return nearest_double(decimal);
}

Decimal exact(double number) {
  const auto bits = bits_as<std::uint64_t>(number);
  const int stored = static_cast<int>(bits >> 52 & 0x7FF);
  std::uint64_t whole = bits % kHidden + (stored == 0 ? 0 : kHidden);
  Decimal decimal;
  for (int place = 0; whole > 0; ++place, whole /= 10) decimal.add(static_cast<std::uint32_t>(whole % 10), place);
  int exponent = std::max(stored, 1) + kLeastExponent - 1;
  for (; exponent > 0; exponent -= std::min(exponent, kMostShift)) decimal.double_up(std::min(exponent, kMostShift));
  for (; exponent < 0; exponent += std::min(-exponent, kMostShift)) decimal.halve(std::min(-exponent, kMostShift));
  return decimal;
}

/// The first `count` digits, rounded: of two that are equally near the even one.
Parts rounded(Parts parts, std::size_t count) {
  const std::string_view rest = std::string_view{parts.digits}.substr(count);
  const bool tie = rest.find_first_not_of('0', 1) == std::string_view::npos && rest.front() == '5';
  const bool up = tie ? parts.digits[count - 1] % 2 == 1 : rest.front() >= '5';
  parts.digits.resize(count);
  if (!up) return parts;
  std::size_t i = count;
  while (i > 0 && parts.digits[i - 1] == '9') parts.digits[--i] = '0';
  if (i > 0) {
    ++parts.digits[i - 1];
  } else {
    parts.digits[0] = '1';
    ++parts.point;
  }
  return parts;
}

/// %g of as many digits as there are.
std::string laid_out(const Parts& parts) {
  const int exponent = parts.point - 1;
  std::string text = parts.digits;
  if (exponent >= -4 && exponent < static_cast<int>(text.size())) {
    if (exponent < 0) return "0." + std::string(static_cast<std::size_t>(-parts.point), '0') + text;
    if (static_cast<std::size_t>(parts.point) < text.size()) text.insert(static_cast<std::size_t>(parts.point), 1, '.');
    return text;
  }
  if (text.size() > 1) text.insert(1, 1, '.');
  const std::string power = std::to_string(std::abs(exponent));
  return text + (exponent < 0 ? "e-" : "e+") + (power.size() < 2 ? "0" : "") + power;
}

}  // namespace

std::string shortest_decimal(double number) {
  const std::string sign = std::signbit(number) ? "-" : "";
  const double size = std::fabs(number);
  if (size == 0.0) return sign + "0";
  const Parts all = exact(size).first_digits();
  constexpr std::size_t kAlwaysEnough = 17;
  std::size_t count = 1;
  while (count < kAlwaysEnough && value_of(rounded(all, count)) != size) ++count;
  return sign + laid_out(rounded(all, count));
}

double decimal_value(std::string_view text) {
  const Parts parts = parts_of(text);
  const double size = value_of(parts);
  return parts.negative ? -size : size;
}

}  // namespace tidemark
