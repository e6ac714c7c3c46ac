#pragma once

#include <string>
#include <string_view>

namespace tidemark::exchange {

/// Whether a word is one of those of a list, which stand in one text with a blank before and behind each.
inline bool is_in(std::string_view list, std::string_view word) {
  return word.find(' ') == std::string_view::npos && list.find(" " + std::string{word} + " ") != std::string_view::npos;
}

}  // namespace tidemark::exchange
