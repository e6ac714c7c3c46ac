#pragma once

#include <string>
#include <vector>

#include "core/job/training_job.hpp"
#include "core/layers/net.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// What one GPU of a pipeline does next.
struct PipelineAction {
  /// Of a backward that is cut in two: the gradient of the stage's input, and those of its weights.
  enum class Work : std::uint8_t { kForward, kBackward, kInput, kWeights };
  Work work = Work::kForward;
  std::size_t chunk = 0;  ///< of its stages
  Count micro_batch = 0;
};

/// The stages of a rank: layers are cut as evenly as they come, or as `layout` says. Chunk k of rank r is stage
/// r + k × ranks (torch 2.14 torch/distributed/pipelining/schedules.py: ScheduleInterleaved1F1B), of
/// ScheduleZBVZeroBubble the second as far from the end as the first from the beginning.
std::vector<ModelStage> stages_of(const Architecture& architecture, const Pipeline& how, Count rank);

/// The micro-batches of which a record tells all: of schedules that keep as many alive from some point on, the first.
Count recorded_micro_batches(const TrainingJob& job, Count rank);

/// In which order a rank runs them.
/// Source: torch 2.14 torch/distributed/pipelining/schedules.py: ScheduleGPipe, Schedule1F1B, _get_1f1b_rank_ops,
/// ScheduleZBVZeroBubble.
std::vector<PipelineAction> actions_of(const Pipeline& how, Count rank, Count micro_batches);

/// "0-7", "0-7, 16-23"
std::string layers_in_words(const std::vector<ModelStage>& stages);

/// An error for each thing about a pipeline that is not modelled, or that torch refuses.
void check_pipeline(const Architecture& architecture, const TrainingJob& job, Issues& issues);

}  // namespace tidemark
