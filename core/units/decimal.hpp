#pragma once

#include <string>
#include <string_view>

namespace tidemark {

/// The fewest digits that read back as the same finite number, laid out as C's %g lays them out.
std::string shortest_decimal(double number);

/// A JSON number in words, "-12.5e-3": the nearest double, of two that are equally near the even one; infinite where it
/// is beyond all of them.
double decimal_value(std::string_view text);

}  // namespace tidemark
