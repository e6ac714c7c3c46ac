#pragma once

#include <cstddef>
#include <string_view>

#include "core/report/text.hpp"

namespace tidemark {

/// What standard output is connected to. Colour only on a terminal, and never when NO_COLOR is set; Unicode unless the
/// locale says that the terminal knows only ASCII; COLUMNS or the window's width, 100 where there is neither.
TextStyle style_for_output();

/// The same for standard error.
TextStyle style_for_errors();

void print(std::string_view text);
void print_error(std::string_view text);

/// Whether everything that was printed has reached standard output; why not is told on standard error.
bool finish_output();

}  // namespace tidemark
