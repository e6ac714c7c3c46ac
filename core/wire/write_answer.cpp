#include "core/wire/write_answer.hpp"

#include <cmath>

#include "core/wire/json.hpp"

namespace tidemark {
namespace {

std::string_view name_of_severity(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kNote:
      return "note";
  }
  return "";
}

Value bytes(Bytes amount) {
  return to_value(std::int64_t{amount});
}

/// A number as JSON has it in every language: 1024, where a double that happens to be whole would read 1024.0.
Value number(double real) {
  constexpr double kExact = 9007199254740992.0;  // 2^53: up to here a double holds every whole number
  const bool whole = std::floor(real) == real && std::fabs(real) <= kExact;
  return whole ? to_value(static_cast<std::int64_t>(real)) : to_value(real);
}

Value write_recipe(const Recipe& recipe) {
  Value row = empty_object();
  set(row, "name", recipe.name);
  set(row, "weights", name_of(recipe.weights));
  set(row, "gradients", name_of(recipe.gradients));
  set(row, "master_weights", recipe.master_weights ? name_of(*recipe.master_weights) : std::string_view{"none"});
  set(row, "optimizer_states", name_of(recipe.optimizer_states));
  set(row, "autocast", recipe.autocast ? name_of(*recipe.autocast) : std::string_view{"none"});
  return row;
}

Value write_breakdown(const std::vector<BreakdownGroup>& groups) {
  Value list = empty_array();
  for (const BreakdownGroup& group : groups) {
    Value entries = empty_array();
    for (const BreakdownEntry& entry : group.entries) {
      Value row = empty_object();
      set(row, "name", entry.name);
      set(row, "bytes", bytes(entry.bytes));
      set(row, "formula", entry.formula);
      set(row, "substituted", entry.substituted);
      set(row, "source", entry.source);
      set(row, "confidence", name_of(entry.confidence));
      entries.items.push_back(std::move(row));
    }
    Value row = empty_object();
    set(row, "category", name_of(group.category));
    set(row, "bytes", bytes(group.bytes));
    set(row, "entries", std::move(entries));
    list.items.push_back(std::move(row));
  }
  return list;
}

Value write_timeline(const std::vector<Instant>& timeline) {
  Value list = empty_array();
  for (const Instant& instant : timeline) {
    Value amounts = empty_object();
    for (int category = 0; category < kCategoryCount; ++category) {
      set(amounts, name_of(static_cast<Category>(category)), bytes(instant.bytes[category]));
    }
    Value row = empty_object();
    set(row, "instant", instant.label);
    set(row, "phase", name_of(instant.phase));
    set(row, "total", bytes(instant.total));
    set(row, "bytes", std::move(amounts));
    list.items.push_back(std::move(row));
  }
  return list;
}

Value write_ranks(const std::vector<RankFigures>& ranks) {
  Value list = empty_array();
  for (const RankFigures& rank : ranks) {
    Value row = empty_object();
    set(row, "first", bytes(rank.first));
    set(row, "last", bytes(rank.last));
    set(row, "layers", rank.layers);
    set(row, "parameters", bytes(rank.parameters));
    set(row, "allocated", bytes(rank.allocated));
    set(row, "reserved", bytes(rank.reserved));
    set(row, "phase", name_of(rank.phase));
    list.items.push_back(std::move(row));
  }
  return list;
}

Value write_estimate(const Answer& answer) {
  const Estimate& estimate = *answer.estimate;
  Value host = empty_object();
  set(host, "expected", bytes(estimate.host.expected));
  set(host, "high", bytes(estimate.host.high));
  set(host, "load", bytes(estimate.host.load));
  Value peak = empty_object();
  set(peak, "phase", name_of(estimate.peak.phase));
  set(peak, "at", estimate.peak.at);
  set(peak, "rank", estimate.peak.rank);
  Value parameters = empty_object();
  set(parameters, "total", bytes(estimate.parameters.total));
  set(parameters, "trainable", bytes(estimate.parameters.trainable));
  set(parameters, "active", bytes(estimate.parameters.active));
  set(parameters, "base", bytes(estimate.parameters.base));
  set(parameters, "published", bytes(estimate.parameters.published));
  set(parameters, "adapted_modules", bytes(estimate.parameters.adapted_modules));
  set(parameters, "saved_modules", bytes(estimate.parameters.saved_modules));
  Value overrides = empty_object();
  const auto echo = [&](std::string_view name, const std::optional<double>& value) {
    if (value) set(overrides, name, number(*value));
  };
  echo("fragmentation_gib", answer.overrides.fragmentation_gib);
  echo("misc_overhead_gib", answer.overrides.misc_overhead_gib);
  echo("cuda_context_gib", answer.overrides.cuda_context_gib);

  Value row = empty_object();
  set(row, "model", answer.model);
  set(row, "architecture", estimate.architecture);
  set(row, "allocated", write_range(estimate.allocated));
  set(row, "reserved", write_range(estimate.reserved));
  set(row, "device", write_range(estimate.device));
  set(row, "first_step_allocated", bytes(estimate.first_step_allocated));
  set(row, "host", std::move(host));
  set(row, "peak", std::move(peak));
  Value phases = empty_object();
  for (int phase = 0; phase < kPhaseCount; ++phase) {
    if (phase >= static_cast<int>(Phase::kEvaluation) && estimate.phase_peaks[phase] == 0) continue;
    set(phases, name_of(static_cast<Phase>(phase)), bytes(estimate.phase_peaks[phase]));
  }
  set(row, "phase_peaks", std::move(phases));
  set(row, "breakdown", write_breakdown(estimate.breakdown));
  set(row, "timeline", write_timeline(estimate.timeline));
  if (!estimate.ranks.empty()) set(row, "ranks", write_ranks(estimate.ranks));
  set(row, "parameters", std::move(parameters));
  Value recipe = write_recipe(estimate.recipe);
  // Adapters have a dtype of their own, which their gradients share: the recipe is about the frozen weights.
  const bool adapters = answer.job.method == Method::kLora || answer.job.method == Method::kQlora;
  if (adapters) set(recipe, "adapters", name_of(answer.job.adapter.dtype));
  set(row, "recipe", std::move(recipe));
  set(row, "attention_kernel", estimate.attention_kernel);
  set(row, "overrides", std::move(overrides));
  return row;
}

}  // namespace

