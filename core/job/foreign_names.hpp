#pragma once

#include <string>
#include <vector>

namespace tidemark {

/// Names of modules in transformers' words, where adapters of LitGPT and torchtune go to modules of their own models. A
/// name that means nothing else there stays beside what it means here.
std::vector<std::string> in_transformers_words(const std::vector<std::string>& names);

}  // namespace tidemark
