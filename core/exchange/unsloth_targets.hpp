#pragma once

#include <string>
#include <vector>

namespace tidemark::exchange {

/// The parts of a model that Unsloth's FastModel and FastVisionModel are told to tune (`finetune_*` of get_peft_model),
/// with its defaults.
struct UnslothParts {
  bool vision = true;              ///< finetune_vision_layers
  bool language = true;            ///< finetune_language_layers
  bool attention = true;           ///< finetune_attention_modules
  bool mlp = true;                 ///< finetune_mlp_modules
  std::vector<std::string> names;  ///< target_modules; none: every linear layer of the parts

  bool operator==(const UnslothParts&) const = default;
};

/// The expression that its LoraConfig gets as target_modules.
/// Source: unsloth_zoo 2026.8.13 peft_utils.py: get_peft_regex, unsloth 2026.8.19 models/vision.py: get_peft_model.
std::string unsloth_targets(const UnslothParts& parts);

}  // namespace tidemark::exchange
