#pragma once

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// Eager attention where the release has no sdpa for what the model does to its scores; a note says so.
void settle_attention(const Architecture& architecture, TrainingJob& job, Issues& issues);

}  // namespace tidemark
