#include "core/units/nearest.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <vector>

namespace tidemark {
namespace {

// Nothing that a person mistypes is longer; a hostile word must not cost a quadratic table.
constexpr std::size_t kLongestWord = 128;

std::string folded(std::string_view word) {
  std::string text;
  for (char c : word.substr(0, kLongestWord)) {
    text += c == '-' || c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`; `limit` + 1 when it takes more.
std::size_t distance(const std::string& a, const std::string& b, std::size_t limit) {
  if ((a.size() > b.size() ? a.size() - b.size() : b.size() - a.size()) > limit) return limit + 1;
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    std::size_t smallest = row[0];
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
      smallest = std::min(smallest, row[j]);
    }
    if (smallest > limit) return limit + 1;
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

/// Whether every part of `word` ("adamw_fused") is a part of `text` ("adamw_torch_fused").
bool has_all_parts(std::string_view text, std::string_view word) {
  const std::string parts = "_" + std::string{text} + "_";
  while (!word.empty()) {
    const std::size_t end = word.find('_');
    if (parts.find("_" + std::string{word.substr(0, end)} + "_") == std::string::npos) return false;
    word = end == std::string_view::npos ? std::string_view{} : word.substr(end + 1);
  }
  return true;
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string wanted = folded(word);
  if (wanted.empty()) return "";
  std::string_view best;       // fewest edits
  std::string_view beginning;  // begins with the word: "adamw" for "adamw_torch"
  std::string_view containing;
  std::size_t fewest = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    const std::string text = folded(candidate);
    const std::size_t edits = distance(wanted, text, fewest - 1);
    if (edits < fewest) {
      fewest = edits;
      best = candidate;
      if (edits == 0) break;
    }
    if (wanted.size() < 3 || !best.empty()) continue;
    const std::size_t at = text.find(wanted);
    if (at == 0 && beginning.empty()) beginning = candidate;
    if (containing.empty() && (at != std::string::npos || has_all_parts(text, wanted))) containing = candidate;
  }
  if (best.empty()) best = beginning.empty() ? containing : beginning;
  return std::string{best};
}

}  // namespace tidemark
