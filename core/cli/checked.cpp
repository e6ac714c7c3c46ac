#include "core/cli/checked.hpp"

#include "core/cli/imported.hpp"
#include "core/fit/fit.hpp"
#include "core/wire/ask.hpp"
#include "core/wire/json.hpp"

namespace tidemark {
namespace {

/// "Would fit with: Checkpoint every layer; 8-bit AdamW.", or nothing.
std::string advice_for(const Engine& engine, const Value& request) {
  const AdviceReport report = ask_advice(engine, request);
  if (!report.answered || !report.advice.combination || !report.advice.combination->found) return {};
  std::string steps;
  for (const Step& step : report.advice.combination->steps) steps += (steps.empty() ? "" : "; ") + step.title;
  return " It would with: " + steps + ".";
}

const Fit* worst_of(const std::vector<Fit>& fits) {
  const Fit* worst = nullptr;
  for (const Fit& fit : fits) {
    if (fit.verdict != Verdict::kUnknown && (worst == nullptr || fit.headroom < worst->headroom)) worst = &fit;
  }
  return worst;
}

}  // namespace

void judge(const Answer& answer, const Engine& engine, const Value& request, Checked& checked) {
  checked.verdict = Checked::Verdict::kNotEstimated;
  if (!answer.estimate) {
    if (const Issue* why = first_error(answer.issues); why != nullptr) checked.message = why->message;
    for (const Issue& issue : answer.issues) {
      if (issue.code == "UNKNOWN_GPU") checked.misused = true;
    }
    return;
  }
  const Fit* fit = worst_of(answer.fits);
  const std::string need = format_gib(answer.estimate->allocated.expected);
  if (fit == nullptr) {
    checked.misused = answer.fits.empty();
    checked.message = "The job needs " + need + ", and no card is named: --gpu NAME.";
    if (!checked.misused) checked.message = "The job needs " + need + ". " + answer.fits.front().reason;
    return;
  }
  const std::string of = need + " of " + format_gib(fit->usable) + " that " + fit->gpu + " gives";
  if (falls_short(*fit)) {
    checked.verdict = Checked::Verdict::kDoesNotFit;
    checked.message =
        "The job needs " + of + ": " + format_gib(-fit->headroom) + " too much." + advice_for(engine, request);
  } else if (fit->verdict == Verdict::kTight) {
    checked.verdict = Checked::Verdict::kTight;
    checked.message = "The job needs " + of + ", which is too near for the estimate to tell.";
  } else {
    checked.verdict = Checked::Verdict::kFits;
    checked.message = "The job needs " + of + ": " + format_gib(fit->headroom) + " to spare.";
  }
}

void find_place(const std::vector<std::string>& files, Checked& checked) {
  if (files.empty()) return;
  checked.file = files.front();
  Issues none;
  const exchange::Import import = import_files(files, none);
  for (std::string_view path : {"model", "sequence_length", "micro_batch_size"}) {
    for (const exchange::Finding& field : import.fields) {
      if (field.path != path || field.origins.empty() || field.origins.front().first < 1) continue;
      checked.file = field.origins.front().file;
      checked.line = field.origins.front().first;
    }
  }
}

}  // namespace tidemark
