#pragma once

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/report/estimate.hpp"

namespace tidemark {

/// Fills low and high of the three figures from the error distribution on the records and the measurements, by regime.
void widen(Estimate& estimate, const Architecture& architecture, const TrainingJob& job);

}  // namespace tidemark
