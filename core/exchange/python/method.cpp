// What of the model is trained: all of it, parts, or an adapter.
#include <utility>

#include "core/exchange/python/freezing.hpp"
#include "core/exchange/python/topics.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

/// The parameters that the program's own lines freeze. Whether there are any.
bool read_frozen(PyJob& job) {
  if (job.load == nullptr || job.imports("diffusers")) return false;
  const bool adapts = job.told("method");
  const Frozen frozen = frozen_by(
      job.program.freezing,
      [&](int root) {
        const PyObject* one = &job.program.objects[static_cast<std::size_t>(root)];
        if (adapts) return one->is("get_peft_model");
        PyValue value = py_value(PyValue::Kind::kObject);
        value.index = root;
        return job.loaded(&value) == job.load;
      },
      adapts);
  if (frozen.what == Frozen::What::kNothing) return false;
  if (!adapts) job.say("method", of("freeze"), frozen.places, "requires_grad is set by name");
  if (frozen.what == Frozen::What::kUnread) {
    job.unknown("freeze: lines set requires_grad, and which parameters they leave trained is not read");
    return true;
  }
  const auto list = [&](const char* path, const std::vector<std::string>& patterns) {
    std::vector<Value> all;
    for (const std::string& one : patterns) all.push_back(of(one));
    if (!all.empty()) job.say(path, of(std::move(all)), frozen.places);
  };
  list("freeze", frozen.freeze);
  list("trainable", frozen.trainable);
  return true;
}

/// `train_qlora.py`: the program that a notebook's configuration is handed to. Whether its name says a method.
bool read_program_name(PyJob& job) {
  const PyValue* program = job.arguments == nullptr ? nullptr : job.arguments->find("program");
  if (program == nullptr || job.lora != nullptr) return false;
  const std::string name = lower_case(program->text);
  if (!contains(name, "lora")) return false;
  job.quantised = contains(name, "qlora");
  job.say("method", of(job.quantised ? "qlora" : "lora"), program->places, "the name of the program that is started");
  return true;
}

/// Where an adapter is read that is trained on.
const PyObject* adapter_folder(const PyJob& job) {
  const PyObject* last = nullptr;
  for (const PyObject& one : job.program.objects) {
    if ((one.is("PeftModel.from_pretrained") && one.find("is_trainable") != nullptr) ||
        one.is("AutoPeftModelForCausalLM.from_pretrained"))
      last = &one;
  }
  return last;
}

void say_adapter(PyJob& job) {
  std::vector<Origin> places{job.lora->place};
  cite(places, &job.quantised_by);
  job.say("method", of(job.quantised ? "qlora" : "lora"), std::move(places),
          !job.quantised_by.why.empty() ? job.quantised_by.why
          : job.lora->unsure            ? "a test at run time decides"
                                        : "");
  read_frozen(job);
  read_adapter(job);
}

/// Weights that bitsandbytes packs, without an adapter: other kinds may be trained as they are.
void refuse_packed(PyJob& job) {
  const bool of_model = job.packed == nullptr && job.load != nullptr && job.trainer != nullptr;
  if (!job.quantised || !job.quantised_by.why.empty() || job.unsloth || !of_model) return;
  refuse_packed_alone(job.reading,
                      job.told("quantization.bits") ? "load_in_4bit or load_in_8bit" : "quantization_config");
}

}  // namespace

void read_method(PyJob& job) {
  if (read_program_name(job)) return;
  if (job.lora != nullptr) return say_adapter(job);
  if (const PyObject* folder = adapter_folder(job); folder != nullptr) {
    job.say("method", of(job.quantised ? "qlora" : "lora"), {folder->place});
    return job.unknown("adapter.*: a PEFT folder read at run time");
  }
  const bool given = job.trainer != nullptr && job.at(job.trainer->find("peft_config")) != nullptr;
  const bool speaks_of_peft = contains(job.text, "peft") || contains(job.text, "lora");
  if (given || (job.trainer != nullptr && job.is_command() && speaks_of_peft))
    return job.unknown("method: the command line");
  if (job.quantised && job.unsloth) return job.say("method", of("qlora"), job.quantised_by.places);
  refuse_packed(job);
  if (read_frozen(job)) return;
  job.say("method", of("full"), job.context(), "no adapter");
}

}  // namespace tidemark::exchange
