// Which calls of a program make its job up.
#include <algorithm>

#include "core/exchange/python/library_calls.hpp"
#include "core/exchange/python/topics.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

/// A class of the program's own that is called as transformers' and does not derive from it.
bool is_own_trainer(const PyObject& call, const PyTrainer& row) {
  return row.name == "Trainer" && call.name != "Trainer" && !contains(call.name, "transformers") &&
         std::none_of(call.bases.begin(), call.bases.end(),
                      [](const std::string& base) { return contains(base, "Trainer"); });
}

void take_trainer(PyJob& job, const PyObject& call) {
  for (const PyTrainer& row : known_trainers()) {
    if (!call.is(row.name)) continue;
    if (is_own_trainer(call, row)) {
      job.own_trainer = &call;
    } else {
      job.trainer = &call;
      job.trainer_task = row.task;
    }
    break;
  }
  // Another trainer of TRL's is its own task, of which nothing is known here but the name (trl.experimental.sdft:
  // SDFTTrainer).
  constexpr std::string_view kEnding = "Trainer";
  if (job.trainer != nullptr || !call.name.starts_with("trl.") || !call.name.ends_with(kEnding)) return;
  const std::string word = last_word(call.name);
  job.trainer = &call;
  job.trainer_task = lower_case(std::string_view{word}.substr(0, word.size() - kEnding.size()));
}

bool configures_adapter(const PyObject& call) {
  return call.is("LoraConfig") || !adapter_kind(call).empty() || !unmodelled_kind(call).empty();
}

void take_part(PyJob& job, const PyObject& call) {
  if (call.name == "argparse.Namespace") job.parsed_flags = &call;
  if (call.is("Mxfp4Config")) job.mxfp4 = &call;
  if (call.is("GPTQConfig") || call.is("AwqConfig") || call.is("HqqConfig")) job.packed = &call;
  if (call.is("Accelerator")) job.accelerator = &call;
  if (contains(call.name, "lightning") && (call.is("Trainer") || call.is("Fabric"))) job.lightning = &call;
  if (configures_adapter(call) || is_fast_adapter(call)) job.lora = &call;
  if (call.is("BitsAndBytesConfig")) job.bitsandbytes = &call;
  if (call.is("prepare_model_for_kbit_training") || call.is("prepare_model_for_int8_training")) job.prepared = &call;
}

/// What the trainer is handed, or else what stands last in the program.
void find_arguments(PyJob& job) {
  if (job.trainer != nullptr) {
    job.arguments = job.at(job.trainer->find("args"));
    if (job.arguments == nullptr && job.trainer->positional.size() > 1)
      job.arguments = job.at(&job.trainer->positional[1]);
  }
  if (job.arguments != nullptr) return;
  for (const PyObject& one : job.program.objects) {
    if (is_arguments(one) && !(job.trainer != nullptr && one.from_command)) job.arguments = &one;
  }
}

/// Of several configurations that of the model which the trainer is handed.
void take_trained_adapter(PyJob& job) {
  const PyObject* model = job.trainer == nullptr ? nullptr : job.at(job.trainer->find("model", 0));
  if (model == nullptr || !model->is("get_peft_model")) return;
  const PyObject* config = job.at(model->find("peft_config", 1));
  if (config != nullptr && configures_adapter(*config)) job.lora = config;
}

/// The trainer's peft_config: an object, or get_peft_config(model_args) of a TRL ModelConfig that the file fills in.
void find_adapter(PyJob& job) {
  const PyObject* config = job.trainer == nullptr ? nullptr : job.at(job.trainer->find("peft_config"));
  if (config == nullptr) return;
  const bool made = config->is("get_peft_config");
  if (config->is("LoraConfig") || (job.lora == nullptr && !made)) job.lora = config;
  if (!made || config->positional.empty()) return;
  const PyObject* filled = job.at(&config->positional[0]);
  if (filled != nullptr && !filled->from_command && is_true(filled->find("use_peft"))) job.lora = filled;
}

/// The model that the trainer is handed, or else the first that is loaded.
void find_load(PyJob& job) {
  if (job.trainer != nullptr) {
    const PyValue* model = job.trainer->find("model", 0);
    job.load = job.loaded(model);
    if (model != nullptr && model->is_string()) job.model_name = model;
  }
  if (job.load != nullptr || job.model_name != nullptr) return;
  for (const PyObject& one : job.program.objects) {
    const bool frozen_part =
        contains(one.name, "AutoencoderKL") || contains(one.name, "TextEncoder") || contains(one.name, "CLIPText");
    if (!loads_model(one) || frozen_part) continue;
    job.load = &one;
    return;
  }
}

}  // namespace

void find_parts(PyJob& job) {
  for (const PyObject& one : job.program.objects) {
    take_trainer(job, one);
    take_part(job, one);
  }
  find_arguments(job);
  job.unsloth = job.imports("unsloth");
  job.trl = job.arguments != nullptr && !contains(job.arguments->name, "TrainingArguments") &&
            !job.arguments->is("TrainingArguments");
  take_trained_adapter(job);
  find_adapter(job);
  find_load(job);
  // unsloth 2026.8.19 models/vision.py: get_peft_model hands such a model back as it is.
  if (job.tunes_fully()) job.lora = nullptr;
}

}  // namespace tidemark::exchange
