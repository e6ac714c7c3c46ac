#pragma once

#include <optional>
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

/// The smallest number of such cards on which the job fits, nothing else being changed: one, as it is, or 2, 4, 8, …
/// kMostCards that divide it as it says, else by FSDP 2, ZeRO-2 or ZeRO-3, or those of a host on which its device_map
/// lays it. Zero cards where not even those do, and of jobs whose GPUs share a layer or a pipeline.
MoreCards fewest_cards(Peaks& peaks, const TrainingJob& job, const Card& card);

/// The job on so many cards, divided in the first of those ways that is answered; nothing where none is.
std::optional<TrainingJob> job_on_cards(Peaks& peaks, const TrainingJob& job, Count cards);

/// What a job that does not fit `card` takes of such cards: with FSDP 2, ZeRO-2 and ZeRO-3, for the job as it is and
/// with every layer checkpointed where that takes fewer; 2, 4, 8, … kMostCards of them. Empty where none of them does,
/// and where several GPUs share a layer or a pipeline already.
std::vector<MoreCards> more_cards(Peaks& peaks, const TrainingJob& job, const Card& card);

inline constexpr Count kMostCards = 64;

}  // namespace tidemark
