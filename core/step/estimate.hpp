#pragma once

#include "core/answer/estimate.hpp"
#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/step/simulation.hpp"

namespace tidemark {

/// What to compute beyond the peak.
struct EstimateOptions {
  bool simulate_allocator = true;  ///< replay all events through the caching allocator: gives `reserved`
  bool itemise = true;             ///< breakdown and timeline
};

/// The peak of a training step of `job` on `architecture`. Pure: the same arguments give the same bytes.
/// Errors (an unsupported combination) come back in Estimate::issues.
Estimate estimate(const Architecture& architecture, const TrainingJob& job, const EstimateOptions& options = {});

/// The same from a step that is recorded already: `recorded` must be of this architecture and job.
Estimate estimate(const Architecture& architecture, const TrainingJob& job, const Simulation& recorded,
                  const EstimateOptions& options);

}  // namespace tidemark
