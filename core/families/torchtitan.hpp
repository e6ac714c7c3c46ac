#pragma once

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"

namespace tidemark {

/// The model as torchtitan builds it: its program in place of transformers'. Of a family or a job that this program
/// does not know, transformers' stays, and the job says that it stands in.
void as_torchtitan(TrainingJob& job, Architecture& architecture);

}  // namespace tidemark
