#include "core/exchange/python/library_calls.hpp"
#include "core/exchange/python/topics.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyValue::Kind;

constexpr const char* kField = "gradient_checkpointing";

/// What Unsloth's loader or get_peft_model is told: True, False, "unsloth" or "true".
void read_unsloth(PyJob& job, const PyObject& fast) {
  const PyValue* how = fast.find("use_gradient_checkpointing");
  if (how == nullptr && job.load != nullptr) how = job.load->find("use_gradient_checkpointing");
  if (how == nullptr && is_fast_encoder(fast))
    return job.say(kField, of("none"), {fast.place}, "Unsloth's default for sentences");
  if (how == nullptr) return job.say(kField, of("offload"), {fast.place}, "Unsloth's default \"unsloth\"");
  const bool full = how->is_string() ? how->text == "true" : how->boolean;
  job.say(kField, of(how->is_string() && how->text == "unsloth" ? "offload" : full ? "full" : "none"), *how);
}

/// prepare_model_for_kbit_training switches it on unless it is told not to.
bool prepares(const PyJob& job) {
  if (job.prepared == nullptr) return false;
  const PyValue* told = job.prepared->find("use_gradient_checkpointing");
  return told == nullptr || told->kind != Kind::kBool || told->boolean;
}

/// transformers 5.24 training_args.py: the arguments' names until 5.22 are aliases of these; what
/// activation_checkpointing_enable() is told beside torch's own.
const PyValue* flag_of(const PyJob& job) {
  return job.any_argument({"activation_checkpointing", kField});
}
Value what_is_kept(const PyValue* kwargs) {
  const PyValue* every = kwargs == nullptr ? nullptr : kwargs->find("every_n_layers");
  if (every != nullptr && every->kind == Kind::kInteger && every->integer > 1) {
    return object({{"every", of(every->integer)}});
  }
  const PyValue* moved = kwargs == nullptr ? nullptr : kwargs->find("offload");
  return of(is_true(moved) ? "offload" : "full");
}

bool switches_on(const PyObject& call) {
  return call.name == ".gradient_checkpointing_enable" || call.name == ".activation_checkpointing_enable";
}

}  // namespace

void read_checkpointing(PyJob& job) {
  const PyValue* flag = flag_of(job);
  const PyValue* kwargs = job.any_argument({"activation_checkpointing_kwargs", "gradient_checkpointing_kwargs"});
  if (const PyValue* reentrant = kwargs == nullptr ? nullptr : kwargs->find("use_reentrant"); reentrant != nullptr)
    job.say("use_reentrant", *reentrant);
  const PyObject* fast = job.lora != nullptr || !job.unsloth ? job.lora : job.load;
  if (fast != nullptr && contains(fast->name, "Fast")) return read_unsloth(job, *fast);
  const bool prepared = prepares(job);
  for (const PyObject& one : job.program.objects) {
    if (switches_on(one)) return job.say(kField, of("full"), {one.place});
  }
  if (is_true(flag)) return job.say(kField, what_is_kept(kwargs), *flag);
  if (prepared)
    return job.say(kField, of("full"), {job.prepared->place},
                   "prepare_model_for_kbit_training's use_gradient_checkpointing defaults to True");
  if (flag != nullptr && flag->kind == Kind::kBool) return job.say(kField, of("none"), *flag);
  if (job.is_command() || (job.unsloth && job.arguments != nullptr)) return job.unknown(kField);
  if (job.trl) {
    job.say(kField, of("full"), {job.arguments->place}, "on by default since trl 0.22, off before");
    return job.unknown("gradient_checkpointing: off before trl 0.22, on since");
  }
  std::vector<Origin> places;
  cite(places, job.argument("grad_checkpointing"));
  const std::vector<Origin> context = job.context();
  places.insert(places.end(), context.begin(), context.end());
  job.say(kField, of("none"), std::move(places), "default");
}

}  // namespace tidemark::exchange
