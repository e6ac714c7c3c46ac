#pragma once

#include <cstdint>
#include <string_view>

namespace tidemark {

/// Where a byte belongs, as the answer groups it.
enum class Category : std::uint8_t {
  kWeights,
  kGradients,
  kOptimizerStates,
  kActivations,
  kLogitsLoss,
  kWorkspace,
  kCommunication,
  kBuffers,
};
inline constexpr int kCategoryCount = 8;
/// The JSON name: "weights", "optimizer_states", …
std::string_view name_of(Category category);

/// The phases of a training step, in order, and what may come between two of them.
enum class Phase : std::uint8_t {
  kLoad,
  kForward,
  kLoss,
  kBackward,
  kReduce,
  kOptimizer,
  kZeroGrad,
  kEvaluation,
  kGeneration,  ///< answers are generated that the next steps train on
  kScoring,     ///< their log-probabilities, by the model and by its reference, without gradients
};
inline constexpr int kPhaseCount = 10;
std::string_view name_of(Phase phase);

/// How a term is known.
enum class Confidence : std::uint8_t {
  kExact,     ///< tensor shapes
  kMeasured,  ///< a constant with the measurement that gave it
  kModelled,  ///< a rule read from source, or a heuristic
};
std::string_view name_of(Confidence confidence);

}  // namespace tidemark
