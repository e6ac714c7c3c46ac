// How long sequences are, how much of them a prompt, an answer or a picture takes, and whether they are padded.
#include <algorithm>

#include "core/exchange/python/topics.hpp"
#include "core/exchange/word_list.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

const PyValue* number_of(const PyObject& one, std::string_view key) {
  const PyValue* value = one.find(key);
  return value != nullptr && value->is_number() ? value : nullptr;
}

const PyValue* number_anywhere(const PyJob& job, std::string_view key) {
  for (const PyObject& one : job.program.objects) {
    if (const PyValue* value = number_of(one, key); value != nullptr) return value;
  }
  return nullptr;
}

bool is_tokenizer_call(const PyObject& one) {
  if (one.find("truncation") != nullptr || one.find("padding") != nullptr) return true;
  return contains(lower_case(one.name), "tokeniz");
}

/// The length that a call cuts to, by the name that it is written with where its function has it from around it.
const PyValue* cut_length(const PyJob& job, const PyObject& call) {
  const PyValue* length = call.find("max_length");
  if (length == nullptr || length->is_number()) return length;
  return length->is_known() && length->text.empty()
             ? nullptr
             : job.variable({lower_case(length->text), "max_length", "max_source_length", "max_input_length"});
}

/// transformers 5.12 tokenization_utils_base.py: __call__: text_target is what labels are made of.
bool makes_labels(const PyObject& call) {
  return call.find("text_target") != nullptr;
}

const PyValue* tokenizer_length(const PyJob& job) {
  for (const PyObject& one : job.program.objects) {
    if (!is_tokenizer_call(one) || one.is("from_pretrained") || makes_labels(one)) continue;
    if (const PyValue* length = cut_length(job, one); length != nullptr) return length;
  }
  for (const PyObject& one : job.program.objects) {
    if (!contains(one.name, "Tokenizer")) continue;
    if (const PyValue* length = number_of(one, "model_max_length"); length != nullptr) return length;
  }
  return nullptr;
}

/// The length of a sequence, from what is surest to say it to what is least.
const PyValue* find_length(const PyJob& job) {
  const PyValue* length =
      job.task == "dpo" || job.trl
          ? job.any_argument({"max_length", "max_seq_length", "max_seq_len"})
          : job.any_argument({"max_seq_length", "max_length", "model_max_length", "block_size", "max_len", "cutoff_len",
                              "max_seq_len", "seq_len", "seq_length", "bptt"});
  if (length == nullptr && job.load != nullptr) length = number_of(*job.load, "max_seq_length");
  if (length == nullptr) length = tokenizer_length(job);
  if (length == nullptr) length = number_anywhere(job, "allowed_max_length");
  if (length == nullptr)
    length = job.variable({"max_seq_length", "max_length", "max_seq_len", "cutoff_len", "model_max_length", "max_len",
                           "block_size", "seq_length", "sequence_length", "context_length"});
  return length;
}

/// QLoRA's own script: source and target of a row have a length each. Whether it is such a program.
bool read_source_and_target(PyJob& job) {
  const PyValue* source = number_anywhere(job, "source_max_len");
  const PyValue* target = source == nullptr ? nullptr : number_anywhere(job, "target_max_len");
  if (target == nullptr) return false;
  std::vector<Origin> places = source->places;
  cite(places, target);
  job.say("sequence_length", of(source->integer + target->integer), std::move(places), "source and target in one row");
  return true;
}

void read_sequence_length(PyJob& job) {
  const PyValue* length = find_length(job);
  if (length == nullptr && read_source_and_target(job)) return;
  if (length != nullptr && length->is_number()) return job.say("sequence_length", *length);
  const bool configured = job.arguments != nullptr && !job.is_command();
  // trl 1.9 trainer/{sft,dpo,kto,reward}_config.py, experimental/{orpo,cpo,bco,gkd}: max_length
  if (configured && job.trl && is_in(" sft dpo kto reward orpo simpo bco gkd ", job.task)) {
    job.say("sequence_length", of(1024), {job.arguments->place},
            "TRL's default 1024 (SFTConfig since 0.15, DPOConfig since 0.14)");
    return job.unknown("sequence_length: TRL's default by version (1024 since 0.16)");
  }
  if (configured && job.task == "online_dpo")
    return job.say("sequence_length", of(512), {job.arguments->place}, "OnlineDPOConfig's default");
  if (!generates_answers(job.task) || job.argument("max_prompt_length") == nullptr) job.unknown("sequence_length");
}

/// Labels of an encoder-decoder are cut by a call of their own: that of text_target, or else the second.
void read_label_length(PyJob& job) {
  if (job.task != "seq2seq") return;
  const PyValue* first = nullptr;
  for (const PyObject& one : job.program.objects) {
    if (!is_tokenizer_call(one) || one.is("from_pretrained")) continue;
    const PyValue* length = cut_length(job, one);
    if (length == nullptr) continue;
    if (first != nullptr || makes_labels(one)) return job.say("decoder_sequence_length", *length);
    first = length;
  }
}

