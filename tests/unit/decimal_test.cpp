#include "core/units/decimal.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "core/units/bits.hpp"
#include "tests/unit/catch.hpp"

using tidemark::decimal_value;
using tidemark::shortest_decimal;

namespace {

/// The C library's answer.
std::string shortest_of_c(double number) {
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, number);
    if (std::strtod(text, nullptr) == number) break;
  }
  return text;
}

void check_reading(const std::string& text) {
  INFO(text);
  CHECK(tidemark::bits_as<std::uint64_t>(decimal_value(text)) ==
        tidemark::bits_as<std::uint64_t>(std::strtod(text.c_str(), nullptr)));
}

}  // namespace

TEST_CASE("numbers are written as the C library writes them") {
  for (const double number : {0.0, -0.0, 0.1, 1.0, 100.0, 99999.5, 1e-4, 1e-5, 1e15, 1e22, 1e23, 5e-324,
                              2.2250738585072014e-308, 1.7976931348623157e308}) {
    CHECK(shortest_decimal(number) == shortest_of_c(number));
    CHECK(shortest_decimal(-number) == shortest_of_c(-number));
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto number = tidemark::bits_as<double>(random());
    if (std::isfinite(number)) {
      CHECK(shortest_decimal(number) == shortest_of_c(number));
    }
    const double gibibytes = static_cast<double>(random() % 100'000'000'000) / (1 << 30);
    CHECK(shortest_decimal(gibibytes) == shortest_of_c(gibibytes));
  }
}

TEST_CASE("numbers are read as the C library reads them") {
  for (const char* text : {"0", "-0", "0e5", "1e400", "-1e400", "1e-400", "1e99999999999", "0.0e-999999999999",
                           "9007199254740993", "2.4703282292062327e-324", "2.4703282292062328e-324",
                           "2.2250738585072011e-308", "1.7976931348623158e308", "1.7976931348623159e308"}) {
    check_reading(text);
  }
  check_reading("0." + std::string(400, '0') + "1e405");
  check_reading("1" + std::string(400, '0') + "e-390");
  std::mt19937_64 random(2);
  for (int i = 0; i < 1000; ++i) {
    std::string text = std::to_string(random());
    if (i % 2 == 0) text += "." + std::to_string(random());
    if (i % 3 == 0) text += "e" + std::to_string(static_cast<int>(random() % 700) - 350);
    check_reading(text);
  }
}
