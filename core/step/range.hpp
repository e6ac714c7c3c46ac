#pragma once

#include "core/answer/estimate.hpp"
#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"

namespace tidemark {

/// Fills low and high of the three figures from the error distribution on the records and the measurements, by regime.
void widen(Estimate& estimate, const Architecture& architecture, const TrainingJob& job);

/// A note that names what no record covers, if anything.
void note_coverage(Issues& issues, const Architecture& architecture, const TrainingJob& job);

}  // namespace tidemark
