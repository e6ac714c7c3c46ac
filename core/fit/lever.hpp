#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/fit/setting.hpp"
#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"

namespace tidemark {

/// What people turn to make a job smaller, in the order in which the search decides: first what moves most.
enum class Lever : std::uint8_t {
  kMethod,
  kPrecision,
  kSharding,
  kModelParallel,
  kSequence,
  kOptimizer,
  kOffload,
  kCheckpointing,
  kBatch,
  kLoss,
  kAttention,
  kRank,
  kEncoders,
};
inline constexpr int kLeverCount = 13;
/// "checkpointing", "loss", …
std::string_view name_of(Lever lever);

/// What suffers, from least to most.
enum class Harm : std::uint8_t {
  kNothing,   ///< the same numbers up to rounding, and no slower
  kSpeed,     ///< the same numbers, more time
  kNumerics,  ///< the same algorithm in fewer digits
  kTraining,  ///< something else is trained
};
std::string_view name_of(Harm harm);

/// What a change costs, in words, and how much that weighs. docs/advice.md gives the reasons.
struct Cost {
  int weight = 0;              ///< harm on one scale; those of a combination add up
  Harm harm = Harm::kNothing;  ///< what suffers
  std::string_view speed;      ///< what happens to the time per step
  std::string_view exactness;  ///< what happens to the numbers
  std::string_view quality;    ///< what happens to the model that comes out
  std::string_view source;     ///< paper or documentation
};

/// One way to turn one lever.
struct Step {
  Lever lever = Lever::kMethod;
  std::string title;              ///< "Checkpoint every layer"
  std::vector<Setting> settings;  ///< the change
  Cost cost;
  bool strongest = false;  ///< of the lever's steps, the one that leaves the smallest peak (up to slack)
};

/// The steps that `lever` offers to this job, least harm first; none when it has been turned already or does not apply.
/// `refused`: titles of those that are not taken.
std::vector<Step> steps_of(Lever lever, const TrainingJob& job, const Architecture& architecture,
                           const std::vector<std::string>& refused = {});

/// What all of them set, in their order.
std::vector<Setting> settings_of(const std::vector<Step>& steps);

/// The job after a step.
TrainingJob after(const Step& step, const TrainingJob& job);

}  // namespace tidemark
