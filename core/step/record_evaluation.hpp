#pragma once

#include "core/layers/program.hpp"

namespace tidemark {

/// One batch of evaluation, which begins when the step's gradients are gone, on the tape of the model that was trained.
/// Returns its first segment.
std::size_t record_evaluation(const Net& trained, const Architecture& architecture, const TrainingJob& job,
                              const Program& program);

}  // namespace tidemark
