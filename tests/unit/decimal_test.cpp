#include "core/units/decimal.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

bool same(double a, double b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

/// What the C library makes of it, where it rounds correctly: glibc and musl do.
std::string shortest_by_printf(double number) {
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, number);
    if (same(std::strtod(text, nullptr), number)) break;
  }
  return text;
}

/// Doubles of every size, the same ones each time.
double arbitrary(std::uint64_t& state) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  const std::uint64_t bits = state ^ (state >> 31U);
  double number = 0.0;
  std::memcpy(&number, &bits, sizeof number);
  return std::isfinite(number) ? number : 1.0;
}

TEST_CASE("decimals are read and written as a correct C library does") {
  std::uint64_t state = 1;
  for (int i = 0; i < 3000; ++i) {
    const double number = i < 2098 ? std::ldexp(1.0, i - 1074) : arbitrary(state);
    const std::string text = shortest_decimal(number);
    CHECK(text == shortest_by_printf(number));
    CHECK(same(read_decimal(text), number));
  }
}

TEST_CASE("the edges of a double") {
  for (const char* text : {"0", "-0", "1e-400", "4.9e-324", "2.4703282292062327e-324", "2.4703282292062328e-324",
                           "2.2250738585072011e-308", "1.7976931348623158e308", "1.7976931348623159e308",
                           "9007199254740993", "9007199254740992.9999999999999999999999999", "0.3e-5", "123E+5",
                           "0.000000000000000000000000000000000000001e39"}) {
    CAPTURE(text);
    CHECK(same(read_decimal(text), std::strtod(text, nullptr)));
  }
  CHECK(std::isinf(read_decimal("1e99999999999999999999")));
  CHECK(same(read_decimal("1e-99999999999999999999"), 0.0));
  // Halfway between two doubles, and a millionth digit that lifts it above.
  const std::string half = "9007199254740993." + std::string(1000000, '0');
  CHECK(same(read_decimal(half), 9007199254740992.0));
  CHECK(same(read_decimal(half + "1"), 9007199254740994.0));
}

}  // namespace
}  // namespace tidemark
