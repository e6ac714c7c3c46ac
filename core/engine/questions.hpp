#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/engine/estimator.hpp"
#include "core/engine/reports.hpp"
#include "core/units/bytes.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

// What is asked about cards beside a job, and the answers, before they become JSON or text. `trouble` is what was wrong
// with the question's own keys: it is told after the job's.

/// The question as it is asked with these settings written into it.
using Rewrite = std::function<Asked(const std::vector<Setting>& settings)>;

struct FitQuestion {
  Asked job;
  bool all_cards = false;      ///< the whole catalog, beside the cards that are named
  double rule_of_thumb = 0.0;  ///< a share of each card; 0: none asked for
  bool fewest = true;          ///< how many of each card it takes
  Issues trouble;
  Rewrite rewrite;  ///< absent: what it takes is not read anew
};

struct AdviceQuestion {
  Asked job;
  bool frontiers = true;
  bool tiers = true;
  bool modes = true;
  Issues trouble;
  Rewrite rewrite;  ///< absent: changes are not read anew
};

struct MapQuestion {
  Asked job;
  std::vector<Count> batches;    ///< rows; the usual ones when empty
  std::vector<Count> cards;      ///< rows in their place, when there are any
  std::vector<Count> sequences;  ///< columns; likewise
  std::optional<bool> exact;     ///< full estimates; absent: where there are few enough
  Issues trouble;
};

/// Every card of the request, or the whole catalog when it names none.
FitReport ask(const Estimator& estimator, const FitQuestion& question);

/// The first card of the request; without one there is an error among the issues.
AdviceReport ask(const Estimator& estimator, const AdviceQuestion& question);

/// The first card of the request; without one every verdict is unknown.
MapReport ask(const Estimator& estimator, const MapQuestion& question);

/// Quick peaks of a job for every pair of sizes, one row per micro batch: allocated bytes, NaN where there is no
/// estimate.
std::vector<double> peak_cells(const Understood& job, const std::vector<double>& batches,
                               const std::vector<double>& sequences);

}  // namespace tidemark
