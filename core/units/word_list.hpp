#pragma once

#include <string_view>
#include <vector>

namespace tidemark {

/// Words that stand in one text, separated by commas: "q_proj,v_proj". Of an empty one there are none.
std::vector<std::string_view> words_of(std::string_view list);
/// Whether one of them is this word.
bool has_word(std::string_view list, std::string_view word);

}  // namespace tidemark
