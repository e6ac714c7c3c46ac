// litgpt 0.5 litgpt/lora.py: CausalSelfAttention, GptNeoxMLP, LLaMAMLP; torchtune 0.6
// models/convert_weights.py: _FROM_HF and torchtune/models/*/_convert_weights.py.
#include "core/job/foreign_names.hpp"

#include <string_view>
#include <utility>

namespace tidemark {
namespace {

/// What they call a module, and what a model of transformers may call it: all that some family has stand here, and the
/// modules of one model are those that it has.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"query", "q_proj"},       {"key", "k_proj"},      {"value", "v_proj"},   {"proj", "o_proj"},
    {"proj", "dense"},         {"output", "lm_head"},  {"mlp", "gate_proj"},  {"mlp", "up_proj"},
    {"mlp", "down_proj"},      {"mlp", "fc1"},         {"mlp", "fc2"},        {"mlp", "gate_up_proj"},
    {"output_proj", "o_proj"}, {"w1", "gate_proj"},    {"w2", "down_proj"},   {"w3", "up_proj"},
    {"q_proj", "qkv_proj"},    {"v_proj", "qkv_proj"}, {"query", "qkv_proj"}, {"value", "qkv_proj"}};

}  // namespace

std::vector<std::string> in_transformers_words(const std::vector<std::string>& names) {
  std::vector<std::string> words;
  for (const std::string& name : names) {
    // transformers' models have modules of these two names that are something else.
    if (name != "mlp" && name != "output") words.push_back(name);
    for (const auto& [theirs, ours] : kOtherNames) {
      if (name == theirs) words.emplace_back(ours);
    }
  }
  return words;
}

}  // namespace tidemark
