#pragma once

#include "core/layers/program.hpp"

namespace tidemark {

/// Rewards by what a frozen model makes of answers: a forward of all that were generated together, whose hidden states
/// are compared with those of right answers. The model is the trained one without its adapters, or a copy beside it.
void score_by_features(Net& trained, const Architecture& architecture, const TrainingJob& job, const Program& program);

}  // namespace tidemark
