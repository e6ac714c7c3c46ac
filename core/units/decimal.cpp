#include "core/units/decimal.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tidemark {
namespace {

constexpr int kMantissaBits = 53;
constexpr int kSmallestExponent = -1074;  // of the last bit of a subnormal number
constexpr int kMostDigits = 17;           // enough to tell any two doubles apart
// No halfway point between two doubles has more digits: what follows only says "and a little more".
constexpr std::size_t kTellingDigits = 780;
// 0.1 times ten to more than this is infinite; 1 times ten to less than that is nothing.
constexpr std::int64_t kLargestPower = 310;
constexpr std::int64_t kSmallestPower = -345;
// Up to here both the digits and the power are doubles without an error, and one operation rounds once.
constexpr std::size_t kExactDigits = 15;
constexpr std::int64_t kExactPower = 22;

/// A whole number of any size that is met here.
class Whole {
 public:
  explicit Whole(std::uint64_t value) {
    for (; value != 0; value >>= 32U) limbs_[count_++] = static_cast<std::uint32_t>(value);
  }

  bool is_zero() const { return count_ == 0; }
  int bits() const {
    int n = 32 * count_;
    if (n > 0) {
      for (std::uint32_t top = limbs_[count_ - 1]; (top >> 31U) == 0; top <<= 1U) --n;
    }
    return n;
  }
  void multiply_add(std::uint32_t factor, std::uint32_t addend) {
    std::uint64_t carry = addend;
    for (int i = 0; i < count_; ++i) {
      carry += std::uint64_t{limbs_[i]} * factor;
      limbs_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32U;
    }
    if (carry != 0) limbs_[count_++] = static_cast<std::uint32_t>(carry);
  }
  void times_power_of_ten(std::int64_t power) {
    for (; power > 0; --power) multiply_add(10, 0);
  }
  void shift_left(int by) {
    for (; by >= 31; by -= 31) multiply_add(1U << 31U, 0);
    multiply_add(1U << static_cast<unsigned>(by), 0);
  }
  void halve() {
    for (int i = 0; i < count_; ++i) {
      limbs_[i] >>= 1U;
      if (i + 1 < count_) limbs_[i] |= limbs_[i + 1] << 31U;
    }
    trim();
  }
  bool at_least(const Whole& other) const {
    if (count_ != other.count_) return count_ > other.count_;
    for (int i = count_ - 1; i >= 0; --i) {
      if (limbs_[i] != other.limbs_[i]) return limbs_[i] > other.limbs_[i];
    }
    return true;
  }
  /// `other` is not larger.
  void subtract(const Whole& other) {
    std::int64_t borrow = 0;
    for (int i = 0; i < count_; ++i) {
      borrow += std::int64_t{limbs_[i]} - (i < other.count_ ? std::int64_t{other.limbs_[i]} : 0);
      limbs_[i] = static_cast<std::uint32_t>(borrow);
      borrow >>= 32U;
    }
    trim();
  }

 private:
  void trim() {
    while (count_ > 0 && limbs_[count_ - 1] == 0) --count_;
  }

