#include <algorithm>
#include <iterator>

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

exchange::ExportJob job_from(const Engine::Question& read, Value request) {
  exchange::ExportJob job;
  const Value* name = request.find("model");
  job.model = read.model != nullptr ? read.model->id : name != nullptr ? name->string : "path/to/model";
  job.class_name = read.answer.architecture.class_name;
  const Value* task = request.find("task");
  job.task = task != nullptr && task->is_string() ? task->string : "sft";
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

}  // namespace

int run_export_command(const Invocation& typed) {
  const exchange::Exporter* exporter = exchange::find_exporter(typed.word);
  if (exporter == nullptr) return unknown_format(typed.word, typed.json);
  Issues issues;
  Value request = read_job(typed, issues);
  if (has_error(issues)) return refuse(std::move(issues), typed.json);
  const Engine::Question read = typed.engine.read(without_sharding(request));
  if (!read.complete) return refuse(read.answer.issues, typed.json);
  const exchange::Exported exported = exporter->write(job_from(read, std::move(request)));
  issues.insert(issues.end(), exported.issues.begin(), exported.issues.end());
  if (typed.json) {
    Value out = write_errors(issues);
    set(out, "format", exporter->name);
    set(out, "file", exporter->file);
    set(out, "text", exported.text);
    print(write_json(out, 2) + "\n");
    return kAnswered;
  }
  print(exported.text);
  if (!issues.empty()) complain(std::move(issues));
  return kAnswered;
}

}  // namespace tidemark
