#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark {

/// Columns that a text takes in a terminal: one per code point (we print nothing wider).
std::size_t columns_of(std::string_view text);

/// `text` padded with spaces to `width` columns; longer texts are left as they are.
std::string pad_right(std::string_view text, std::size_t width);
std::string pad_left(std::string_view text, std::size_t width);

/// `text` cut to `width` columns, with an ellipsis in its middle when something is left out.
std::string shorten(std::string_view text, std::size_t width, bool unicode = true);

/// Lines of at most `width` columns, broken at spaces; each but the first begins with `indent` spaces.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent);

/// A bar of `share` (0 to 1) of `width` columns, in eighths of a column where Unicode is allowed, else of '#'.
std::string bar(double share, std::size_t width, bool unicode);

/// The same text for terminals that only know ASCII: "×" becomes "x", "–" becomes "-".
std::string to_ascii(std::string_view text);

}  // namespace tidemark
