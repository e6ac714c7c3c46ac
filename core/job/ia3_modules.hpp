#pragma once

#include <optional>
#include <string_view>

#include "core/job/regex.hpp"
#include "core/job/training_job.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// Which of IA3's modules are feed-forward ones: peft 0.18 tuners/ia3/model.py _check_target_module_feedforward. Where
/// the job names none they are those that PEFT lists of the model (utils/constants.py).
class FeedforwardModules {
 public:
  /// What cannot be read, and a model that PEFT lists none of, become errors.
  FeedforwardModules(const Adapter& adapter, std::string_view model_type, Issues& issues);

  bool names(std::string_view module) const;

 private:
  const Adapter& adapter_;
  std::string_view listed_;  // by PEFT, comma-separated
  std::optional<Regex> expression_;
};

}  // namespace tidemark
