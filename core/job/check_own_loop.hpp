#pragma once

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// What LLaMA-Factory's own loop (framework.name "llama_factory_v1") cannot do, and what of it is not modelled.
void check_own_loop(const Architecture& architecture, const TrainingJob& job, Issues& issues);

}  // namespace tidemark
