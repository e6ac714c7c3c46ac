#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/fit/fit.hpp"
#include "core/fit/peaks.hpp"
#include "core/job/batch_size.hpp"

namespace tidemark {

/// The sizes of the job at a cell of the map, where they are not the cell's.
using Resize = std::function<BatchSize(BatchSize)>;

/// Peaks of a job over micro-batch sizes or numbers of cards (rows) and sequence lengths (columns), against one card.
struct FitMap {
  std::vector<Count> batches;    ///< ascending; the job's own alone where rows are cards
  std::vector<Count> cards;      ///< ascending; empty where rows are micro-batch sizes
  std::vector<Count> sequences;  ///< ascending
  bool exact = true;           ///< cells are full estimates; else they leave out what the allocator does not split off
  std::vector<Figures> cells;  ///< rows of sequences.size()
  std::vector<Verdict> verdicts;  ///< of each cell
  const std::vector<Count>& rows() const { return cards.empty() ? batches : cards; }
  const Figures& at(std::size_t row, std::size_t sequence) const { return cells[row * sequences.size() + sequence]; }
};

/// `exact` cells are full estimates, others come from the quick path (a few thousandths lower, many times faster).
FitMap fit_map(Peaks& peaks, const TrainingJob& job, std::span<const Count> batches, std::span<const Count> sequences,
               const Card& card, bool exact = true, const Resize& resize = {});

/// The same with a row for each number of cards, which divide the job as it says, else by FSDP 2 or ZeRO; cells without
/// figures where none of them is answered.
FitMap fit_map_of_cards(Peaks& peaks, const TrainingJob& job, std::span<const Count> cards,
                        std::span<const Count> sequences, const Card& card, bool exact = true,
                        const Resize& resize = {});

/// Powers of two around the job's own values: 1 to 8 times and more in the batch, an eighth to 8 times in the sequence.
std::vector<Count> usual_batches(const TrainingJob& job);
std::vector<Count> usual_sequences(const TrainingJob& job);

}  // namespace tidemark
