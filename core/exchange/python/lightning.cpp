#include <algorithm>

#include "core/exchange/python/topics.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyValue::Kind;

/// A number of GPUs or nodes, which a list may name one by one; 0 where it is left open.
std::int64_t count_of(const PyValue& value) {
  if (value.kind == Kind::kList) return static_cast<std::int64_t>(value.items.size());
  return value.kind == Kind::kInteger ? std::max<std::int64_t>(value.integer, 0) : 0;
}

void read_devices(PyJob& job) {
  const PyValue* devices = job.lightning->find("devices");
  const PyValue* nodes = devices == nullptr ? nullptr : job.lightning->find("num_nodes");
  const std::int64_t gpus = devices == nullptr ? 0 : count_of(*devices) * (nodes == nullptr ? 1 : count_of(*nodes));
  if (gpus > 0)
    job.say("parallelism.data", of(gpus), {job.lightning->place});
  else
    job.unknown("parallelism.data: Lightning takes all GPUs in sight");
}

/// Whether DeepSpeed divides something.
bool read_strategy(PyJob& job) {
  const PyValue* strategy = job.lightning->find("strategy");
  const PyObject* made = job.at(strategy);
  const std::string word = lower_case(made != nullptr       ? made->name
                                      : strategy == nullptr ? std::string{}
                                                            : strategy->text);
  const auto on = [&](const char* key) { return made != nullptr && is_true(made->find(key)); };
  const std::vector<Origin> places = strategy == nullptr ? std::vector<Origin>{} : strategy->places;
  const bool offload = contains(word, "offload");
  if (contains(word, "fsdp")) {
    const PyValue* how = made == nullptr ? nullptr : made->find("sharding_strategy");
    const std::string kind = how == nullptr ? std::string{} : lower_case(how->text);
    if (!contains(kind, "no_shard")) job.say("parallelism.fsdp", of(fsdp_strategy(kind)), places);
    if (offload || on("cpu_offload")) job.say("offload.parameters", of("cpu"), places);
    if (made != nullptr && made->find("activation_checkpointing_policy") != nullptr)
      job.say("gradient_checkpointing", of("full"), places);
    return false;
  }
  if (!contains(word, "deepspeed")) {
    if (!word.empty() && word != "auto" && !contains(word, "ddp")) job.unknown("strategy: Lightning's " + word);
    return false;
  }
  constexpr std::string_view kStage = "stage_";
  std::int64_t stage = 2;  // DeepSpeedStrategy's default
  if (const PyValue* number = made == nullptr ? nullptr : made->find("stage"); number != nullptr)
    stage = number->integer;
  if (made == nullptr && contains(word, kStage)) stage = word[word.find(kStage) + kStage.size()] - '0';
  job.say("parallelism.zero_stage", of(stage), places);
  if (offload || on("offload_optimizer")) job.say("offload.optimizer", of("cpu"), places);
  if ((offload && stage == 3) || on("offload_parameters")) job.say("offload.parameters", of("cpu"), places);
  return true;
}

/// "bf16-mixed", 16, "32-true".
void read_lightning_precision(PyJob& job, bool zero) {
  const Origin& place = job.lightning->place;
  const PyValue* said = job.lightning->find("precision");
  std::string word = said == nullptr ? "32" : said->kind == Kind::kInteger ? std::to_string(said->integer) : said->text;
  if (word == "bf16" || word == "16") word += "-mixed";
  const std::string cast = word.starts_with("bf16") ? "bf16" : word.starts_with("16") ? "fp16" : "";
  if (cast.empty() && !word.starts_with("32"))
    return job.unknown("precision: Lightning's is not read" + (word.empty() ? word : ": " + word));
  if (zero && !cast.empty()) return job.say("precision", of("deepspeed_" + cast), {place});
  if (word.ends_with("-true")) return job.say("precision", of("pure_" + cast), {place});
  PyValue by;
  const std::string weights = weights_dtype(job, by);
  by.places.push_back(place);
  job.say("precision", precision_of(weights.empty() || weights == "auto" ? "fp32" : weights, cast), by.places,
          weights.empty() ? no_dtype(job) : std::string{});
}

}  // namespace

void read_lightning(PyJob& job) {
  if (job.lightning == nullptr) return;
  read_devices(job);
  if (const PyValue* steps = job.lightning->find("accumulate_grad_batches"); steps != nullptr && steps->is_number())
    job.say("gradient_accumulation_steps", *steps);
  if (const PyValue* norm = job.lightning->find("gradient_clip_val"); norm != nullptr && norm->is_number())
    job.say("max_grad_norm", *norm);
  const bool zero = read_strategy(job);
  read_lightning_precision(job, zero);
}

}  // namespace tidemark::exchange
