#include <utility>

#include "core/exchange/python/library_calls.hpp"
#include "core/exchange/python/topics.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

/// What the trainer's class says, or the class of its arguments: GKDConfig is GKDTrainer's.
std::string task_of_trainer(const PyJob& job) {
  if (!job.trainer_task.empty()) return job.trainer_task;
  if (job.is_written()) return "sft";
  std::string task;
  if (job.arguments == nullptr) return task;
  constexpr std::string_view kEnding = "Trainer";
  for (const PyTrainer& row : known_trainers()) {
    if (row.task.empty() || !row.name.ends_with(kEnding)) continue;
    const std::string config = std::string{row.name.substr(0, row.name.size() - kEnding.size())} + "Config";
    if (job.arguments->is(config)) task = row.task;
  }
  return task;
}

/// What the class that is loaded says; else the task as it is.
std::string task_of_load(const std::string& load, std::string task) {
  const bool keeps = task == "sft" && contains(load, "ImageTextToText");
  for (const auto& [word, kind] : {std::pair{"SequenceClassification", "classification"},
                                   {"TokenClassification", "token_classification"},
                                   {"QuestionAnswering", "question_answering"},
                                   {"Whisper", "seq2seq"},
                                   {"SpeechSeq2Seq", "seq2seq"},
                                   {"ForCTC", "asr"},
                                   {"ImageTextToText", "vlm"},
                                   {"Vision2Seq", "vlm"},
                                   {"VLForConditional", "vlm"},
                                   {"Seq2SeqLM", "seq2seq"},
                                   {"ImageClassification", "vision"},
                                   {"CrossEncoder", "classification"},
                                   {"SentenceTransformer", "embedding"}}) {
    if (!keeps && contains(load, word)) task = kind;
  }
  return task;
}

/// What the program imports, its words and its file's name make likely.
const char* likely_task(const PyJob& job) {
  const std::string file = lower_case(base_name(job.reading.file));
  if (job.imports("diffusers")) return "diffusion";
  if (job.imports("timm")) return "vision";
  if (job.trainer == nullptr && contains(file, "dpo")) return "dpo";
  const bool sees = (contains(job.text, "pixel_values") && contains(job.text, "processor")) ||
                    contains(job.text, "AutoProcessor.from_pretrained");
  if (job.trainer == nullptr && sees) return "vlm";
  const bool tunes = job.load != nullptr || job.model_name != nullptr || job.trainer != nullptr ||
                     contains(file, "sft") || contains(file, "finetun");
  return tunes ? "sft" : "pretrain";
}

}  // namespace

void read_task(PyJob& job) {
  std::string load = job.load == nullptr ? std::string{} : job.load->name;
  // unsloth 2026.10.9 models/loader.py: from_pretrained(auto_model=...): the class in the place of its own.
  if (const PyValue* own = job.load == nullptr ? nullptr : job.load->find("auto_model"); own != nullptr)
    load += own->text;
  std::string task = task_of_trainer(job);
  const bool pictures = contains(job.text, "images") || contains(job.text, "\"image\"");
  const bool sees = contains(load, "Vision") || (pictures && contains(load, "ImageTextToText")) ||
                    contains(job.text, "FastVisionModel.get_peft_model");
  if (task == "sft" && sees) task = "vlm";
  if (task.empty() || task == "sft") task = task_of_load(load, task);
  const bool guessed = task.empty();
  job.task = guessed ? likely_task(job) : task;
  std::vector<Origin> places;
  if (job.trainer != nullptr) places.push_back(job.trainer->place);
  job.say("task", of(job.task), std::move(places), guessed ? "what the program loads and its name" : "");
  if (!job.unsloth) return;
  if (job.load != nullptr)
    job.say("framework.name", of("unsloth"), {job.load->place});
  else
    job.say("framework.name", of("unsloth"), std::vector<Origin>{}, "it imports unsloth");
}

}  // namespace tidemark::exchange
