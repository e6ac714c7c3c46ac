#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cli/commands.hpp"
#include "core/cli/job_flags.hpp"
#include "core/cli/terminal.hpp"
#include "core/exchange/out/export.hpp"
#include "core/exchange/out/job.hpp"
#include "core/exchange/out/patch.hpp"
#include "core/units/nearest.hpp"
#include "core/wire/ask.hpp"
#include "core/wire/json.hpp"
#include "core/wire/write_answer.hpp"

namespace tidemark {
namespace {

exchange::ExportJob job_from(const Engine::Question& read, Value request) {
  const std::string_view model = read.model != nullptr ? std::string_view{read.model->id} : std::string_view{};
  const Value* given = request.find("config");
  Value config = read.model != nullptr ? read.model->config : given != nullptr ? *given : Value{};
  return exchange::export_job(model, read.answer.architecture.class_name, read.answer.job, std::move(request),
                              std::move(config));
}

int unknown_format(const std::string& word, bool json) {
  std::vector<std::string_view> names;
  std::string all;
  for (const exchange::Exporter& exporter : exchange::exporters()) {
    names.push_back(exporter.name);
    all += (all.empty() ? "" : ", ") + std::string{exporter.name};
  }
  const std::string unknown = word.empty() ? std::string{} : "There is no format \"" + word + "\". ";
  return refuse(
      {{"BAD_USAGE", Severity::kError, "", unknown + "Say in which format: " + all + ".", nearest(word, names)}}, json);
}

/// The job of an invocation, understood; nothing when an error is among the issues.
std::optional<Engine::Question> read_exported(const Invocation& typed, Value& request, Issues& issues) {
  request = read_job(typed, issues);
  if (has_error(issues)) return std::nullopt;
  Engine::Question read = typed.engine.read(exchange::without_sharding(request));
  if (read.complete) return read;
  issues = read.answer.issues;
  return std::nullopt;
}

/// Prints what was written: the text on standard output, what it lacks on standard error; or both as JSON.
int print_exported(const Invocation& typed, std::string_view format, std::string_view file,
                   const exchange::Exported& exported, Issues issues) {
  issues.insert(issues.end(), exported.issues.begin(), exported.issues.end());
  if (typed.json) {
    Value out = write_errors(issues);
    set(out, "format", format);
    set(out, "file", file);
    set(out, "text", exported.text);
    print(write_json(out, 2) + "\n");
    return kAnswered;
  }
  print(exported.text);
  if (!issues.empty()) complain(std::move(issues));
  return kAnswered;
}

/// What flags ask of a file's job, and the combination of `advise` where that does not fit the first card yet.
std::vector<exchange::Change> changes_of(const Invocation& typed, const Value& request, const Value& said) {
  const std::vector<exchange::Change> stated = exchange::leaves_of(said);
  std::vector<exchange::Change> changes;
  for (exchange::Change& leaf : exchange::leaves_of(request)) {
    const bool of_card = leaf.first == "gpu" || leaf.first == "gpus" || leaf.first == "verb";
    const bool before = std::any_of(stated.begin(), stated.end(), [&](const exchange::Change& other) {
      return other.first == leaf.first && write_json(other.second) == write_json(leaf.second);
    });
    if (!of_card && !before) changes.push_back(std::move(leaf));
  }
  const Value* cards = request.find("gpus");
  if (request.find("gpu") == nullptr && cards == nullptr) return changes;
  const AdviceReport report = ask_advice(typed.engine, request);
  if (!report.answered || !report.advice.combination) return changes;
  for (const Setting& setting : merged(settings_of(report.advice.combination->steps)))
    changes.emplace_back(setting.option, setting.value);
  return changes;
}

/// `export patch FILE`: the job that fits, as other lines of the file that was given.
int run_patch(const Invocation& typed) {
  Issues issues;
  if (typed.files.empty()) {
    return refuse({{"BAD_USAGE", Severity::kError, "", "Name the file to patch.", ""}}, typed.json);
  }
  std::vector<exchange::Source> sources;
  for (const std::string& file : typed.files) sources.push_back({file, read_file(file, issues), 0});
  const Value request = has_error(issues) ? Value{} : read_job(typed, issues);
  const Value said = has_error(issues) ? Value{} : read_files(typed.files, issues);
  if (has_error(issues)) return refuse(std::move(issues), typed.json);
  const exchange::Patched patched = exchange::patch(std::move(sources), changes_of(typed, request, said));
  if (typed.json) {
    Value out = write_errors(patched.issues);
    set(out, "format", "patch");
    set(out, "file", typed.files[0]);
    set(out, "text", patched.text);
    set(out, "diff", patched.diff);
    print(write_json(out, 2) + "\n");
    return kAnswered;
  }
  print(patched.diff);
  if (!patched.issues.empty()) complain(patched.issues);
  return kAnswered;
}

}  // namespace

int run_export_command(const Invocation& typed) {
  if (typed.word == "patch") return run_patch(typed);
  const exchange::Exporter* exporter = exchange::find_exporter(typed.word);
  if (exporter == nullptr) return unknown_format(typed.word, typed.json);
  Issues issues;
  Value request;
  const auto read = read_exported(typed, request, issues);
  if (!read) return refuse(std::move(issues), typed.json);
  const exchange::Exported exported = exporter->write(job_from(*read, std::move(request)));
  return print_exported(typed, exporter->name, exporter->file, exported, std::move(issues));
}

int run_probe_command(const Invocation& typed) {
  Issues issues;
  Value request;
  const auto read = read_exported(typed, request, issues);
  if (!read) return refuse(std::move(issues), typed.json);
  const exchange::ExportJob job = job_from(*read, std::move(request));
  if (!job.config.is_object() || read->answer.architecture.head != Head::kCausalLm) {
    return refuse({{"NOT_EXPORTED", Severity::kError, "/model",
                    "Probes are written for causal language models with a known configuration so far.", ""}},
                  typed.json);
  }
  const exchange::Exported exported = exchange::write_probe(job);
  return print_exported(typed, "probe", "probe.py", exported, std::move(issues));
}

}  // namespace tidemark
