#include <algorithm>

#include "core/cli/commands.hpp"
#include "core/cli/terminal.hpp"
#include "core/fit/fit.hpp"
#include "core/wire/ask.hpp"
#include "core/wire/json.hpp"

namespace tidemark {
namespace {

/// Prints one report in the form asked for.
template <class Report>
void show(const Report& report, const Invocation& typed) {
  if (typed.json) {
    print(write_json(write_report(report), 2) + "\n");
  } else if (typed.markdown) {
    print(render_markdown(document_of(report)));
  } else {
    print(render_text(document_of(report), typed.style));
  }
}

}  // namespace

int run_fit_command(const Invocation& typed) {
  Issues issues;
  const Value request = read_job(typed, issues);
  if (has_error(issues)) return refuse(std::move(issues), typed.json);
  FitReport report = ask_fit(typed.engine, request);
  report.header.issues.insert(report.header.issues.begin(), issues.begin(), issues.end());
  if (!report.answered) return refuse(std::move(report.header.issues), typed.json);
  show(report, typed);
  // Of named cards all must fit, of the whole catalog one.
  const auto fits_not = [](const CardFit& card) { return falls_short(card.fit); };
  const bool bad = report.whole_catalog ? std::all_of(report.cards.begin(), report.cards.end(), fits_not)
                                        : std::any_of(report.cards.begin(), report.cards.end(), fits_not);
  return bad ? kDoesNotFit : kAnswered;
}

int run_advise_command(const Invocation& typed) {
  Issues issues;
  const Value request = read_job(typed, issues);
  if (has_error(issues)) return refuse(std::move(issues), typed.json);
  AdviceReport report = ask_advice(typed.engine, request);
  report.header.issues.insert(report.header.issues.begin(), issues.begin(), issues.end());
  if (!report.answered) return refuse(std::move(report.header.issues), typed.json);
  show(report, typed);
  return falls_short(report.advice.fit) ? kDoesNotFit : kAnswered;
}

int run_map_command(const Invocation& typed) {
  Issues issues;
  const Value request = read_job(typed, issues);
  if (has_error(issues)) return refuse(std::move(issues), typed.json);
  MapReport report = ask_map(typed.engine, request);
  report.header.issues.insert(report.header.issues.begin(), issues.begin(), issues.end());
  if (!report.answered) return refuse(std::move(report.header.issues), typed.json);
  show(report, typed);
  return kAnswered;
}

}  // namespace tidemark
