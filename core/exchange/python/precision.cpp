#include <utility>

#include "core/exchange/python/library_calls.hpp"
#include "core/exchange/python/topics.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyValue::Kind;

/// What the program says of dtypes.
struct Said {
  std::string weights;         ///< as weights_dtype has it
  std::string cast;            ///< autocast's dtype, "bf16" or "fp16"; empty where there is none
  bool open = false;           ///< the command, or the release of TRL, decides on autocast
  PyValue by;                  ///< the places and the reason of both
  std::vector<Origin> around;  ///< the same and those of what is off or left to a default
  bool is_stated() const { return !weights.empty() && weights != "auto"; }
};

/// A flag that stands there, with a value that nobody knows.
bool is_unresolved(const PyObject* arguments, std::string_view key) {
  const PyValue* value = arguments == nullptr ? nullptr : arguments->find(key);
  return value != nullptr && value->kind == Kind::kUnknown;
}

/// Autocast by the trainer's flags, accelerate or torch's context.
void find_autocast(const PyJob& job, Said& said) {
  const PyValue* bf16 = job.argument("bf16");
  const PyValue* fp16 = job.argument("fp16");
  refuse_both_halves(job.reading, is_true(bf16) && bf16->why.empty(), is_true(fp16) && fp16->why.empty());
  if (is_true(bf16) || is_true(fp16)) {
    said.by = is_true(bf16) ? *bf16 : *fp16;
    said.cast = is_true(bf16) ? "bf16" : "fp16";
    return;
  }
  const PyValue* mixed = job.accelerator == nullptr ? nullptr : job.accelerator->find("mixed_precision");
  if (mixed != nullptr && mixed->is_string() && mixed->text != "no") {
    said.by = *mixed;
    said.cast = mixed->text;
    return;
  }
  for (const PyObject& one : job.program.objects) {
    if (!one.is("autocast")) continue;
    const PyValue* dtype = one.find("dtype");
    said.by.places = {one.place};
    said.cast = dtype != nullptr && contains(dtype->text, "bfloat16") ? "bf16" : "fp16";
    return;
  }
  said.open = job.is_template() || is_unresolved(job.arguments, "bf16") || is_unresolved(job.arguments, "fp16") ||
              (job.trl && bf16 == nullptr && fp16 == nullptr);
}

Said find_dtypes(const PyJob& job) {
  Said said;
  PyValue by_dtype;
  said.weights = weights_dtype(job, by_dtype);
  find_autocast(job, said);
  cite(said.by.places, &by_dtype);
  if (said.by.why.empty()) said.by.why = by_dtype.why;
  said.around = said.by.places;
  for (std::string_view key : {"bf16", "fp16", "amp", "mixed_precision"}) cite(said.around, job.argument(key));
  for (const PyObject& one : job.program.objects) {
    if (!loads_model(one)) continue;
    for (std::string_view key : {"torch_dtype", "dtype"}) cite(said.around, one.find(key));
  }
  const std::vector<Origin> context = job.context();
  said.around.insert(said.around.end(), context.begin(), context.end());
  return said;
}

void say_default_of_trl(PyJob& job, const Said& said) {
  job.unknown("precision: bf16 is TRL's default since 0.19");
  const bool narrow = job.quantised || job.unsloth || said.weights == "bf16" || said.weights == "auto";
  job.say("precision", of(narrow ? "bf16_amp" : "amp_bf16"), said.around,
          job.unsloth ? "Unsloth turns on bf16 on Ampere and later"
          : narrow    ? "bf16 is TRL's default since 0.19"
                      : "bf16 is TRL's default since 0.19; " + no_dtype(job));
}

/// Weights that are packed or loaded by Unsloth. Whether that settles it.
bool say_beside_packed(PyJob& job, const Said& said) {
  if (!said.cast.empty()) {
    job.say("precision", precision_of(said.is_stated() ? said.weights : said.cast, said.cast), said.by);
    return true;
  }
  if (job.unsloth && job.arguments == nullptr) return true;
  if (job.prepared != nullptr) {
    std::vector<Origin> places = said.around;
    places.push_back(job.prepared->place);
    job.say("precision", object({{"weights", of("fp32")}, {"autocast", of("none")}}), std::move(places),
            "what is not quantised is fp32 after prepare_model_for_kbit_training; no bf16 or fp16");
    return true;
  }
  if (said.weights.empty()) job.unknown("precision");
  return said.weights.empty();
}

