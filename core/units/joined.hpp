#pragma once

#include <string>

namespace tidemark {

/// "a, b, c".
template <class Words>
std::string joined(const Words& words) {
  std::string text;
  for (const auto& word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

}  // namespace tidemark
