#pragma once

#include <cstdint>

#include "core/job/training_job.hpp"

namespace tidemark {

/// What of a forward's modules ZeRO-3 knows ahead: PartitionedParameterCoordinator notes those from one forward of the
/// model to the next, and takes what differs from what it has noted for the end of its knowledge.
enum class Known : std::uint8_t {
  kStep,     ///< a forward and its backward
  kForward,  ///< a forward alone: nothing from where another one, or a backward, begins
  kNothing,  ///< nothing: what runs is noted for the next time, or not even that
};

/// The same of GRPO's passes, once they repeat themselves: answers are generated and scored in between the forwards
/// that train.
struct KnownInRollout {
  Known first = Known::kStep;          ///< of the first micro-batch that is trained behind it
  Known later = Known::kStep;          ///< of the last
  Known token = Known::kNothing;       ///< where generate() gathers token by token
  Known scoring = Known::kNothing;     ///< of the first micro-batch that is scored
  Known scoring_on = Known::kNothing;  ///< of those behind it
  Known without_adapters = Known::kNothing;
  /// In forward it is let go as when a forward alone was known, though a backward is expected by now.
  bool releases_forward = false;
  /// What the last of these forwards used again soon, as it thought, lies gathered as training begins.
  bool leaves_gathered = false;
};

KnownInRollout known_in_rollout(const TrainingJob& job);

/// trl 1.9 trainer/grpo_trainer.py _generate_and_score_completions: whether what was generated may be older than the
/// model that is trained on it, or come of another one. rloo_trainer.py: always.
bool scores_itself(const TrainingJob& job);

}  // namespace tidemark
