#pragma once

#include <string>
#include <string_view>

namespace tidemark {

/// Letters of ASCII in lower case, whatever the locale.
std::string lower_case(std::string_view text);

/// Whether a dotted name is that of `outer` or of something in it; all names lie in the empty one.
bool lies_in(std::string_view name, std::string_view outer);

}  // namespace tidemark
