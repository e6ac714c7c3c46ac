#include "core/exchange/out/job.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tidemark::exchange {
namespace {

/// What says how a job lies on several GPUs: other tools are told it even where the engine cannot count it.
constexpr std::string_view kSharding[] = {"parallelism", "offload", "deepspeed", "fsdp"};

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

}  // namespace

Value without_sharding(Value request) {
  const auto drop = [](const Value::Member& member) {
    return std::find(std::begin(kSharding), std::end(kSharding), member.key) != std::end(kSharding);
  };
  request.members.erase(std::remove_if(request.members.begin(), request.members.end(), drop), request.members.end());
  return request;
}

ExportJob export_job(std::string_view model, std::string class_name, TrainingJob job, Value request, Value config) {
  ExportJob out;
  const Value* name = request.find("model");
  out.model = plain_name(!model.empty() ? std::string{model} : name != nullptr ? name->string : "path/to/model");
  out.class_name = std::move(class_name);
  const Value* task = request.find("task");
  out.task = task != nullptr && task->is_string() ? plain_name(task->string) : "sft";
  out.job = std::move(job);
  out.zero_stage = count_at(request, "zero_stage", 0);
  out.gpus = count_at(request, "data", 1);
  if (const Value* fsdp = at(request, "parallelism", "fsdp"); fsdp != nullptr && fsdp->is_string()) {
    out.fsdp = fsdp->string;
  }
  out.offload_optimizer = offloads(request, "optimizer");
  out.offload_parameters = offloads(request, "parameters");
  out.request = std::move(request);
  out.config = std::move(config);
  return out;
}

}  // namespace tidemark::exchange
