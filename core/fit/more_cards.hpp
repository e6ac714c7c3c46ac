#pragma once

#include <vector>

#include "core/fit/fit.hpp"
#include "core/fit/lever.hpp"
#include "core/fit/peaks.hpp"

namespace tidemark {

/// The smallest number of cards of one kind that a job fits, divided in one way.
struct MoreCards {
  Count cards = 0;  ///< GPUs that divide the model
  Step step;        ///< what the request states for that
  Figures figures;  ///< of each card, from the full estimate
  Fit fit;
};

/// What a job that does not fit `card` takes of such cards: with FSDP 2, ZeRO-2 and ZeRO-3, for the job as it is and
/// with every layer checkpointed where that takes fewer; 2, 4, 8, … kMostCards of them. Empty where none of them does,
/// and where several GPUs share a layer or a pipeline already.
std::vector<MoreCards> more_cards(Peaks& peaks, const TrainingJob& job, const Card& card);

inline constexpr Count kMostCards = 64;

}  // namespace tidemark