  // 4096 bits hold 10^(345 + 781) and a mantissa, the most that a division here meets.
  static constexpr int kLimbs = 128;
  std::uint32_t limbs_[kLimbs] = {};
  int count_ = 0;
};

/// digits · 10^power, rounded to the nearest double.
double nearest_double(std::string_view digits, std::int64_t power) {
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return 0.0;
  const std::size_t telling = digits.find_last_not_of('0') + 1;
  power += static_cast<std::int64_t>(digits.size() - telling);
  digits = digits.substr(0, telling);
  const auto count = static_cast<std::int64_t>(digits.size());
  if (power + count > kLargestPower) return HUGE_VAL;
  if (power + count < kSmallestPower) return 0.0;
  if (digits.size() <= kExactDigits && power >= -kExactPower && power <= kExactPower) {
    double number = 0.0;
    for (const char c : digits) number = number * 10.0 + (c - '0');
    double scale = 1.0;
    for (std::int64_t i = std::abs(power); i > 0; --i) scale *= 10.0;
    return power < 0 ? number / scale : number * scale;
  }
  const bool more = digits.size() > kTellingDigits;
  if (more) {
    power += count - static_cast<std::int64_t>(kTellingDigits) - 1;
    digits = digits.substr(0, kTellingDigits);
  }
  Whole above(0), below(1);
  for (const char c : digits) above.multiply_add(10, static_cast<std::uint32_t>(c - '0'));
  if (more) above.multiply_add(10, 1);
  above.times_power_of_ten(power);
  below.times_power_of_ten(-power);
  // above / below = quotient · 2^exponent, with a quotient of 53 bits.
  int exponent = std::max(above.bits() - below.bits() - kMantissaBits, kSmallestExponent);
  if (exponent > 0) {
    below.shift_left(exponent);
  } else {
    above.shift_left(-exponent);
  }
  below.shift_left(kMantissaBits);
  if (above.at_least(below)) {
    ++exponent;
  } else {
    below.halve();
  }
  std::uint64_t quotient = 0;
  for (int i = 0; i < kMantissaBits; ++i) {
    quotient <<= 1U;
    if (above.at_least(below)) {
      above.subtract(below);
      quotient |= 1U;
    }
    if (i + 1 < kMantissaBits) below.halve();
  }
  above.shift_left(1);
  if (above.at_least(below)) {
    above.subtract(below);
    if (!above.is_zero() || (quotient & 1U) != 0) ++quotient;
  }
  return std::ldexp(static_cast<double>(quotient), exponent);
}

/// The first digits of a number and the power of ten of the first one.
struct Digits {
  std::string text;   ///< kMostDigits + 1 of them
  bool more = false;  ///< and something behind them
  int power = 0;
};

Digits digits_of(double number) {
  int exponent = 0;
  const double fraction = std::frexp(number, &exponent);
  Whole above(static_cast<std::uint64_t>(std::ldexp(fraction, kMantissaBits))), below(1);
  exponent -= kMantissaBits;
  if (exponent > 0) {
    above.shift_left(exponent);
  } else {
    below.shift_left(-exponent);
  }
  Digits digits;
  // log10(2) a little high, so that the first digit may come out as 0 and never as 10.
  digits.power = static_cast<int>(std::ceil((exponent + kMantissaBits) * 0.30103));
  above.times_power_of_ten(-digits.power);
  below.times_power_of_ten(digits.power);
  while (digits.text.size() <= kMostDigits) {
    char digit = '0';
    for (; above.at_least(below); ++digit) above.subtract(below);
    above.multiply_add(10, 0);
    if (digit == '0' && digits.text.empty()) {
      --digits.power;
    } else {
      digits.text += digit;
    }
  }
  digits.more = !above.is_zero();
  return digits;
}

/// Keeps `count` digits, the last one rounded half to even.
void round_to(Digits& digits, std::size_t count) {
  const std::string rest = digits.text.substr(count);
  digits.text.resize(count);
  const bool above_half =
      rest[0] > '5' || (rest[0] == '5' && (digits.more || rest.find_first_not_of('0', 1) < rest.size()));
  const bool half = rest[0] == '5' && !above_half;
  if (!above_half && !(half && (digits.text.back() - '0') % 2 != 0)) return;
  std::size_t i = count;
  while (i > 0 && digits.text[i - 1] == '9') digits.text[--i] = '0';
  if (i > 0) {
    ++digits.text[i - 1];
  } else {
    digits.text = "1" + digits.text.substr(0, count - 1);
    ++digits.power;
  }
}

}  // namespace

double read_decimal(std::string_view text) {
  const bool negative = text.substr(0, 1) == "-";
  std::string digits;
  std::int64_t power = 0;
  bool fraction = false;
  std::size_t i = negative ? 1 : 0;
  for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.') {
      fraction = true;
    } else {
      digits += text[i];
      if (fraction) --power;
    }
  }
  if (++i < text.size()) {
    const bool down = text[i] == '-';
    if (down || text[i] == '+') ++i;
    std::int64_t exponent = 0;
    constexpr std::int64_t kEnough = std::int64_t{1} << 40U;  // more than any text has digits
    for (; i < text.size(); ++i) exponent = std::min(exponent * 10 + (text[i] - '0'), kEnough);
    power += down ? -exponent : exponent;
  }
  const double number = nearest_double(digits, power);
  return negative ? -number : number;
}

std::string shortest_decimal(double number) {
  std::string out;
  if (std::signbit(number)) out = "-";
  const double magnitude = std::fabs(number);
  if (magnitude == 0.0) return out + "0";
  const Digits all = digits_of(magnitude);
  Digits digits;
  std::size_t count = 0;
  do {
    digits = all;
    round_to(digits, ++count);
  } while (count < kMostDigits && nearest_double(digits.text, digits.power - static_cast<int>(count) + 1) != magnitude);
  digits.text.resize(digits.text.find_last_not_of('0') + 1);
  const int power = digits.power;
  // %g: with an exponent where it is below -4, or not below the number of digits.
  if (power < -4 || power >= static_cast<int>(count)) {
    out += digits.text[0];
    if (digits.text.size() > 1) out += "." + digits.text.substr(1);
    const std::string exponent = std::to_string(std::abs(power));
    return out + (power < 0 ? "e-" : "e+") + (exponent.size() < 2 ? "0" : "") + exponent;
  }
  if (power < 0) return out + "0." + std::string(static_cast<std::size_t>(-power - 1), '0') + digits.text;
  const auto whole = static_cast<std::size_t>(power) + 1;
  if (digits.text.size() <= whole) return out + digits.text + std::string(whole - digits.text.size(), '0');
  return out + digits.text.substr(0, whole) + "." + digits.text.substr(whole);
}

}  // namespace tidemark
