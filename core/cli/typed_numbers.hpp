#pragma once

#include <string>

#include "core/units/value.hpp"

namespace tidemark {

// Numbers as people type them behind a flag. What is none stays a text: the reader of requests says what is wrong.

/// The text as JSON where it is some ("16", "null"), else as the string that it is.
Value json_or_text(const std::string& text);

/// "7e9", "7B", "350M".
Value count_from(const std::string& text);

/// "4k", "4,096", "4_096": whole numbers count tokens and samples, so that 4k are 4096. As the page's fields read them
/// (web/src/numbers.js).
Value whole_from(const std::string& text);

}  // namespace tidemark
