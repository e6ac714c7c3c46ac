#pragma once

#include "core/layers/program.hpp"

namespace tidemark {

/// The loss of TRL's trainers on preferred answers, from the logits that the model returned, with the reference's
/// forward and the metrics that they log. The reference's parameters are the last that the tape declares.
Tensor preference_loss(Net& net, const Program& program, Tensor logits);

}  // namespace tidemark
