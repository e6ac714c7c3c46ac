#include <algorithm>

#include "core/cli/checked.hpp"
#include "core/cli/commands.hpp"
#include "core/cli/terminal.hpp"
#include "core/report/layout.hpp"
#include "core/wire/json.hpp"

namespace tidemark {
namespace {

std::string_view word_of(Checked::Verdict verdict) {
  constexpr std::string_view kWords[] = {"fits", "tight", "does not fit", "not estimated", "no job"};
  return kWords[static_cast<int>(verdict)];
}

/// One file, or a job of flags alone.
Checked check_job(const Invocation& typed) {
  Checked checked;
  if (!typed.files.empty()) checked.file = typed.files.front();
  Issues issues;
  const Value request = read_job(typed, issues);
  if (const Issue* why = first_error(issues); why != nullptr) {
    const bool foreign =
        std::any_of(issues.begin(), issues.end(), [](const Issue& issue) { return issue.code == "UNKNOWN_FORMAT"; });
    checked.verdict = foreign ? Checked::Verdict::kNoJob : Checked::Verdict::kNotEstimated;
    checked.message = why->message;
    return checked;
  }
  const Answer answer = typed.engine.answer(request);
  judge(answer, typed.engine, request, checked);
  // Of flags alone it is the flags that are wrong: a file that is not there reads like a model's name.
  if (typed.files.empty() && !answer.estimate) checked.misused = true;
  if (checked.verdict != Checked::Verdict::kFits) find_place(typed.files, checked);
  return checked;
}

std::size_t count(const std::vector<Checked>& all, Checked::Verdict verdict) {
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [verdict](const Checked& one) { return one.verdict == verdict; }));
}

std::string text_of(const std::vector<Checked>& all) {
  std::string out;
  for (const Checked& one : all) {
    if (one.verdict == Checked::Verdict::kNoJob) continue;
    const bool placed = !one.file.empty() && one.verdict != Checked::Verdict::kFits;
    out += one.file.empty() ? "" : one.file + (placed ? ":" + std::to_string(one.line) : "") + ": ";
    out += std::string{word_of(one.verdict)} + ". " + one.message + "\n";
  }
  const std::size_t skipped = count(all, Checked::Verdict::kNoJob);
  out += std::to_string(all.size() - skipped) + " checked, " +
         std::to_string(count(all, Checked::Verdict::kDoesNotFit)) + " too large";
  if (const std::size_t open = count(all, Checked::Verdict::kNotEstimated); open > 0) {
    out += ", " + std::to_string(open) + " not estimated";
  }
  if (skipped > 0) out += "; " + std::to_string(skipped) + (skipped == 1 ? " file is" : " files are") + " no job";
  return out + "\n";
}

Value json_of(const std::vector<Checked>& all) {
  Value list = empty_array();
  for (const Checked& one : all) {
    Value row = empty_object();
    set(row, "file", one.file);
    set(row, "line", one.line);
    set(row, "verdict", word_of(one.verdict));
    set(row, "message", one.message);
    list.items.push_back(std::move(row));
  }
  Value document = empty_object();
  set(document, "schema", 1);
  set(document, "checks", std::move(list));
  return document;
}

}  // namespace

int run_check_command(const Invocation& typed) {
  Issues issues;
  typed.job.check(issues);
  if (has_error(issues)) return refuse(std::move(issues), typed.json);
  std::vector<Checked> all;
  Invocation one = typed;
  if (typed.files.empty()) all.push_back(check_job(typed));
  for (const std::string& file : typed.files) {
    one.files = {file};
    all.push_back(check_job(one));
  }
  for (const Checked& checked : all) {
    if (checked.misused)
      return refuse({{"BAD_USAGE", Severity::kError, checked.file, checked.message, ""}}, typed.json);
  }
  if (typed.sarif) {
    print(write_json(sarif_of(all), 2) + "\n");
  } else if (typed.json) {
    print(write_json(json_of(all), 2) + "\n");
  } else {
    const std::string text = text_of(all);
    print(typed.style.unicode ? text : to_ascii(text));
  }
  const bool open = typed.strict && count(all, Checked::Verdict::kNotEstimated) > 0;
  return open || count(all, Checked::Verdict::kDoesNotFit) > 0 ? kDoesNotFit : kAnswered;
}

}  // namespace tidemark
