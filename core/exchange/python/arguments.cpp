// The trainer's arguments, or what programs without a trainer have in their place.
#include <algorithm>

#include "core/exchange/python/topics.hpp"

namespace tidemark::exchange {
namespace {

/// trl 1.9 trainer/sft_config.py: __post_init__. max_seq_length is a word of releases before 0.20.
void read_loss(PyJob& job) {
  if (job.on("use_liger_kernel") || job.on("use_liger"))
    return job.say("loss", of("liger"), *job.any_argument({"use_liger_kernel", "use_liger"}));
  const PyValue* kind = job.argument("loss_type");
  if (job.task == "dpo" && names_sft(kind)) not_counted(job.reading, kChosenCrossEntropy, kind->places);
  if (!job.trl || job.unsloth || job.task != "sft") return;
  if (kind != nullptr && (kind->text == "chunked_nll" || kind->text == "nll"))
    return job.say("loss", of(kind->text == "nll" ? "default" : "chunked"), *kind);
  if (kind != nullptr || job.is_command() || job.argument("max_seq_length") != nullptr) return;
  job.say("loss", of("chunked"), {job.arguments->place},
          "chunked_nll is SFTConfig's default since trl 1.7, nll before");
}

/// A loop of one's own clips by torch's function or an Accelerator's method.
void read_clipping(PyJob& job) {
  for (const PyObject& one : job.program.objects) {
    if (!one.is("clip_grad_norm_") && one.name != ".clip_grad_norm_") continue;
    const PyValue* norm = one.positional.size() > 1 ? &one.positional[1] : one.find("max_norm");
    if (norm != nullptr && norm->is_number()) job.say("max_grad_norm", *norm);
  }
}

void read_compile(PyJob& job) {
  if (job.on("torch_compile")) return job.say("compile", of("full"), *job.argument("torch_compile"));
  const std::vector<const PyObject*> compiled = job.program.calls("torch.compile");
  if (compiled.empty()) return;
  std::vector<Origin> places{compiled[0]->place};
  for (const PyAssignment& one : job.program.assignments) {  // what switches the call on
    const bool switches = one.name == "compile" || one.name == "use_compile" || one.name == "torch_compile";
    if (switches && one.value.kind == PyValue::Kind::kBool) cite(places, &one.value);
  }
  job.say("compile", of("full"), std::move(places));
}

}  // namespace

void read_arguments(PyJob& job) {
  read_batch(job);
  for (const char* word : {"max_grad_norm", "neftune_noise_alpha", "label_smoothing_factor"}) job.copy(word, {word});
  if (!job.told("max_grad_norm")) read_clipping(job);
  read_optimizer(job);
  if (const PyValue* packing = job.argument("packing"); packing != nullptr && packing->kind == PyValue::Kind::kBool)
    job.say("packing", *packing);
  for (const char* word : {"padding_free", "activation_offloading"}) {
    const PyValue* value = job.argument(word);
    if (job.trl && is_true(value)) job.say(word, *value);
  }
  read_loss(job);
  read_compile(job);
  read_sharding(job);
  read_evaluation(job);
}

void read_evaluation(PyJob& job) {
  const PyValue* strategy = job.any_argument({"eval_strategy", "evaluation_strategy"});
  if (strategy == nullptr || !strategy->is_string() || strategy->text == "no") return;
  if (const PyValue* batch = job.argument("per_device_eval_batch_size"); batch != nullptr)
    job.say("evaluation.micro_batch_size", *batch);
  else
    job.say("evaluation.micro_batch_size", of(job.has_unsloth_defaults() ? 4 : 8), strategy->places,
            job.has_unsloth_defaults() ? "Unsloth's default 4"
                                       : "per_device_eval_batch_size default 8 (TrainingArguments)");
  const PyValue* generates = job.argument("predict_with_generate");
  if (generates == nullptr || !generates->boolean) return;
  job.say("evaluation.generate", *generates);
  if (const PyValue* most = job.argument("generation_max_length"); most != nullptr && most->is_number())
    job.say("evaluation.max_new_tokens", *most);
  if (const PyValue* beams = job.argument("generation_num_beams"); beams != nullptr && beams->is_number())
    job.say("evaluation.num_beams", *beams);
}

void read_own_flags(PyJob& job) {
  if (job.parsed_flags == nullptr) return;
  const PyValue* stage = job.parsed_flags->find("zero_stage");
  if (job.imports("deepspeed") && stage != nullptr && stage->is_number()) {
    job.say("parallelism.zero_stage", *stage);
    if (const PyValue* dtype = job.parsed_flags->find("dtype"); dtype != nullptr && dtype->is_string())
      job.say("precision", of("deepspeed_" + dtype->text), *dtype);
  }
  const PyValue* resolution = job.parsed_flags->find("resolution");
  if (job.task == "diffusion" && resolution != nullptr && resolution->is_number()) {
    const Value side = to_value(*resolution);
    job.say("image_size", of(std::vector<Value>{side, side}), *resolution);
  }
}

}  // namespace tidemark::exchange
