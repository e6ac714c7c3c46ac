#pragma once

#include <span>
#include <vector>

#include "core/fit/fit.hpp"
#include "core/fit/peaks.hpp"

namespace tidemark {

/// Peaks of a job over micro-batch sizes (rows) and sequence lengths (columns), against one card.
struct FitMap {
  std::vector<Count> batches;    ///< ascending
  std::vector<Count> sequences;  ///< ascending
  bool exact = true;           ///< cells are full estimates; else they leave out what the allocator does not split off
  std::vector<Figures> cells;  ///< batches.size() rows of sequences.size()
  std::vector<Verdict> verdicts;  ///< of each cell
  const Figures& at(std::size_t batch, std::size_t sequence) const {
    return cells[batch * sequences.size() + sequence];
  }
};

/// `exact` cells are full estimates, others come from the quick path (a few thousandths lower, many times faster).
FitMap fit_map(Peaks& peaks, const TrainingJob& job, std::span<const Count> batches, std::span<const Count> sequences,
               const Card& card, bool exact = true);

/// Powers of two around the job's own values: 1 to 8 times and more in the batch, an eighth to 8 times in the sequence.
std::vector<Count> usual_batches(const TrainingJob& job);
std::vector<Count> usual_sequences(const TrainingJob& job);

}  // namespace tidemark
