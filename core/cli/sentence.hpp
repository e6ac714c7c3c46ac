#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidemark {

/// Words that stand for an option without its flag.
struct Said {
  std::string_view option;  ///< its name: "model", "method", "gpu", "sequence_length"
  std::string word;         ///< what it is given
};

/// A job as the page's line says it, in words that belong to no flag: `MODEL [METHOD] [on CARD] [with METHOD] [at
/// TOKENS]`. Names may have several words ("llama 3 8b on rtx 4090"); what stands behind a method without "on" is the
/// card, and with neither of them the first word is the model. What is said twice is there twice.
std::vector<Said> read_sentence(const std::vector<std::string>& words);

}  // namespace tidemark
