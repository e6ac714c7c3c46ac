#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"

namespace tidemark {

/// One thing that a question says and a record can have said too.
struct Trait {
  std::string_view option;  ///< the option's name in a request, or "model_type", "head"
  std::string_view value;   ///< its value, or the class of values that memory tells apart

  bool operator==(const Trait&) const = default;
};

/// What of a question decides which code runs: the family, the head, and the value of each option that moves memory.
/// Views into the arguments and into static words.
std::vector<Trait> traits_of(const Architecture& architecture, const TrainingJob& job);

// Options that make a peak less certain than all others do.
constexpr std::string_view kActivationOffloading = "activation_offloading";
constexpr std::string_view kGenerates = "evaluation.generate";
constexpr std::string_view kDividedRollout = "rollout on divided weights";

/// How far recorded truth stands behind an answer (tests/oracle).
struct Coverage {
  std::vector<std::string> unmet;        ///< traits, and pairs of options, that no record has: "optimizer muon"
  bool family_met = true;                ///< each option was recorded with this family
  std::vector<std::string> stand_ins;    ///< what other code answers for
  std::vector<std::string> not_counted;  ///< what nothing answers for
  std::string_view implementation;       ///< a framework's own code, of which no record is: published peaks alone were
                                         ///< compared; else empty
  std::vector<std::string_view> apart;   ///< options that make a peak less certain than all others do
};

Coverage coverage_of(const Architecture& architecture, const TrainingJob& job);

}  // namespace tidemark
