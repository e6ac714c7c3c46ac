#pragma once

#include <string_view>

#include "core/exchange/out/writer.hpp"

/// Learning from preferences in other projects' words.
namespace tidemark::exchange {

/// What they call one way of it; empty: they have no word for it, or not one that is read again.
struct PreferenceWords {
  std::string_view trl;            ///< of trainer and configuration: "DPO"
  std::string_view trl_module;     ///< where TRL has them
  std::string_view llama_factory;  ///< stage
  std::string_view pref_loss;      ///< beside it, where it is not the stage's own
  std::string_view swift;          ///< rlhf_type
  std::string_view axolotl;        ///< rl
};
const PreferenceWords& preference_words(Preference preference);

/// Where a job trains on something else than text, and the format does not say it.
void lacks_task(const ExportJob& job, bool said, Writer& out);
/// Where a reference's log-probabilities come from, if not from where the trainer takes them unasked.
void lacks_reference(const ExportJob& job, bool precomputed_said, Writer& out);

}  // namespace tidemark::exchange
