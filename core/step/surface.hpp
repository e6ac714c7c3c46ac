#pragma once

#include <span>
#include <vector>

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/units/bytes.hpp"

namespace tidemark {

/// Quick peaks of one job over many sizes.
struct Surface {
  std::vector<Bytes> peaks;  ///< one row per batch size; −1 where check_magnitude refuses the sizes, or the pictures of
                             ///< a sample are longer
  Count recordings = 0;  ///< training steps that were put on a tape for it
  Count one_by_one = 0;  ///< cells that no compiled step could answer, estimated each for itself
};

/// The peak of `job` for every pair of a micro batch size and a sequence length (each at least 1), to the byte what
/// `estimate` finds without the allocator, at a small fraction of the cost.
///
/// Between the guards of a step (Tape::guards) the allocations are the same in the same order, and each size grows with
/// B and S as a term or two (Growth). So a step is recorded three times for each combination of guards that occurs; the
/// instants that can be the highest of the step are kept; and each cell evaluates those alone. Whatever does not meet
/// what was recorded is estimated cell by cell. The architecture must be supported.
Surface peak_surface(const Architecture& architecture, const TrainingJob& job, std::span<const Count> batches,
                     std::span<const Count> sequences);

}  // namespace tidemark
