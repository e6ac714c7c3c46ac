#include "core/units/word_list.hpp"

#include <algorithm>

namespace tidemark {
namespace {

/// Calls `take` with one word after the other, until it says true.
template <class Take>
bool any_word(std::string_view list, Take&& take) {
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (take(list.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  any_word(list, [&](std::string_view word) {
    words.emplace_back(word);
    return false;
  });
  return words;
}

bool has_word(std::string_view list, std::string_view word) {
  return any_word(list, [&](std::string_view one) { return one == word; });
}

}  // namespace tidemark
