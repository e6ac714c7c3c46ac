#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tidemark {

/// The candidate that `word` is most likely a misspelling of (Damerau-Levenshtein, letters' case ignored, '-', '_' and
/// ' ' alike), or an empty string when none is near enough to be worth a suggestion. Of equals the first.
std::string nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace tidemark
