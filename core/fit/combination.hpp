#pragma once

#include <string>
#include <vector>

#include "core/fit/fit.hpp"
#include "core/fit/lever.hpp"
#include "core/fit/peaks.hpp"

namespace tidemark {

/// The least harmful set of changes that makes a job fit.
struct Combination {
  bool found = false;       ///< false when nothing that we know makes it fit
  bool proven = true;       ///< no combination of less harm fits; false when the search ran into its bound
  int weight = 0;           ///< sum of the harm of its steps
  std::vector<Step> steps;  ///< at most one per lever, in the order of the levers; where nothing fits, those to `job`
  TrainingJob job;          ///< with all steps taken; where nothing fits, the smallest job that was tried
  Figures figures;          ///< of the request with their settings, read anew
  Count tried = 0;          ///< jobs whose peak was computed on the quick path
  Count verified = 0;       ///< jobs whose peak was computed in full
};

/// Searches one step per lever for the smallest sum of harm whose full estimate fits `card` (verdict `fits`). Of equal
/// sums the one with fewer steps, then the one that turns later levers. Deterministic. `most_tries` bounds the number
/// of peaks computed; beyond it a good combination is given instead of the best one.
///
/// `refused`: titles of steps that are not taken.
///
/// How: best first over partial choices in the order of the levers, a choice being given up when the job would not fit
/// even with every lever that is still open turned as far as it goes.
Combination least_harm(Peaks& peaks, const TrainingJob& job, const Card& card,
                       const std::vector<std::string>& refused = {}, Count most_tries = 2000);

}  // namespace tidemark
