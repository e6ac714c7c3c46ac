#pragma once

#include "core/layers/heads.hpp"

namespace tidemark {

/// What the Trainer's LabelSmoother makes of the logits that a model without labels has returned.
Tensor label_smoothed_loss(Net& net, const Outputs& outputs);

}  // namespace tidemark
