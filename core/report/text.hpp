#pragma once

#include <cstddef>
#include <string>

#include "core/answer/answer.hpp"

namespace tidemark {

/// How a text report is laid out.
struct TextStyle {
  std::size_t width = 80;  ///< columns; at least 40 are used
  bool colour = false;     ///< ANSI escape sequences
  bool unicode = true;     ///< block characters and signs beyond ASCII
  bool bytes = false;      ///< exact bytes beside each figure
  bool explain = false;    ///< every entry with formula, numbers, source and confidence
};

/// The answer for a person at a terminal. Ends with a line break.
std::string render_text(const Answer& answer, const TextStyle& style = {});

/// Only its issues, one or more lines each; what a failed command prints.
std::string render_issues(const Issues& issues, const TextStyle& style = {});

}  // namespace tidemark
