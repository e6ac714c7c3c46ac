#include <utility>

#include "core/exchange/python/library_calls.hpp"
#include "core/exchange/python/topics.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyValue::Kind;

/// unsloth 2026.10.9 models/_utils.py: torchao's linear layers with fake quantisation, which keep a quantised copy.
void read_fake_quantisation(PyJob& job) {
  if (!job.unsloth) return;
  for (const PyObject* one : {job.load, job.lora}) {
    const PyValue* scheme = one == nullptr ? nullptr : one->find("qat_scheme");
    if (scheme != nullptr && scheme->is_string())
      not_counted(job.reading, "quantisation-aware training (qat_scheme)", scheme->places);
  }
}

/// transformers' configurations of GPTQ, AWQ and HQQ; what they leave out is the same here.
void read_packed(PyJob& job, const PyObject& config) {
  job.quantised = true;
  job.quantised_by.places = {config.place};
  const char* type = config.is("HqqConfig") ? "hqq" : config.is("AwqConfig") ? "awq" : "gptq";
  job.say("quantization.quant_type", of(type), {config.place});
  for (const auto& [word, field] :
       {std::pair{"bits", "bits"}, {"nbits", "bits"}, {"group_size", "group_size"}, {"desc_act", "desc_act"}}) {
    const PyValue* value = config.find(word);
    if (value != nullptr) job.say(std::string{"quantization."} + field, *value);
  }
  if (job.prepared != nullptr) job.say("quantization.prepare_kbit", of(true), {job.prepared->place});
}

/// What says that bitsandbytes packs weights: its configuration, or options of the call that loads the model.
struct PackedWidths {
  const PyObject* config = nullptr;  ///< BitsAndBytesConfig
  const PyValue* four = nullptr;     ///< load_in_4bit
  const PyValue* eight = nullptr;    ///< load_in_8bit
  bool by_default = false;           ///< neither is there, and Unsloth's loader packs in four bits

  bool is_four() const { return is_true(four) || by_default; }
  const PyValue* option(std::string_view key) const { return config == nullptr ? nullptr : config->find(key); }
};

/// `given` is what stands under quantization_config.
PackedWidths packed_widths(const PyJob& job, const PyValue* given) {
  const bool refused = given != nullptr && given->kind == Kind::kNone;
  const PyObject* config = job.at(given);
  if (config == nullptr && !refused) config = job.bitsandbytes;
  PackedWidths widths;
  if (config != nullptr && config->is("BitsAndBytesConfig")) {
    widths = {config, config->find("load_in_4bit"), config->find("load_in_8bit")};
  } else {
    widths = {nullptr, job.load_option("load_in_4bit"), job.load_option("load_in_8bit")};
  }
  widths.by_default = job.unsloth && job.load != nullptr && contains(job.load->name, "Fast") &&
                      !is_fast_encoder(*job.load) && widths.four == nullptr && !is_true(widths.eight);
  return widths;
}

/// The places of what packs weights, and what makes that only likely.
PyValue reason_of(const PyJob& job, const PackedWidths& widths) {
  PyValue by = is_true(widths.four) ? *widths.four : is_true(widths.eight) ? *widths.eight : PyValue{};
  if (widths.config != nullptr) by.places.push_back(widths.config->place);
  const PyObject* decides = widths.config != nullptr ? widths.config : job.load;
  if (decides != nullptr && decides->unsure) by.why = "a test at run time decides";
  if (widths.by_default) by.places.push_back(job.load->place);
  return by;
}

void say_type(PyJob& job, const PackedWidths& widths, const PyValue& by) {
  const char* why = job.unsloth ? "Unsloth loads nf4 with double quantisation" : "bitsandbytes' default";
  const PyValue* type = widths.option("bnb_4bit_quant_type");
  const PyValue* nested = widths.option("bnb_4bit_use_double_quant");
  if (!widths.is_four()) return job.say("quantization.quant_type", of("int8"), by);
  if (type != nullptr && type->is_string())
    job.say("quantization.quant_type", *type);
  else
    job.say("quantization.quant_type", of(job.unsloth ? "nf4" : "fp4"), by.places, why);
  if (nested != nullptr && nested->kind == Kind::kBool)
    job.say("quantization.double_quant", *nested);
  else
    job.say("quantization.double_quant", of(job.unsloth), by.places, why);
  const PyValue* storage = widths.option("bnb_4bit_quant_storage");
  if (storage != nullptr && storage->kind != Kind::kNone && !storage->text.empty())
    job.say("quantization.quant_storage", of(last_word(storage->text)), *storage);
}

void say_preparation(PyJob& job, const PyValue& by) {
  const bool trl_prepares =
      job.trainer != nullptr && !job.trainer_task.empty() && job.trainer->find("peft_config") != nullptr;
  if (job.prepared != nullptr)
    job.say("quantization.prepare_kbit", of(true), {job.prepared->place});
  else if (trl_prepares)
    job.unknown("quantization.prepare_kbit: TRL calls it up to 0.23, not since 0.26");
  else if (!job.unsloth)
    job.say("quantization.prepare_kbit", of(false), by.places, "prepare_model_for_kbit_training is not called");
}

}  // namespace

void read_quantization(PyJob& job) {
  read_fake_quantisation(job);
  if (job.tunes_fully()) return;
  const PyValue* given = job.load_option("quantization_config");
  if (job.mxfp4 != nullptr) {
    // transformers 5.12 quantizers/quantizer_mxfp4.py: experts are unpacked as they are loaded, and nothing stays
    // packed.
    if (!is_true(job.mxfp4->find("dequantize"))) job.say("quantization.quant_type", of("mxfp4"), {job.mxfp4->place});
    return;
  }
  if (job.packed != nullptr) return read_packed(job, *job.packed);
  const PackedWidths widths = packed_widths(job, given);
  const bool eight = is_true(widths.eight);
  if (!widths.is_four() && !eight) return;
  refuse_both_widths(job.reading, is_true(widths.four) && widths.four->why.empty(), eight && widths.eight->why.empty());
  job.quantised = true;
  job.quantised_by = reason_of(job, widths);
  job.say("quantization.bits", of(widths.is_four() ? 4 : 8), job.quantised_by);
  say_type(job, widths, job.quantised_by);
  say_preparation(job, job.quantised_by);
}

}  // namespace tidemark::exchange