void say_without_autocast(PyJob& job, const Said& said) {
  if (said.weights == "bf16" || said.weights == "auto")
    return job.say("precision", of("pure_bf16"), said.by.places,
                   said.weights == "auto" ? "dtype auto: the checkpoint's dtype, taken as bf16; no autocast"
                                          : "bf16 weights, no bf16 flag");
  if (said.weights == "fp16") return job.say("precision", of("pure_fp16"), said.by);
  const bool trains = job.trainer != nullptr || job.own_trainer != nullptr || job.arguments != nullptr ||
                      contains(job.text, ".backward()") || !job.program.calls("DataLoader").empty();
  if (!trains && job.load == nullptr && job.model_name == nullptr) return job.unknown("precision");
  job.say("precision", of("fp32"), said.by.places,
          no_dtype(job) + (job.is_command() ? ", and no bf16 or fp16 in the file; the command may say otherwise"
                                            : ", no autocast"));
}

}  // namespace

// trl 1.9 trainer/sft_trainer.py: __init__: a model given by its name is loaded in float32, unlike from_pretrained.
std::string no_dtype(const PyJob& job) {
  if (job.load == nullptr && job.trl) return "no dtype: TRL loads a model that is given by name in fp32";
  return "no dtype: " + std::string{kBefore5};
}

const PyValue* load_dtype(const PyObject& load) {
  const PyValue* dtype = load.find("torch_dtype");
  return dtype != nullptr ? dtype : load.find("dtype");
}

const char* dtype_of(std::string_view word) {
  return contains(word, "bfloat16") ? "bf16" : contains(word, "float16") ? "fp16" : "fp32";
}

std::string weights_dtype(const PyJob& job, PyValue& by) {
  for (const char* key : {"torch_dtype", "dtype"}) {
    const PyValue* value = job.load == nullptr ? nullptr : job.load->find(key);
    if (value == nullptr) value = job.load_option(key);
    if (value == nullptr || value->text.empty()) continue;
    by = *value;
    const std::string word = lower_case(value->text);
    if (contains(word, "bfloat16") || contains(word, "bf16")) return "bf16";
    if (contains(word, "float16") || contains(word, "half") || contains(word, "fp16")) return "fp16";
    return word == "auto" ? "auto" : "fp32";
  }
  for (const PyObject& one : job.program.objects) {
    const bool of_model =
        one.self >= 0 && job.load != nullptr && &job.program.objects[static_cast<std::size_t>(one.self)] == job.load;
    if (!of_model) continue;
    by.places = {one.place};
    if (one.name == ".half") return "fp16";
    if (one.name == ".bfloat16") return "bf16";
    for (const PyValue& value : one.positional) {
      if (one.name == ".to" && contains(value.text, "bfloat16")) return "bf16";
      if (one.name == ".to" && contains(value.text, "float16")) return "fp16";
    }
  }
  return {};
}

void read_precision(PyJob& job) {
  Said said = find_dtypes(job);
  if (job.lightning != nullptr) return;
  if (job.trainer == nullptr && job.told("precision")) return;  // an Accelerator's plugin or DeepSpeed's keys said it
  // trl 1.9 experimental/ppo/ppo_trainer.py: __init__: Accelerator(gradient_accumulation_steps=…).
  if (job.task == "ppo" && !job.unsloth && !job.quantised && !(said.open && job.is_command()) && said.weights != "auto")
    return job.say("precision", precision_of(said.weights.empty() ? "fp32" : said.weights, ""), said.around,
                   "PPOTrainer's own Accelerator is not told of bf16 and fp16");
  if (said.open && job.trl && !job.is_command() && job.any_argument({"bf16", "fp16"}) == nullptr)
    return say_default_of_trl(job, said);
  if (said.open) return job.unknown("precision: the command line");
  if (said.cast.empty() || said.by.places.empty()) said.by.places = said.around;
  const PyValue* deepspeed = job.argument("deepspeed");
  const bool by_engine =
      deepspeed != nullptr && (deepspeed->kind == Kind::kDict || (deepspeed->is_string() && !deepspeed->text.empty()));
  if (by_engine && !said.cast.empty()) return job.say("precision", of("deepspeed_" + said.cast), said.by);
  if ((job.quantised || job.unsloth) && say_beside_packed(job, said)) return;
  if (said.cast.empty()) return say_without_autocast(job, said);
  const std::string loaded = said.is_stated()                                ? said.weights
                             : said.weights == "auto" && said.cast == "bf16" ? "bf16"
                                                                             : "fp32";
  job.say("precision", precision_of(loaded, said.cast), said.by.places,
          !said.by.why.empty()   ? said.by.why
          : said.weights.empty() ? no_dtype(job)
                                 : std::string{});
}

}  // namespace tidemark::exchange
