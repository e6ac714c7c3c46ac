#include "core/wire/ask.hpp"
#include "core/wire/json.hpp"
#include "core/wire/verbs/verbs.hpp"
#include "core/wire/write_answer.hpp"

namespace tidemark {

Value run_fit(const Engine& engine, const Value& request) {
  return write_report(ask_fit(engine, request));
}

Value write_report(const FitReport& report) {
  if (!report.answered) return write_errors(report.header.issues);
  Value reply = empty_object();
  set(reply, "schema", 1);
  set(reply, "engine", report.header.engine);
  set(reply, "catalog", report.header.catalog);
  set(reply, "model", report.header.model);
  set(reply, "allocated", write_range(report.allocated));
  if (report.rule_of_thumb > 0.0) set(reply, "rule_of_thumb", report.rule_of_thumb);
  Value rows = empty_array();
  for (const CardFit& card : report.cards) {
    Value row = std::move(write_fits({card.fit}).items.front());
    set(row, "allocated", write_range(card.allocated));
    if (report.rule_of_thumb > 0.0) set(row, "within_rule_of_thumb", card.within_share);
    // Null where not even the most cards do, or where nobody asked.
    Value fewest;
    if (card.fewest.cards > 0) {
      fewest = empty_object();
      set(fewest, "cards", std::int64_t{card.fewest.cards});
      set(fewest, "title", card.fewest.step.title);
      set(fewest, "patch", merge_patch(card.fewest.step.settings, report.header.stated_as));
      set(fewest, "allocated_bytes", std::int64_t{card.fewest.figures.allocated.expected});
    }
    set(row, "fewest", std::move(fewest));
    rows.items.push_back(std::move(row));
  }
  set(reply, "fits", std::move(rows));
  set(reply, "issues", write_issues(report.header.issues));
  return reply;
}

}  // namespace tidemark
