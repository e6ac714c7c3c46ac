#pragma once

#include <string>
#include <string_view>

namespace tidemark {

/// Letters of ASCII in lower case, whatever the locale.
std::string lower_case(std::string_view text);

}  // namespace tidemark
