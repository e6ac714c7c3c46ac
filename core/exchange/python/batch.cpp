// How many sequences a micro-batch has, and how many of these an optimizer step.
#include "core/exchange/python/topics.hpp"

namespace tidemark::exchange {
namespace {

/// The loader that shuffles is that of training.
const PyValue* batch_of_loader(const PyJob& job) {
  const PyValue* best = nullptr;
  for (const PyObject& one : job.program.objects) {
    const bool loader = one.is("DataLoader");
    if (!loader && !job.is_llama_index()) continue;
    const PyValue* size = loader ? one.find("batch_size", 1) : one.find("batch_size");
    if (size == nullptr || !size->is_number()) continue;
    const PyValue* shuffled = one.find("shuffle");
    if (best == nullptr || (shuffled != nullptr && shuffled->boolean)) best = size;
  }
  return best;
}

/// `config = {"batch_size": 2}`, which a class of the program's own is handed.
const PyValue* batch_of_dictionary(const PyJob& job) {
  for (const PyAssignment& one : job.program.assignments) {
    for (std::size_t at = 0; at < one.value.keys.size(); ++at) {
      const std::string& key = one.value.keys[at];
      const bool is_batch = key == "batch_size" || key == "train_batch_size";
      if (is_batch && one.value.items[at].is_number()) return &one.value.items[at];
    }
  }
  return nullptr;
}

void read_own_batch(PyJob& job) {
  const PyValue* size = batch_of_loader(job);
  if (size == nullptr) size = job.any_argument({"train_batch_size", "batch_size"});
  if (size == nullptr)
    size = job.variable({"micro_batch_size", "per_device_train_batch_size", "train_batch_size", "batch_size"});
  if (size == nullptr) size = batch_of_dictionary(job);
  if (size != nullptr && size->is_number()) return job.say("micro_batch_size", *size);
  if (job.is_llama_index())
    job.say("micro_batch_size", of(10), {job.trainer->place},
            "llama_index's SentenceTransformersFinetuneEngine default batch_size");
}

void read_micro_batch(PyJob& job) {
  job.copy("micro_batch_size", {"per_device_train_batch_size", "per_gpu_train_batch_size"});
  if (job.told("micro_batch_size")) return;
  if (job.arguments == nullptr) return read_own_batch(job);
  if (job.is_template() || job.arguments->find("per_device_train_batch_size") != nullptr ||
      job.on("auto_find_batch_size"))
    return;
  if (job.has_unsloth_defaults())
    return job.say("micro_batch_size", of(4), {job.arguments->place}, "Unsloth's default 4");
  job.say("micro_batch_size", of(8), {job.arguments->place, job.arguments->defined},
          job.is_command() ? "TrainingArguments default; the command may say otherwise" : "TrainingArguments default");
}

void read_accumulation(PyJob& job) {
  constexpr std::string_view kField = "gradient_accumulation_steps";
  job.copy(kField, {kField});
  if (job.told(kField)) return;
  if (job.accelerator != nullptr) {
    const PyValue* steps = job.accelerator->find(kField);
    if (steps != nullptr && steps->is_number()) return job.say(kField, *steps);
  }
  if (job.is_command()) return;
  if (job.has_unsloth_defaults()) return job.say(kField, of(2), {job.arguments->place}, "Unsloth's default 2");
  if (job.arguments != nullptr) return job.say(kField, of(1), {}, "default 1");
  const PyValue* steps = job.variable({kField, "grad_accum_steps", "accumulation_steps", "gradient_accumulation"});
  if (steps != nullptr) job.say(kField, *steps);
}

}  // namespace

void read_batch(PyJob& job) {
  read_micro_batch(job);
  read_accumulation(job);
}

}  // namespace tidemark::exchange
