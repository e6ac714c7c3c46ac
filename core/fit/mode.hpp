#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/fit/fit.hpp"
#include "core/fit/peaks.hpp"
#include "core/fit/setting.hpp"

namespace tidemark {

/// MemScale's modes: bundles of techniques, chosen by how far the unoptimised peak overshoots the card.
enum class Mode : std::uint8_t { kNone, kConservative, kBalanced, kAggressive, kAggressiveSmaller };
inline constexpr int kModeCount = 5;
/// "none", "conservative", …, "aggressive_smaller_batch".
std::string_view name_of(Mode mode);

/// The mode that the guide names for this ratio of unoptimised peak to memory: none up to 1, balanced up to 1.5,
/// aggressive up to 3, beyond it aggressive with a smaller batch or shorter sequences.
Mode mode_for(double ratio);

/// One mode tried on a job.
struct ModeOutcome {
  Mode mode = Mode::kNone;
  std::vector<Setting> settings;  ///< what it changes in the request
  std::string techniques;         ///< the same in words
  Figures figures;                ///< peak of the job with them
  Fit fit;
};

/// All modes on one job and card.
struct ModeTable {
  Figures unoptimised;             ///< the job with none of the modes' techniques
  double ratio = 0.0;              ///< its expected peak by the card's usable memory
  Mode recommended = Mode::kNone;  ///< by the ratio alone, as the guide does
  bool recommended_fits = false;   ///< whether that mode really brings the job in
  std::vector<ModeOutcome> modes;  ///< each mode, recomputed
};

ModeTable modes(Peaks& peaks, const TrainingJob& job, const Card& card);

}  // namespace tidemark
