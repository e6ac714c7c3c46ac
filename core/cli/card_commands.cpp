#include <algorithm>

#include "core/cli/commands.hpp"
#include "core/cli/terminal.hpp"
#include "core/fit/fit.hpp"
#include "core/wire/ask.hpp"
#include "core/wire/json.hpp"

namespace tidemark {
namespace {

/// Writes a key that only the verb reads: JSON where the word is some, a list where commas part it.
void put_key(Value& request, std::string_view key, const std::string& word, bool list) {
  if (word.empty()) return;
  Issues issues;
  Value value = parse_json(list ? "[" + word + "]" : word, "", issues);
  if (has_error(issues)) value = to_value(word);
  for (Value::Member& member : request.members) {
    if (member.key != key) continue;
    member.value = std::move(value);
    return;
  }
  set(request, key, std::move(value));
}

/// Prints one report in the form asked for.
template <class Report>
void show(const Report& report, const OutputFlags& output, const TextStyle& style) {
  if (output.json) {
    print(write_json(write_report(report), 2) + "\n");
  } else if (output.markdown) {
    print(render_markdown(document_of(report)));
  } else {
    print(render_text(document_of(report), style));
  }
}

int refuse(Issues issues, const OutputFlags& output) {
  complain(std::move(issues), output);
  return kBadInput;
}

}  // namespace

int run_fit_command(const Engine& engine, const JobFlags& flags, const CardFlags& cards,
                    const std::string& request_path, const OutputFlags& output, const TextStyle& style) {
  Issues issues;
  Value request = read_job(flags, request_path, "fit", issues);
  if (has_error(issues)) return refuse(std::move(issues), output);
  if (cards.all_gpus) put_key(request, "all_gpus", "true", false);
  put_key(request, "rule_of_thumb", cards.rule_of_thumb, false);
  FitReport report = ask_fit(engine, request);
  report.header.issues.insert(report.header.issues.begin(), issues.begin(), issues.end());
  if (!report.answered) return refuse(std::move(report.header.issues), output);
  show(report, output, style);
  // Of named cards all must fit, of the whole catalog one.
  const auto fits_not = [](const CardFit& card) { return falls_short(card.fit); };
  const bool bad = report.whole_catalog ? std::all_of(report.cards.begin(), report.cards.end(), fits_not)
                                        : std::any_of(report.cards.begin(), report.cards.end(), fits_not);
  return bad ? kDoesNotFit : kAnswered;
}

int run_advise_command(const Engine& engine, const JobFlags& flags, const std::string& request_path,
                       const OutputFlags& output, const TextStyle& style) {
  Issues issues;
  const Value request = read_job(flags, request_path, "advise", issues);
  if (has_error(issues)) return refuse(std::move(issues), output);
  AdviceReport report = ask_advice(engine, request);
  report.header.issues.insert(report.header.issues.begin(), issues.begin(), issues.end());
  if (!report.answered) return refuse(std::move(report.header.issues), output);
  show(report, output, style);
  return falls_short(report.advice.fit) ? kDoesNotFit : kAnswered;
}

int run_map_command(const Engine& engine, const JobFlags& flags, const CardFlags& cards,
                    const std::string& request_path, const OutputFlags& output, const TextStyle& style) {
  Issues issues;
  Value request = read_job(flags, request_path, "map", issues);
  if (has_error(issues)) return refuse(std::move(issues), output);
  put_key(request, "batches", cards.batches, true);
  put_key(request, "sequences", cards.sequences, true);
  if (cards.quick) put_key(request, "exact", "false", false);
  MapReport report = ask_map(engine, request);
  report.header.issues.insert(report.header.issues.begin(), issues.begin(), issues.end());
  if (!report.answered) return refuse(std::move(report.header.issues), output);
  show(report, output, style);
  return kAnswered;
}

}  // namespace tidemark