Value write_range(const Range& range) {
  Value row = empty_object();
  set(row, "low", bytes(range.low));
  set(row, "expected", bytes(range.expected));
  set(row, "high", bytes(range.high));
  return row;
}

Value write_fits(const std::vector<Fit>& fits) {
  Value list = empty_array();
  for (const Fit& fit : fits) {
    Value row = empty_object();
    set(row, "gpu", fit.gpu);
    set(row, "usable_bytes", bytes(fit.usable));
    set(row, "verdict", name_of(fit.verdict));
    set(row, "headroom_bytes", bytes(fit.headroom));
    // Four digits say all there is to say, and are the same from every compiler.
    set(row, "utilization", number(std::floor(fit.utilization * 10000.0 + 0.5) / 10000.0));
    if (!fit.reason.empty()) set(row, "reason", fit.reason);
    list.items.push_back(std::move(row));
  }
  return list;
}

Value write_issues(const Issues& issues) {
  Value list = empty_array();
  for (const Issue& issue : issues) {
    Value row = empty_object();
    set(row, "code", issue.code);
    set(row, "severity", name_of_severity(issue.severity));
    set(row, "path", issue.path);
    set(row, "message", issue.message);
    set(row, "suggestion", issue.suggestion);
    list.items.push_back(std::move(row));
  }
  return list;
}

Value write_errors(const Issues& issues) {
  Value reply = empty_object();
  set(reply, "schema", 1);
  set(reply, "issues", write_issues(issues));
  return reply;
}

Value write_answer(const Answer& answer) {
  if (!answer.estimate) {
    Value reply = write_errors(answer.issues);
    if (answer.partial) {
      const PartialAnswer& known = *answer.partial;
      Value row = empty_object();
      set(row, "model", known.model);
      set(row, "parameters", bytes(known.parameters));
      set(row, "weights", bytes(known.weights));
      set(row, "gradients", bytes(known.gradients));
      set(row, "optimizer_states", bytes(known.optimizer_states));
      set(row, "recipe", write_recipe(answer.job.recipe));
      set(row, "note", known.note);
      set(reply, "partial", std::move(row));
    }
    return reply;
  }
  Value reply = empty_object();
  set(reply, "schema", 1);
  set(reply, "engine", answer.engine);
  set(reply, "catalog", answer.catalog);
  set(reply, "estimate", write_estimate(answer));
  set(reply, "fits", write_fits(answer.fits));
  set(reply, "issues", write_issues(answer.issues));
  return reply;
}

}  // namespace tidemark
