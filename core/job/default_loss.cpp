#include "core/job/default_loss.hpp"

#include <algorithm>
#include <string>

#include "core/job/framework.hpp"

namespace tidemark {
namespace {

// trl 1.7.0 (25 June 2026) trainer/sft_config.py __post_init__: loss_type is "chunked_nll" unless use_liger_kernel;
// until 1.6 it was "nll", the model's own.
constexpr int kChunkedByDefault = date_of(2026, 6, 25);

/// `framework.version` is a date, or the release of transformers beneath: 5 is taken to run with the newest TRL.
bool chunks_by_default(const Framework& framework) {
  return framework.date > 0 ? framework.date >= kChunkedByDefault : framework.at_least(5, 0);
}

/// sft_trainer.py: full_tensor() of FSDP 2's weight, maybe_gather_lm_head_ctx under ZeRO-3: no record holds either.
bool divides_head(const TrainingJob& job) {
  if (job.tensor.has_dtensors()) return true;
  if (!job.data_parallel.is_sharded()) return false;
  const Sharding how = job.data_parallel.sharding;
  return is_fsdp(how) || how == Sharding::kZero3;
}

/// transformers 5.12 trainer.py compute_loss: with a label smoother the model is handed no labels, and returns logits.
void settle_smoothed(bool open, TrainingJob& job, Issues& issues) {
  // trl 1.9 trainer/sft_trainer.py compute_loss: skip_logits of Liger's forward; num_valid_tokens of that in chunks.
  const bool by_trl = job.framework.name == "trl" && job.preference == Preference::kNone;
  const bool chunks = job.loss == Loss::kChunked || (open && chunks_by_default(job.framework));
  if (by_trl && (chunks || job.loss == Loss::kLiger)) {
    issues.push_back({"INVALID_COMBINATION", Severity::kError, "/loss",
                      "Label smoothing is made of all logits, which SFTTrainer's loss in chunks (its default since TRL "
                      "1.7) and Liger's leave out: it fails. Set \"loss\" to \"default\" (loss_type \"nll\").",
                      "default"});
  } else if (job.loss != Loss::kDefault && job.loss != Loss::kMeanSquare) {
    issues.push_back(
        {"IGNORED_OPTION", Severity::kWarning, "/loss",
         "With label smoothing the model is handed no labels: it returns all logits, and no fused loss runs.",
         "default"});
    job.loss = Loss::kDefault;
  }
}

}  // namespace

bool adapts_head(const TrainingJob& job) {
  const ModuleChoice& target = job.adapter.target_modules;
  const bool adapters = job.method == Method::kLora || job.method == Method::kQlora;
  if (!adapters || target.kind != ModuleChoice::Kind::kNames) return false;
  return std::find(target.names.begin(), target.names.end(), "lm_head") != target.names.end();
}

void settle_loss(bool open, const Architecture& architecture, TrainingJob& job, Issues& issues) {
  // axolotl 067b021 monkeypatch/loss/chunked.py: chunks of logits that are all there, in a compiled function.
  if (job.framework.name == "axolotl" && job.loss == Loss::kChunked) {
    job.loss = Loss::kDefault;
    job.stand_ins.emplace_back("Axolotl's cross-entropy in chunks, answered by that of all logits at once");
  }
  if (job.label_smoothing > 0.0) return settle_smoothed(open, job, issues);
  if (job.framework.name != "trl" || job.preference != Preference::kNone || architecture.head != Head::kCausalLm) {
    return;
  }
  if (open && chunks_by_default(job.framework)) {
    job.loss = Loss::kChunked;
    issues.push_back({"CHOSEN_LOSS", Severity::kNote, "/loss",
                      "The loss is left to the framework: SFTTrainer computes it in chunks of 256 tokens since TRL 1.7 "
                      "(loss_type \"chunked_nll\"). With an older TRL, or loss_type \"nll\", it is \"default\".",
                      "default"});
  }
  if (job.loss == Loss::kChunked && divides_head(job)) {
    job.stand_ins.emplace_back("TRL's loss in chunks of a head that GPUs divide, answered by chunks of the whole head");
  }
}

}  // namespace tidemark
