#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cli/commands.hpp"
#include "core/cli/terminal.hpp"
#include "core/exchange/out/export.hpp"
#include "core/exchange/out/job.hpp"
#include "core/units/nearest.hpp"
#include "core/wire/json.hpp"
#include "core/wire/write_answer.hpp"

namespace tidemark {
namespace {

exchange::ExportJob job_from(const Engine::Question& read, Value request) {
  const std::string_view model = read.model != nullptr ? std::string_view{read.model->id} : std::string_view{};
  return exchange::export_job(model, read.answer.architecture.class_name, read.answer.job, std::move(request));
}

int unknown_format(const std::string& word, bool json) {
  std::vector<std::string_view> names;
  std::string all;
  for (const exchange::Exporter& exporter : exchange::exporters()) {
    names.push_back(exporter.name);
    all += (all.empty() ? "" : ", ") + std::string{exporter.name};
  }
  return refuse({{"BAD_USAGE", Severity::kError, "", "Say in which format: " + all + ".", nearest(word, names)}}, json);
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

}  // namespace

int run_export_command(const Invocation& typed) {
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
  const Value* given = request.find("config");
  const Value config = read->model != nullptr ? read->model->config : given != nullptr ? *given : Value{};
  if (!config.is_object() || read->answer.architecture.head != Head::kCausalLm) {
    return refuse({{"NOT_EXPORTED", Severity::kError, "/model",
                    "Probes are written for causal language models with a known configuration so far.", ""}},
                  typed.json);
  }
  const exchange::Exported exported = exchange::write_probe(job_from(*read, std::move(request)), config);
  return print_exported(typed, "probe", "probe.py", exported, std::move(issues));
}

}  // namespace tidemark
