#include "core/cli/sentence.hpp"

#include <algorithm>

#include "core/options/options.hpp"

namespace tidemark {
namespace {

/// The option that a preposition's next word is for; empty for other words.
std::string_view option_behind(std::string_view word) {
  if (word == "on") return "gpu";
  if (word == "with") return "method";
  return word == "at" ? "sequence_length" : std::string_view{};
}

bool is_method(std::string_view word) {
  const Option* method = find_option("method");
  return method != nullptr && find_choice(*method, word) != nullptr;
}

}  // namespace

std::vector<Said> read_sentence(const std::vector<std::string>& words) {
  std::vector<Said> said;
  std::string_view role = "model";
  bool begins = true;
  const bool is_plain = std::none_of(words.begin(), words.end(), [](const std::string& word) {
    return is_method(word) || !option_behind(word).empty();
  });
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::string_view asked = i + 1 < words.size() ? option_behind(word) : std::string_view{};
    if (!asked.empty()) {
      role = asked;
      begins = true;
    } else if (is_method(word)) {
      said.push_back({"method", word});
      role = "gpu";
      begins = true;
    } else if (begins) {
      said.push_back({role, word});
      begins = is_plain && role == "model";
      if (begins) role = "gpu";
    } else {
      said.back().word += " " + word;
    }
  }
  return said;
}

}  // namespace tidemark
