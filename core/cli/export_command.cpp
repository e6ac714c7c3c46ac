#include <algorithm>
#include <iterator>
#include <optional>

#include "core/cli/commands.hpp"
#include "core/cli/terminal.hpp"
#include "core/exchange/out/export.hpp"
#include "core/units/nearest.hpp"
#include "core/wire/json.hpp"
#include "core/wire/write_answer.hpp"

namespace tidemark {
namespace {

/// What says how a job lies on several GPUs: other tools are told it even where the engine cannot count it.
constexpr std::string_view kSharding[] = {"parallelism", "offload", "deepspeed", "fsdp"};

Value without_sharding(Value request) {
  const auto drop = [](const Value::Member& member) {
    return std::find(std::begin(kSharding), std::end(kSharding), member.key) != std::end(kSharding);
  };
  request.members.erase(std::remove_if(request.members.begin(), request.members.end(), drop), request.members.end());
  return request;
}

const Value* at(const Value& request, std::string_view topic, std::string_view key) {
  const Value* object = request.find(topic);
  return object == nullptr ? nullptr : object->find(key);
}

Count count_at(const Value& request, std::string_view key, Count standard) {
  const Value* value = at(request, "parallelism", key);
  return value != nullptr && value->is_integer() ? value->integer : standard;
}

bool offloads(const Value& request, std::string_view key) {
  const Value* value = at(request, "offload", key);
  return value != nullptr && value->is_string() && value->string != "none";
}

/// A name that is a word in every format: what a stranger's request calls a model must not become a line of a script.
std::string plain_name(std::string name) {
  for (char& c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && std::string_view{"_-./"}.find(c) == std::string_view::npos) c = '_';
  }
  return name;
}

exchange::ExportJob job_from(const Engine::Question& read, Value request) {
  exchange::ExportJob job;
  const Value* name = request.find("model");
  job.model = plain_name(read.model != nullptr ? read.model->id : name != nullptr ? name->string : "path/to/model");
  job.class_name = read.answer.architecture.class_name;
  const Value* task = request.find("task");
  job.task = task != nullptr && task->is_string() ? plain_name(task->string) : "sft";
  job.job = read.answer.job;
  job.zero_stage = count_at(request, "zero_stage", 0);
  job.gpus = count_at(request, "data", 1);
  if (const Value* fsdp = at(request, "parallelism", "fsdp"); fsdp != nullptr && fsdp->is_string()) {
    job.fsdp = fsdp->string;
  }
  job.offload_optimizer = offloads(request, "optimizer");
  job.offload_parameters = offloads(request, "parameters");
  job.request = std::move(request);
  return job;
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
  Engine::Question read = typed.engine.read(without_sharding(request));
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
