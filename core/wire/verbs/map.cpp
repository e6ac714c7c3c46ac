#include "core/wire/ask.hpp"
#include "core/wire/json.hpp"
#include "core/wire/verbs/verbs.hpp"
#include "core/wire/write_answer.hpp"

namespace tidemark {
namespace {

Value counts(const std::vector<Count>& list) {
  Value array = empty_array();
  for (Count count : list) array.items.push_back(to_value(std::int64_t{count}));
  return array;
}

}  // namespace

Value run_map(const Engine& engine, const Value& request) {
  return write_report(ask_map(engine, request));
}

Value write_report(const MapReport& report) {
  if (!report.answered) return write_errors(report.header.issues);
  const FitMap& map = report.map;
  // Two tables of rows, so that a page can read them as they are.
  Value peaks = empty_array();
  Value verdicts = empty_array();
  for (std::size_t b = 0; b < map.rows().size(); ++b) {
    Value peak_row = empty_array();
    Value verdict_row = empty_array();
    for (std::size_t s = 0; s < map.sequences.size(); ++s) {
      const Figures& figures = map.at(b, s);
      peak_row.items.push_back(figures.known ? to_value(std::int64_t{figures.allocated.expected}) : Value{});
      verdict_row.items.push_back(to_value(name_of(map.verdicts[b * map.sequences.size() + s])));
    }
    peaks.items.push_back(std::move(peak_row));
    verdicts.items.push_back(std::move(verdict_row));
  }
  Value reply = empty_object();
  set(reply, "schema", 1);
  set(reply, "engine", report.header.engine);
  set(reply, "catalog", report.header.catalog);
  set(reply, "model", report.header.model);
  set(reply, "gpu", report.card.name);
  set(reply, "usable_bytes", std::int64_t{report.card.visible});
  set(reply, "exact", map.exact);
  set(reply, "batches", counts(map.batches));
  if (!map.cards.empty()) set(reply, "cards", counts(map.cards));
  set(reply, "sequences", counts(map.sequences));
  set(reply, "allocated", std::move(peaks));
  set(reply, "verdicts", std::move(verdicts));
  set(reply, "issues", write_issues(report.header.issues));
  return reply;
}

}  // namespace tidemark
