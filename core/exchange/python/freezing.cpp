// torch.nn.Module.parameters, named_parameters and requires_grad_: each step sets a switch on some parameters, and the
// last of a parameter counts.
#include "core/exchange/python/freezing.hpp"

#include <algorithm>
#include <utility>

namespace tidemark::exchange {
namespace {

/// Patterns of the parameters that a step is about; none where no pattern tells them.
std::vector<std::string> patterns_of(const PyFreezing& step) {
  if (step.test.is_known()) return step.part.empty() ? step.test.texts : std::vector<std::string>{};
  std::string part = step.part;
  // peft 0.18 peft_model.py: the model stands in a wrapper of its own.
  constexpr std::string_view kWrapper = "base_model.model.";
  if (part.starts_with(kWrapper)) part.erase(0, kWrapper.size());
  return {"(^|\\.)" + part + "(\\.|$)"};
}

/// All parameters are trained or none, but for those of some patterns.
struct State {
  bool trained = true;
  std::vector<std::string> others;

  /// Whether the step could be followed.
  bool take(const PyFreezing& step) {
    if (step.part.empty() && !step.test.is_known()) {
      trained = step.trained;
      others.clear();
      return true;
    }
    const std::vector<std::string> named = patterns_of(step);
    if (named.empty()) return false;
    if (step.test.none) {  // all but those
      if (step.trained == trained) return others.empty();
      if (!others.empty()) return others == named;
      trained = step.trained;
      others = named;
      return true;
    }
    if (step.trained == trained) {
      if (others == named) others.clear();
      return others.empty();
    }
    for (const std::string& one : named) {
      if (std::find(others.begin(), others.end(), one) == others.end()) others.push_back(one);
    }
    return true;
  }
};

Frozen beside_adapters(const std::vector<PyFreezing>& steps, const std::function<bool(int root)>& is_model) {
  Frozen made;
  for (const PyFreezing& step : steps) {
    if (!step.trained || !step.is_known || !is_model(step.root)) continue;
    const std::vector<std::string> named = patterns_of(step);
    const bool adapters = std::all_of(named.begin(), named.end(), [](const std::string& one) {
      return one.find("lora") != std::string::npos || one.find("adapter") != std::string::npos;
    });
    if (!named.empty() && adapters) continue;
    made.places.push_back(step.place);
    made.what =
        step.part.empty() && (!step.test.is_known() || step.test.none) ? Frozen::What::kUnread : Frozen::What::kParts;
    if (made.what == Frozen::What::kUnread) return made;
    made.trainable.insert(made.trainable.end(), named.begin(), named.end());
  }
  return made;
}

}  // namespace

Frozen frozen_by(const std::vector<PyFreezing>& steps, const std::function<bool(int root)>& is_model, bool adapts) {
  if (adapts) return beside_adapters(steps, is_model);
  Frozen made;
  State state;
  bool followed = true;
  for (const PyFreezing& step : steps) {
    if (step.root >= 0 && !is_model(step.root)) continue;
    made.places.push_back(step.place);
    followed = followed && step.is_known && state.take(step);
  }
  if (made.places.empty() || (followed && state.trained && state.others.empty())) return {};
  // All that is frozen leaves nothing to train: what is trained was made where reading does not see it.
  const bool nothing = !state.trained && state.others.empty();
  made.what = followed && !nothing ? Frozen::What::kParts : Frozen::What::kUnread;
  if (made.what == Frozen::What::kParts) (state.trained ? made.freeze : made.trainable) = std::move(state.others);
  return made;
}

}  // namespace tidemark::exchange
