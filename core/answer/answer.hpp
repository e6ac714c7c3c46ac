#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/answer/estimate.hpp"
#include "core/job/request.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// What can still be said of a model whose architecture we do not model: count × bytes, and nothing else.
struct PartialAnswer {
  std::string model;           ///< catalog id
  Count parameters = 0;        ///< as the catalog states them
  Bytes weights = 0;           ///< parameters × bytes of the weights, master copy included
  Bytes gradients = 0;         ///< the same for gradients; 0 with adapters
  Bytes optimizer_states = 0;  ///< the same for the optimizer's states; 0 with adapters
  std::string note;            ///< what is missing
};

/// The whole answer to one request, before it becomes JSON or text.
struct Answer {
  std::string engine;                    ///< version of this engine
  std::string catalog;                   ///< date of the catalog; empty when none is loaded
  std::string model;                     ///< what was estimated: catalog id, or the class of a pasted config
  Architecture architecture;             ///< the same, in full
  TrainingJob job;                       ///< as read, defaults filled in
  Overrides overrides;                   ///< factors stated by the user
  std::optional<Estimate> estimate;      ///< absent when an issue is an error
  std::vector<CardChoice> cards;         ///< asked for, less what the user states of them
  std::vector<Fit> fits;                 ///< one per card
  std::optional<PartialAnswer> partial;  ///< only beside UNSUPPORTED_ARCHITECTURE
  Issues issues;                         ///< errors, warnings, notes; those of the estimate included
};

}  // namespace tidemark
