#pragma once

#include "core/job/training_job.hpp"
#include "core/units/bytes.hpp"

namespace tidemark {

/// Bytes that the processes of one node keep of the model in host memory before it is on their GPUs: where every rank
/// reads the whole of it, jobs die there before they begin. 0 where it comes from mapped files, whose pages all
/// processes share and the system takes back, or straight to the GPU, and for frameworks whose loading is not known.
/// `parameters`: of the model.
Bytes host_at_load(const TrainingJob& job, Count parameters);

}  // namespace tidemark
