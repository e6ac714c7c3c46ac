#pragma once

#include "core/layers/preferences.hpp"

namespace tidemark {

/// The loss of TRL's GKDTrainer, from the student's logits, with the forward of its teacher. The teacher's parameters
/// are the last that the tape declares.
Tensor distillation_loss(Net& net, Tensor logits, const Placements& placements);

}  // namespace tidemark
