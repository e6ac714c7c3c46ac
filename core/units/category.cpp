#include "core/units/category.hpp"

namespace tidemark {

std::string_view name_of(Category category) {
  constexpr std::string_view kNames[] = {"weights",     "gradients", "optimizer_states", "activations",
                                         "logits_loss", "workspace", "communication",    "buffers"};
  return kNames[static_cast<int>(category)];
}

std::string_view name_of(Phase phase) {
  constexpr std::string_view kNames[] = {"load",      "forward",   "loss",       "backward",   "reduce",
                                         "optimizer", "zero_grad", "evaluation", "generation", "scoring"};
  return kNames[static_cast<int>(phase)];
}

std::string_view name_of(Confidence confidence) {
  constexpr std::string_view kNames[] = {"exact", "measured", "modelled"};
  return kNames[static_cast<int>(confidence)];
}

}  // namespace tidemark
