// What divides the model between GPUs: the trainer's arguments, or torch's and DeepSpeed's own calls.
#include "core/exchange/deepspeed_keys.hpp"
#include "core/exchange/python/topics.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyValue::Kind;

/// What a dictionary of DeepSpeed's keys says, and no default.
std::vector<Finding> said_by_deepspeed(PyJob& job, const PyValue& dictionary) {
  const Node tree = to_node(dictionary);
  Reading scratch;
  Keys keys(tree, job.reading.file, scratch);
  read_deepspeed_keys(keys);
  keys.tell_unread();
  job.reading.issues.insert(job.reading.issues.end(), scratch.issues.begin(), scratch.issues.end());
  for (Unread& one : scratch.unread) {
    if (!dictionary.places.empty()) one.origin = dictionary.places.front();
    job.reading.unread.push_back(std::move(one));
  }
  std::erase_if(scratch.findings, [](const Finding& one) { return one.path == "precision" && !one.assumed.empty(); });
  return scratch.findings;
}

void name_deepspeed_file(PyJob& job, const std::string& file) {
  job.reading.companions.push_back(file);
  job.unknown("the DeepSpeed JSON itself: " + file);
}

/// TrainingArguments' `deepspeed`: a file, or a dictionary. The Trainer fills in the rest of one, and refuses what
/// differs from its own arguments.
void read_deepspeed_argument(PyJob& job) {
  const PyValue* deepspeed = job.argument("deepspeed");
  if (deepspeed == nullptr) return;
  if (deepspeed->is_string() && !deepspeed->text.empty()) {
    if (const int stage = zero_stage_of_name(deepspeed->text); stage >= 0)
      job.say("parallelism.zero_stage", of(stage), deepspeed->places, "from the file name");
    return name_deepspeed_file(job, deepspeed->text);
  }
  if (deepspeed->kind != Kind::kDict) return;
  for (const Finding& one : said_by_deepspeed(job, *deepspeed)) {
    if (one.path.starts_with("parallelism.") || one.path.starts_with("offload.") || one.path.starts_with("deepspeed."))
      job.say(one.path, one.value, deepspeed->places, one.assumed);
  }
}

void read_fsdp_argument(PyJob& job) {
  const PyValue* fsdp = job.argument("fsdp");
  if (fsdp == nullptr || (!fsdp->is_string() && fsdp->kind != Kind::kList)) return;
  if (fsdp->text.empty() && fsdp->items.empty()) return;
  std::string said = fsdp->text;
  for (const PyValue& word : fsdp->items) said += " " + word.text;
  job.say("parallelism.fsdp", of(fsdp_strategy(said)), *fsdp);
  if (contains(said, "offload")) job.say("offload.parameters", of("cpu"), *fsdp);
}

void read_fsdp_call(PyJob& job, const PyObject& call) {
  const bool first = call.is("FullyShardedDataParallel");  // FSDP 1
  const PyValue* strategy = call.find("sharding_strategy");
  const std::string word = strategy == nullptr ? std::string{} : lower_case(strategy->text);
  if (!contains(word, "no_shard")) job.say("parallelism.fsdp", of(first ? fsdp_strategy(word) : "fsdp2"), {call.place});
}

/// deepspeed.initialize(config=…)
void read_deepspeed_call(PyJob& job, const PyObject& call) {
  const PyValue* config = call.find("config");
  if (config == nullptr) config = call.find("config_params");
  if (config != nullptr && config->is_string()) return name_deepspeed_file(job, config->text);
  if (config != nullptr && config->kind == Kind::kDict) {
    for (const Finding& one : said_by_deepspeed(job, *config)) {
      if (!job.told(one.path)) job.say(one.path, one.value, config->places, one.assumed);
    }
  } else if (!job.told("parallelism.zero_stage")) {
    job.unknown("parallelism.zero_stage: deepspeed.initialize takes a configuration that is not read");
  }
}

}  // namespace

void read_sharding(PyJob& job) {
  if (job.is_written()) {
    const PyValue* processes = job.arguments->find("nproc_per_node");
    if (processes != nullptr && processes->is_number()) job.say("parallelism.data", *processes);
  }
  read_deepspeed_argument(job);
  read_fsdp_argument(job);
}

void read_wrappers(PyJob& job) {
  for (const PyObject& one : job.program.objects) {
    const bool shards = one.is("FullyShardedDataParallel") || one.is("fully_shard");
    if (shards && contains(one.name, "fsdp"))
      read_fsdp_call(job, one);
    else if (one.is("deepspeed.initialize"))
      read_deepspeed_call(job, one);
  }
}

}  // namespace tidemark::exchange