void read_prompt_length(PyJob& job) {
  job.copy("max_prompt_length", {"max_prompt_length"});
  Finding* prompt = find(job.reading, "max_prompt_length");
  if (prompt == nullptr || !prompt->assumed.empty()) return;
  const auto elsewhere = [&](const Origin& origin) { return origin.cell != prompt->origins.front().cell; };
  if (std::any_of(prompt->origins.begin(), prompt->origins.end(), elsewhere))
    prompt->assumed = "a variable of another cell, which may have run anew";
}

/// Trainers of preferences pad both answers to one length, on the side that the script chose.
void read_padding_side(PyJob& job) {
  if ((generates_answers(job.task) || job.task == "online_dpo") && job.trainer != nullptr)
    return job.say("padding", of(true), {job.trainer->place}, "answers end at different lengths");
  if (job.task != "dpo" && job.task != "kto" && job.task != "orpo" && job.task != "reward") return;
  for (const PyAssignment& one : job.program.assignments) {
    if (one.name == "padding_side") return job.say("padding", of(true), one.value.places);
  }
  for (const PyObject& one : job.program.objects) {
    for (const auto& [name, value] : one.fields) {
      if (name == "padding_side" && contains(one.name, "okenizer")) return job.say("padding", of(true), value.places);
    }
  }
}

/// unsloth 2026.10.9 models/rl.py: check_num_generations: groups that an optimizer step does not fill make the batch
/// one group.
void read_unsloth_groups(PyJob& job) {
  Finding* batch = find(job.reading, "micro_batch_size");
  const Finding* steps = find(job.reading, "gradient_accumulation_steps");
  const Finding* group = find(job.reading, "num_generations");
  const bool stated = job.any_argument({"steps_per_generation", "generation_batch_size"}) != nullptr;
  if (!job.unsloth || !generates_answers(job.task) || stated || batch == nullptr || steps == nullptr) return;
  const std::int64_t answers = group == nullptr ? 8 : group->value.integer;
  if (answers < 1 || batch->value.integer * steps->value.integer % answers == 0) return;
  batch->value = of(answers);
  batch->assumed = "Unsloth makes a batch that its groups do not fill as large as num_generations";
}

/// A collator that hands the processor texts and pictures: one picture a sample. A length that is cut short is left to
/// texts, for which there may be no room beside a picture's tokens.
void read_pictures(PyJob& job) {
  const Finding* length = find(job.reading, "sequence_length");
  const bool cut = length != nullptr && length->value.is_integer() && length->value.integer < 1024;
  if (job.told("images_per_sample") || generates_answers(job.task) || cut) return;
  for (const PyObject& one : job.program.objects) {
    const PyValue* pictures = one.find("images");
    if (pictures == nullptr || pictures->kind == PyValue::Kind::kNone || one.find("text") == nullptr) continue;
    return job.say("images_per_sample", of(1), {one.place}, "the processor is given pictures: one a sample");
  }
}

}  // namespace

void read_lengths(PyJob& job) {
  read_sequence_length(job);
  read_label_length(job);
  read_prompt_length(job);
  for (const OfRollout& one : rollout_numbers()) {
    if (generates_answers(job.task) || std::string_view{one.key} != "beta") job.copy(one.path, {one.key});
  }
  // trl 1.9 trainer/rloo_config.py: num_generations
  if (job.task == "rloo" && job.arguments != nullptr && !job.is_command() && !job.told("num_generations"))
    job.say("num_generations", of(2), {job.arguments->place}, "RLOOConfig's default");
  for (const PyObject* collator : job.program.calls("UnslothVisionDataCollator")) {
    if (!job.told("images_per_sample")) job.say("images_per_sample", of(1), {collator->place}, "a picture a sample");
  }
  read_unsloth_groups(job);
  read_pictures(job);
  read_padding(job);
}

void read_padding(PyJob& job) {
  std::vector<Origin> places;
  for (const PyObject& one : job.program.objects) {
    const PyValue* padding = one.find("padding");
    const bool collates = one.is("DataCollatorForSeq2Seq") || one.is("DataCollatorWithPadding") ||
                          one.is("DataCollatorForLanguageModeling") || one.is("CrossEncoder");
    const bool pads = is_true(padding) || (padding != nullptr && padding->is_string());
    if (pads) cite(places, padding);
    if (collates) places.push_back(one.place);
  }
  if (!places.empty()) return job.say("padding", of(true), std::move(places));
  read_padding_side(job);
}

}  // namespace tidemark::exchange
