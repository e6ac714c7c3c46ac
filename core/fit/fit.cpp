#include "core/fit/fit.hpp"

#include <algorithm>
#include <optional>

namespace tidemark {
namespace {

Bytes from_gib(double gib) {
  return static_cast<Bytes>(gib * static_cast<double>(kGiB));
}

}  // namespace

Fit check_fit(const Range& allocated, const Card& card, const Overrides& overrides) {
  Fit fit;
  fit.gpu = card.name;
  fit.reason = card.estimated;
  if (card.visible <= 0) {
    fit.verdict = Verdict::kUnknown;
    if (fit.reason.empty()) fit.reason = "The memory of this card is not known.";
    return fit;
  }
  const Bytes context = overrides.cuda_context_gib ? from_gib(*overrides.cuda_context_gib) : card.context;
  fit.usable = card.visible - context - from_gib(overrides.misc_overhead_gib.value_or(0.0)) -
               from_gib(overrides.fragmentation_gib.value_or(0.0));
  const bool is_full = fit.usable <= 0;
  fit.usable = std::max<Bytes>(fit.usable, 0);
  fit.headroom = fit.usable - allocated.expected;
  if (is_full) {
    fit.verdict = Verdict::kDoesNotFit;
    fit.reason = "The CUDA context and the overheads that you state leave nothing of this card.";
    return fit;
  }
  fit.utilization = static_cast<double>(allocated.expected) / static_cast<double>(fit.usable);
  if (allocated.high <= fit.usable) {
    fit.verdict = Verdict::kFits;
  } else if (allocated.low <= fit.usable) {
    fit.verdict = Verdict::kTight;
  } else {
    fit.verdict = Verdict::kDoesNotFit;
  }
  return fit;
}

Fit check_fit(const Figures& figures, const Card& card) {
  Overrides beside;
  beside.misc_overhead_gib = static_cast<double>(figures.beside) / static_cast<double>(kGiB);
  Fit fit = check_fit(figures.allocated, card, beside);
  if (!figures.known) fit.verdict = Verdict::kUnknown;
  cannot_run(fit, figures.refusal);
  return fit;
}

bool fits(const Figures& figures, const Card& card) {
  return check_fit(figures, card).verdict == Verdict::kFits;
}

bool falls_short(const Fit& fit) {
  return fit.verdict != Verdict::kUnknown && fit.headroom < 0;
}

Card left_of(const Card& card, const Overrides& overrides) {
  const Fit fit = check_fit({}, card, overrides);
  Card left;
  left.name = card.name;
  left.estimated = fit.reason;
  left.visible = fit.usable;
  left.whole = card.whole > 0 ? card.whole : card.visible;
  // A card that the context fills is not one of unknown memory, which 0 stands for.
  if (fit.usable <= 0 && fit.verdict != Verdict::kUnknown) left.visible = left.context = 1;
  return left;
}

void take_share(const Card& card, TrainingJob& job) {
  if (!job.rolls_out() || job.rollout.engine != RolloutEngine::kVllm) return;
  job.rollout.reserved =
      static_cast<Bytes>(job.rollout.share * static_cast<double>(card.whole > 0 ? card.whole : card.visible));
}

void cannot_run(Fit& fit, std::string_view why) {
  if (why.empty() || (fit.verdict != Verdict::kFits && fit.verdict != Verdict::kTight)) return;
  fit.verdict = Verdict::kUnknown;
  fit.reason = why;
}

}  // namespace tidemark
