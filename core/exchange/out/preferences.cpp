// The words that are read again: python/task.cpp, formats/{llamafactory,swift,axolotl}.cpp.
#include "core/exchange/out/preferences.hpp"

namespace tidemark::exchange {

const PreferenceWords& preference_words(Preference preference) {
  static constexpr PreferenceWords kDpo = {"DPO", "trl", "dpo", "", "dpo", "dpo"};
  static constexpr PreferenceWords kKto = {"KTO", "trl", "kto", "", "kto", "kto"};
  static constexpr PreferenceWords kReward = {"Reward", "trl", "rm", "", "rm", ""};
  static constexpr PreferenceWords kOrpo = {"ORPO", "trl.experimental.orpo", "dpo", "orpo", "orpo", "orpo"};
  static constexpr PreferenceWords kCpo = {"", "", "", "", "cpo", ""};
  static constexpr PreferenceWords kSimpo = {"", "", "dpo", "simpo", "simpo", "simpo"};
  static constexpr PreferenceWords kNothing = {};
  switch (preference) {
    case Preference::kDpo:
      return kDpo;
    case Preference::kKto:
      return kKto;
    case Preference::kReward:
      return kReward;
    case Preference::kOrpo:
      return kOrpo;
    case Preference::kCpo:
      return kCpo;
    case Preference::kSimpo:
      return kSimpo;
    default:
      return kNothing;
  }
}

void lacks_task(const ExportJob& job, bool said, Writer& out) {
  const bool text = job.task.empty() || job.task == "sft" || job.task == "pretrain" || job.task == "vlm";
  if (text && job.job.preference == Preference::kNone) return;
  if (!said) out.lacks("/task", "the task (" + job.task + "): what is written trains on text");
}

void lacks_reference(const ExportJob& job, bool precomputed_said, Writer& out) {
  const Preference preference = job.job.preference;
  if (preference != Preference::kDpo && preference != Preference::kKto) return;
  const Reference usual = has_adapter(job.job) ? Reference::kAdapterOff : Reference::kCopy;
  if (job.job.reference == usual) return;
  if (job.job.reference == Reference::kPrecomputed && precomputed_said) return;
  out.lacks("/reference_model", "where the reference's log-probabilities come from");
}

}  // namespace tidemark::exchange
