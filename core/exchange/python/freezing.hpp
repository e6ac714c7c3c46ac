#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/exchange/python/program.hpp"

namespace tidemark::exchange {

/// What a program's loops over requires_grad leave trained, in the words of `freeze` and `trainable`.
struct Frozen {
  enum class What { kNothing, kParts, kUnread };
  What what = What::kNothing;  ///< unread: something is frozen, and reading does not tell what
  std::vector<std::string> freeze;
  std::vector<std::string> trainable;
  std::vector<Origin> places;
};

/// `is_model` tells whether an object is the model that is trained. Beside adapters, which freeze everything else
/// themselves, only what is switched on again counts.
Frozen frozen_by(const std::vector<PyFreezing>& steps, const std::function<bool(int root)>& is_model, bool adapts);

}  // namespace tidemark::exchange
