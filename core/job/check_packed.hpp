#pragma once

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// What packed weights cannot be, and who trains beside them: the tables of the libraries that pack them.
void check_packed(const Architecture& architecture, const TrainingJob& job, Issues& issues);

}  // namespace tidemark
