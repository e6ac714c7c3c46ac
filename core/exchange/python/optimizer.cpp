#include "core/exchange/python/topics.hpp"

namespace tidemark::exchange {
namespace {

/// The optimizer that a call makes, by its class; empty where it makes none.
std::string optimizer_of(const PyObject& call) {
  const std::string name = last_word(call.name);
  if (name == "AdamW" || name == "Adam")  // both keep two states
    return is_true(call.find("fused")) ? "adamw_torch_fused" : "adamw_torch";
  const bool library = contains(call.name, "optim") || contains(call.name, "torch") ||
                       contains(call.name, "bitsandbytes") || contains(call.name, "bnb");
  if (!library) return {};
  if (name == "AdamW8bit" || name == "Adam8bit") return "adamw_8bit";
  if (name == "PagedAdamW8bit") return "paged_adamw_8bit";
  if (name == "SGD") return call.find("momentum") == nullptr ? "sgd" : "sgd_momentum";
  return {};
}

/// An optimizer that the program makes itself. Whether it does.
bool read_own_optimizer(PyJob& job) {
  for (const PyObject& one : job.program.objects) {
    const std::string word = optimizer_of(one);
    if (word.empty()) continue;
    std::vector<Origin> places{one.place};
    if (job.parsed_flags != nullptr) cite(places, job.parsed_flags->find("optimizer"));
    job.say("optimizer", of(word), std::move(places));
    const PyObject* given = one.positional.empty() ? nullptr : job.at(&one.positional[0]);
    if (given != nullptr && given->name == ".parameters" && !given->part.empty())
      job.unknown("optimizer: it gets the parameters of " + given->part +
                  " alone, and states of all that is trained are counted");
    return true;
  }
  // nanoGPT model.py: configure_optimizers: AdamW, fused on CUDA.
  for (const PyObject& one : job.program.objects) {
    if (one.name != ".configure_optimizers" && !one.is("configure_optimizers")) continue;
    job.say("optimizer", of("adamw_torch_fused"), {one.place}, "as nanoGPT's configure_optimizers makes it");
    return true;
  }
  return false;
}

/// timm optim/_optim_factory.py: momentum 0.9 unless told.
std::string timm_optimizer(const std::string& opt) {
  return opt == "sgd" ? "sgd_momentum" : opt == "adamw" ? "adamw_torch" : opt;
}

}  // namespace

void read_optimizer(PyJob& job) {
  if (job.told("optimizer")) return;
  const PyValue* optim = job.argument("optim");
  for (const char* key : {"optim_args", "optim_target_modules"}) {
    const PyValue* setting = job.argument(key);
    if (setting != nullptr && (setting->is_string() || setting->kind == PyValue::Kind::kList)) job.say(key, *setting);
  }
  if (optim != nullptr && optim->is_string()) return job.say("optimizer", of(optimizer_word(optim->text)), *optim);
  if (read_own_optimizer(job)) return;
  if (job.has_unsloth_defaults())
    return job.say("optimizer", of("adamw_8bit"), {job.arguments->place}, "Unsloth's default");
  if (job.parsed_flags != nullptr && job.imports("timm")) {
    if (const PyValue* opt = job.parsed_flags->find("opt"); opt != nullptr && opt->is_string())
      return job.say("optimizer", of(timm_optimizer(opt->text)), *opt);
  }
  if (job.arguments != nullptr)
    job.unknown("optimizer: TrainingArguments' default by version (adamw_torch, fused with torch 2.8)");
}

}  // namespace tidemark::exchange
