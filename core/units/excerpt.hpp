#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tidemark {

/// Whether a text holds what a terminal would obey instead of showing: C0 and C1 control characters, DEL.
bool has_control_characters(std::string_view text);

/// A foreign text as a message may repeat it: at most `longest` bytes, cut between characters with an ellipsis, and a
/// question mark for each control character.
std::string excerpt(std::string_view text, std::size_t longest = 60);

/// The same in quotation marks.
std::string in_quotes(std::string_view text);

}  // namespace tidemark
