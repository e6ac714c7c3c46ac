#pragma once

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// Takes over into the job what its optimizer does by itself (steps in backward), and refuses what it does not do with
/// this model. The architecture must be supported.
void settle_optimizer(const Architecture& architecture, TrainingJob& job, Issues& issues);

}  // namespace tidemark
