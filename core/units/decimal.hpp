#pragma once

#include <string>
#include <string_view>

namespace tidemark {

/// The double nearest to a decimal number ("-12.5e3", as JSON writes it; not checked), ties to even; infinite where it
/// is too large. Exact on whole numbers, so every platform reads the same.
double read_decimal(std::string_view text);

/// The fewest digits that read back as the same double, laid out as printf's %g does it. `number` is finite.
std::string shortest_decimal(double number);

}  // namespace tidemark
