#include <cmath>

#include "core/options/options.hpp"
#include "core/wire/ask.hpp"
#include "core/wire/json.hpp"
#include "core/wire/verbs/verbs.hpp"
#include "core/wire/write_answer.hpp"

namespace tidemark {
namespace {

Value bytes(Bytes amount) {
  return to_value(std::int64_t{amount});
}

Value write_fit(const Fit& fit) {
  return std::move(write_fits({fit}).items.front());
}

Value write_cost(const Cost& cost) {
  Value row = empty_object();
  set(row, "weight", cost.weight);
  set(row, "harm", name_of(cost.harm));
  set(row, "speed", cost.speed);
  set(row, "exactness", cost.exactness);
  set(row, "quality", cost.quality);
  set(row, "source", cost.source);
  return row;
}

Value write_changes(const std::vector<Setting>& settings) {
  Value list = empty_array();
  for (const Setting& setting : settings) {
    Value row = empty_object();
    set(row, "path", pointer_of(setting.option));
    set(row, "value", setting.value);
    list.items.push_back(std::move(row));
  }
  return list;
}

void write_change(Value& row, const std::vector<Setting>& settings, const StatedAs& said) {
  set(row, "changes", write_changes(merged(settings)));
  set(row, "patch", merge_patch(settings, said));
}

void write_figures(Value& row, const Figures& figures, Bytes now) {
  set(row, "allocated", write_range(figures.allocated));
  set(row, "reserved", write_range(figures.reserved));
  set(row, "host_bytes", bytes(figures.host));
  set(row, "peak_phase", name_of(figures.phase));
  set(row, "saved_bytes", bytes(now - figures.allocated.expected));
}

Value write_suggestion(const Suggestion& suggestion, Bytes now, const StatedAs& said) {
  Value row = empty_object();
  set(row, "title", suggestion.step.title);
  write_change(row, suggestion.step.settings, said);
  set(row, "cost", write_cost(suggestion.step.cost));
  write_figures(row, suggestion.figures, now);
  set(row, "fit", write_fit(suggestion.fit));
  return row;
}

Value write_more_cards(const std::vector<MoreCards>& list, Bytes now, const StatedAs& said) {
  Value rows = empty_array();
  for (const MoreCards& more : list) {
    Value row = write_suggestion({more.step, more.figures, 0, more.fit}, now, said);
    set(row, "cards", std::int64_t{more.cards});
    rows.items.push_back(std::move(row));
  }
  return rows;
}

Value write_ways(const std::vector<Way>& ways, const std::string& asked, const StatedAs& said) {
  Value rows = empty_array();
  for (const Way& way : ways) {
    Value row = empty_object();
    set(row, "cards", std::int64_t{way.cards});
    set(row, "gpu", way.gpu);
    set(row, "how", way.how);
    set(row, "allocated_bytes", bytes(way.allocated));
    Value patch = merge_patch(way.settings, said);
    if (way.gpu != asked) {
      set(patch, "gpu", way.gpu);
      set(patch, "gpus", Value{});
    }
    set(row, "patch", std::move(patch));
    rows.items.push_back(std::move(row));
  }
  return rows;
}

Value write_step(const Step& step, const StatedAs& said) {
  Value row = empty_object();
  set(row, "lever", name_of(step.lever));
  set(row, "title", step.title);
  write_change(row, step.settings, said);
  set(row, "cost", write_cost(step.cost));
  return row;
}

Value write_combination(const Combination& combination, const Card& card, Bytes now, const StatedAs& said) {
  Value steps = empty_array();
  for (const Step& step : combination.steps) steps.items.push_back(write_step(step, said));
  Value row = empty_object();
  set(row, "found", combination.found);
  set(row, "proven", combination.proven);
  set(row, "weight", combination.weight);
  set(row, "steps", std::move(steps));
  write_change(row, settings_of(combination.steps), said);
  write_figures(row, combination.figures, now);
  set(row, "fit", write_fit(check_fit(combination.figures, card)));
  set(row, "tried", std::int64_t{combination.tried});
  set(row, "verified", std::int64_t{combination.verified});
  return row;
}

Value write_card(const std::optional<CardFit>& card) {
  if (!card) return {};
  Value row = write_fit(card->fit);
  set(row, "allocated", write_range(card->allocated));
  return row;
}

Value write_frontier(const Frontier& frontier) {
  Value row = empty_object();
  set(row, "option", option_of(frontier.quantity));
  set(row, "current", std::int64_t{frontier.current});
  set(row, "largest", std::int64_t{frontier.largest});
  set(row, "open", frontier.open);
  set(row, "ends_with_model", frontier.ends);
  set(row, "allocated", frontier.largest > 0 ? write_range(frontier.allocated) : Value{});
  set(row, "next_allocated", frontier.open || frontier.ends ? Value{} : write_range(frontier.next));
  return row;
}

Value write_tier(const Tier& tier) {
  Value row = empty_object();
  set(row, "vram_gb", tier.marketed_gb);
  set(row, "usable_bytes", bytes(tier.fit.usable));
  set(row, "micro_batch_size", std::int64_t{tier.batch.largest});
  set(row, "allocated", tier.batch.largest > 0 ? write_range(tier.batch.allocated) : Value{});
  set(row, "preset", std::int64_t{tier.preset});
  return row;
}

Value write_modes(const ModeTable& table, Bytes now, const StatedAs& said) {
  Value rows = empty_array();
  for (const ModeOutcome& outcome : table.modes) {
    Value row = empty_object();
    set(row, "mode", name_of(outcome.mode));
    set(row, "techniques", outcome.techniques);
    write_change(row, outcome.settings, said);
    write_figures(row, outcome.figures, now);
    set(row, "fit", write_fit(outcome.fit));
    rows.items.push_back(std::move(row));
  }
  Value value = empty_object();
  set(value, "unoptimised", write_range(table.unoptimised.allocated));
  set(value, "ratio", std::floor(table.ratio * 10000.0 + 0.5) / 10000.0);
  set(value, "recommended", name_of(table.recommended));
  set(value, "recommended_fits", table.recommended_fits);
  set(value, "modes", std::move(rows));
  return value;
}

}  // namespace

Value run_advise(const Engine& engine, const Value& request) {
  return write_report(ask_advice(engine, request));
}

Value write_report(const AdviceReport& report) {
  if (!report.answered) return write_errors(report.header.issues);
  const Advice& advice = report.advice;
  const Bytes now = advice.now.allocated.expected;
  const StatedAs& said = report.header.stated_as;

  Value present = empty_object();
  write_figures(present, advice.now, now);
  set(present, "fit", write_fit(advice.fit));
  Value suggestions = empty_array();
  for (const Suggestion& suggestion : advice.suggestions) {
    suggestions.items.push_back(write_suggestion(suggestion, now, said));
  }
  Value frontiers = empty_array();
  for (const Frontier& frontier : report.frontiers) {
    if (frontier.applies) frontiers.items.push_back(write_frontier(frontier));
  }
  Value tier_rows = empty_array();
  for (const Tier& tier : report.tiers) tier_rows.items.push_back(write_tier(tier));

  Value reply = empty_object();
  set(reply, "schema", 1);
  set(reply, "engine", report.header.engine);
  set(reply, "catalog", report.header.catalog);
  set(reply, "model", report.header.model);
  set(reply, "gpu", advice.card.name);
  set(reply, "now", std::move(present));
  set(reply, "combination",
      advice.combination ? write_combination(*advice.combination, advice.card, now, said) : Value{});
  set(reply, "suggestions", std::move(suggestions));
  set(reply, "without_effect", std::int64_t{advice.without_effect});
  set(reply, "expandable_segments", advice.expandable ? write_suggestion(*advice.expandable, now, said) : Value{});
  set(reply, "smallest_card", write_card(advice.smallest_as_is));
  set(reply, "smallest_card_changed", write_card(advice.smallest_changed));
  set(reply, "more_cards", write_more_cards(advice.more_cards, now, said));
  set(reply, "ways", write_ways(advice.ways, advice.card.name, said));
  set(reply, "subject", report.changed ? "combination" : "request");
  set(reply, "frontiers", std::move(frontiers));
  set(reply, "tiers", std::move(tier_rows));
  set(reply, "modes", report.modes ? write_modes(*report.modes, now, said) : Value{});
  set(reply, "issues", write_issues(report.header.issues));
  return reply;
}

}  // namespace tidemark
