// Models beside the one that is trained: the reference, those that score answers, and teachers.
#include <utility>
#include "core/exchange/python/library_calls.hpp"
#include "core/exchange/python/topics.hpp"

namespace tidemark::exchange {
namespace {

/// A model that the trainer is handed: a name, or what was loaded before.
const PyObject* say_other_model(PyJob& job, std::string_view path, const PyValue& given) {
  if (given.is_string()) {
    job.say(path, given);
    return nullptr;
  }
  const PyObject* model = job.at(&given);
  if (model == nullptr || !loads_model(*model)) {
    job.unknown(std::string{path});
    return nullptr;
  }
  const PyValue* name = model->find("pretrained_model_name_or_path", 0);
  if (name != nullptr && name->is_string()) job.say(path, *name);
  return model;
}

/// OnlineDPOTrainer(reward_funcs=…): a model that scores both answers, or functions.
void read_judge(PyJob& job) {
  job.copy("max_completion_length", {"max_new_tokens"});
  if (job.trainer == nullptr) return;
  const PyValue* judge = job.trainer->find("reward_funcs");
  if (judge == nullptr) judge = job.trainer->find("reward_model");  // before trl 0.24
  if (judge != nullptr) say_other_model(job, "reward_model", *judge);
}

/// GRPOTrainer(reward_funcs=[…]): names and models among functions.
void read_judges_of_groups(PyJob& job) {
  const PyValue* given = job.trainer == nullptr ? nullptr : job.trainer->find("reward_funcs", 1);
  if (given == nullptr) return;
  const std::vector<PyValue> alone{*given};
  bool found = false;
  for (const PyValue& one : given->kind == PyValue::Kind::kList ? given->items : alone) {
    const PyObject* model = job.at(&one);
    if (!one.is_string() && (model == nullptr || !loads_model(*model))) continue;
    if (found) return not_counted(job.reading, "reward models, but for the first", given->places);
    say_other_model(job, "reward_model", one);
    found = true;
  }
}

/// GKDTrainer(teacher_model=…).
void read_teacher(PyJob& job) {
  for (const OfRollout& one : distillation_words()) job.copy(one.path, {one.key});
  const PyValue* teacher = job.trainer == nullptr ? nullptr : job.trainer->find("teacher_model");
  const PyObject* model = teacher == nullptr ? nullptr : say_other_model(job, "teacher_model", *teacher);
  const PyValue* dtype = model == nullptr ? nullptr : load_dtype(*model);
  if (dtype != nullptr && contains(dtype->text, "float")) job.say("teacher_dtype", of(dtype_of(dtype->text)), *dtype);
}

void say_reference_dtype(PyJob& job, const PyObject* load) {
  if (load == nullptr) return;
  if (const PyValue* dtype = load_dtype(*load); dtype != nullptr)
    job.say("reference_model.dtype", of(dtype_of(dtype->text)), dtype->places);
  else
    job.say("reference_model.dtype", of("fp32"), {load->place}, "no dtype: " + std::string{kBefore5});
}

/// A loop of one's own keeps the reference in a variable.
void read_own_reference(PyJob& job) {
  for (const PyAssignment& one : job.program.assignments) {
    const bool named = one.name == "reference_model" || one.name == "ref_model";
    if (!named || one.value.kind != PyValue::Kind::kObject) continue;
    std::vector<Origin> places = one.value.places;
    for (const PyObject& call : job.program.objects) {
      if (call.self == one.value.index) places.push_back(call.place);
    }
    job.say("reference_model.present", of(true), places);
    const PyObject* model = job.at(&one.value);
    if (model != nullptr && loads_model(*model)) return say_reference_dtype(job, model);
    return job.say("reference_model.dtype", of("fp32"), std::move(places), "no dtype: fp32");
  }
}

/// Whether the trainer compares with a reference at all (trl 1.9 trainer/{grpo,rloo}_config.py: beta; unsloth 2026.10.9
/// models/rl.py: 0 for TRL's own loss_type).
bool compares(const PyJob& job, const PyValue* beta) {
  if (job.task == "grpo") return beta != nullptr && (!beta->is_number() || beta->real != 0);
  if (job.task == "rloo") return beta == nullptr || beta->real != 0;
  return true;
}

}  // namespace

void read_other_models(PyJob& job) {
  if (job.task == "online_dpo") read_judge(job);
  if (job.task == "grpo" || job.task == "rloo") read_judges_of_groups(job);
  if (job.task == "gkd") read_teacher(job);
}

void read_reference(PyJob& job) {
  const bool prefers =
      job.task == "dpo" || job.task == "kto" || job.task == "bco" || job.task == "ppo" || job.task == "online_dpo";
  if (!prefers && !generates_answers(job.task)) return;
  if (job.trainer == nullptr) return read_own_reference(job);
  const PyValue* reference = job.trainer->find("ref_model");
  const PyValue* beta = job.argument("beta");
  if (!compares(job, beta)) return;
  std::vector<Origin> places{job.trainer->place};
  cite(places, reference);
  if (job.is_command()) {
    if (job.task == "ppo") job.say("reference_model.present", of(true), std::move(places));
    return;
  }
  cite(places, beta);
  const bool given = job.at(reference) != nullptr || (reference != nullptr && reference->is_string());
  job.say("reference_model.present", of(true), std::move(places), given ? "" : "the trainer makes one");
  if (given) return say_reference_dtype(job, job.at(reference));
  if (job.told("method") && find(job.reading, "method")->value.string != "full") {
    job.say("reference_model.shared_with_adapter", of(true), {job.trainer->place},
            "with an adapter it is the model without it");
  } else {
    say_reference_dtype(job, job.load);
  }
}

}  // namespace tidemark::exchange
