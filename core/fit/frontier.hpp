#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/fit/cards.hpp"
#include "core/fit/fit.hpp"
#include "core/fit/peaks.hpp"

namespace tidemark {

/// What a frontier is measured along.
enum class Quantity : std::uint8_t { kMicroBatch, kSequence, kRank };
/// The option that it moves: "micro_batch_size", "sequence_length", "adapter.r".
std::string_view option_of(Quantity quantity);

/// How far one quantity can go on one card, all else equal.
struct Frontier {
  Quantity quantity = Quantity::kMicroBatch;
  bool applies = true;  ///< false for the rank of a job without adapters, and for the prompts of pictures that are made
  Count current = 0;    ///< as the job has it
  Count largest = 0;    ///< largest value whose verdict is `fits`; 0 when not even the smallest that is answered does
  Range allocated;      ///< at `largest`
  Range next;           ///< at the next value that the job may have, or at that smallest, which does not fit
  bool ends = false;    ///< the model has no positions beyond `largest`
  bool open = false;    ///< `largest` is where we stop looking: what lies beyond is not computed
};

/// Exact: the full estimate fits at `largest` and does not at the next value that the job may have (GPUs that divide a
/// sequence demand multiples), unless it ends or is open there.
Frontier frontier(Peaks& peaks, const TrainingJob& job, Quantity quantity, const Card& card);

/// One row of the tier table.
struct Tier {
  int marketed_gb = 0;  ///< size on the box
  Fit fit;              ///< of the job as it is
  Frontier batch;       ///< largest micro-batch
  Count preset = 0;     ///< what the fixed table recommends for this size, whatever the job
};

/// The table of backprop's `estimate-vram` (48 GB and more: 8, 32: 6, 24: 4, 16: 2, 12: 1, less: 1), which knows
/// nothing of the job: kept for comparison.
Count preset_batch(double marketed_gb);

/// Sizes that cards are sold in: 12, 16, 24, 32, 40, 48, 80, 141 GB.
std::span<const int> usual_sizes();

/// Largest micro-batch by size of card: what a card known by its size alone is taken to be, with an A100's kernels.
std::vector<Tier> tiers(Peaks& peaks, const TrainingJob& job, std::span<const Gpu> catalog,
                        std::span<const int> sizes = usual_sizes());

}  // namespace tidemark
