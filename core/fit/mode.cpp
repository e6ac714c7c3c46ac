#include "core/fit/mode.hpp"

#include "core/optimizers/optimizer.hpp"

namespace tidemark {
namespace {

/// AdamW or Lion by whatever implementation: the modes choose among their forms.
bool has_rule(std::string_view optimizer, std::string_view rule) {
  return find_optimizer(optimizer)->rule == rule;
}

/// The same update rule with 32-bit states on the card; empty where it is that already, or where there is none.
std::string_view plain_of(std::string_view optimizer) {
  const Optimizer& row = *find_optimizer(optimizer);
  if (row.state_bits == 32 && row.managed == nullptr) return {};
  if (row.rule == "adamw") return "adamw_torch_fused";
  return row.rule == "lion" ? "lion_32bit" : "";
}

/// Without what the modes add: nothing recomputed, offloaded or tiled, optimizer states in full on the card.
std::vector<Setting> stripped(const TrainingJob& job) {
  std::vector<Setting> settings;
  if (job.checkpointing != Checkpointing::kNone) settings.push_back(set_word("gradient_checkpointing", "none"));
  if (const std::string_view plain = plain_of(job.optimizer); !plain.empty()) {
    settings.push_back(set_word("optimizer", plain));
  }
  if (job.loss != Loss::kDefault) settings.push_back(set_word("loss", "default"));
  return settings;
}

void add_techniques(ModeOutcome& outcome, const TrainingJob& job) {
  const auto optimizer = [&](std::string_view adamw, std::string_view lion) {
    if (has_rule(job.optimizer, "adamw")) outcome.settings.push_back(set_word("optimizer", adamw));
    if (has_rule(job.optimizer, "lion")) outcome.settings.push_back(set_word("optimizer", lion));
  };
  switch (outcome.mode) {
    case Mode::kNone:
      outcome.techniques = "nothing";
      return;
    case Mode::kConservative:
      outcome.techniques = "every second layer checkpointed";
      outcome.settings.push_back(set_count("gradient_checkpointing.every", 2));
      return;
    case Mode::kBalanced:
      outcome.techniques =
          "every layer checkpointed, its input in host memory; 32-bit optimizer states in managed memory";
      outcome.settings.push_back(set_word("gradient_checkpointing", "offload"));
      optimizer("paged_adamw_32bit", "paged_lion_32bit");
      return;
    case Mode::kAggressive:
    case Mode::kAggressiveSmaller:
      outcome.techniques =
          "every layer checkpointed, its input in host memory; 8-bit optimizer states in managed memory; cross-entropy "
          "in chunks";
      outcome.settings.push_back(set_word("gradient_checkpointing", "offload"));
      optimizer("paged_adamw_8bit", "paged_lion_8bit");
      outcome.settings.push_back(set_word("loss", "chunked"));
      return;
  }
}

TrainingJob with(const std::vector<Setting>& settings, TrainingJob job) {
  for (const Setting& setting : settings) apply(setting, job);
  return job;
}

/// Halves the micro-batch, then the sequence, until the job fits or nothing is left to halve.
void shrink(ModeOutcome& outcome, TrainingJob job, Peaks& peaks, const Card& card) {
  constexpr Count kShortest = 256;
  const Count batch = job.micro_batch_size;
  const Count samples = batch * job.gradient_accumulation_steps;
  const Count length = job.sequence_length;
  while (!fits(peaks.full(job), card)) {
    if (job.micro_batch_size > 1 && !job.optimizer_in_backward) {
      Count next = job.micro_batch_size / 2;
      while (job.micro_batch_size % next != 0) --next;
      job.micro_batch_size = next;
      job.gradient_accumulation_steps = samples / next;
    } else if (job.sequence_length / 2 >= kShortest) {
      TrainingJob shorter = job;
      shorter.sequence_length /= 2;
      if (!peaks.quick(shorter).known) break;  // it has no room for its pictures
      job = std::move(shorter);
    } else {
      break;
    }
  }
  if (job.micro_batch_size != batch) {
    outcome.settings.push_back(set_count("micro_batch_size", job.micro_batch_size));
    outcome.settings.push_back(set_count("gradient_accumulation_steps", job.gradient_accumulation_steps));
    outcome.techniques += "; micro-batches of " + format_grouped(job.micro_batch_size);
  }
  if (job.sequence_length != length) {
    outcome.settings.push_back(set_count("sequence_length", job.sequence_length));
    outcome.techniques += "; sequences of " + format_grouped(job.sequence_length) + " tokens";
  }
}

}  // namespace

std::string_view name_of(Mode mode) {
  switch (mode) {
    case Mode::kNone:
      return "none";
    case Mode::kConservative:
      return "conservative";
    case Mode::kBalanced:
      return "balanced";
    case Mode::kAggressive:
      return "aggressive";
    case Mode::kAggressiveSmaller:
      return "aggressive_smaller_batch";
  }
  return "";
}

Mode mode_for(double ratio) {
  if (ratio <= 1.0) return Mode::kNone;
  if (ratio <= 1.5) return Mode::kBalanced;
  return ratio <= 3.0 ? Mode::kAggressive : Mode::kAggressiveSmaller;
}

ModeTable modes(Peaks& peaks, const TrainingJob& job, const Card& card) {
  ModeTable table;
  const std::vector<Setting> base_settings = stripped(job);
  const TrainingJob base = with(base_settings, job);
  table.unoptimised = peaks.afresh(base_settings, base);
  const Fit fit = check_fit(table.unoptimised, card);
  table.ratio = fit.utilization;
  table.recommended = mode_for(table.ratio);
  for (int index = 0; index < kModeCount; ++index) {
    ModeOutcome outcome;
    outcome.mode = static_cast<Mode>(index);
    outcome.settings = base_settings;
    add_techniques(outcome, base);
    const bool taken = peaks.takes(merged(outcome.settings));
    if (taken && outcome.mode == Mode::kAggressiveSmaller) {
      shrink(outcome, with(outcome.settings, job), peaks, card);
    }
    outcome.settings = merged(outcome.settings);
    outcome.figures = peaks.afresh(outcome.settings, with(outcome.settings, job));
    outcome.fit = check_fit(outcome.figures, card);
    if (outcome.mode == table.recommended) table.recommended_fits = outcome.fit.verdict == Verdict::kFits;
    table.modes.push_back(std::move(outcome));
  }
  return table;
}

}  // namespace tidemark
