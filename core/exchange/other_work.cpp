// ms-swift 3602360a swift/cli/main.py, cli/_megatron/main.py; LLaMA-Factory ff6d4d12 launcher.py; axolotl 0.18
// cli/main.py; trl 1.9 cli/commands; torchtune 0.6 recipes; xtuner 0.1 entry_point.py: the words behind each command.
#include "core/exchange/other_work.hpp"

#include <algorithm>

#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

/// The word behind a command of many verbs, and what that verb does.
struct Verb {
  std::string_view launcher;
  std::string_view word;
  std::string_view work;
};
constexpr Verb kVerbs[] = {
    {"swift", "infer", kGenerates},
    {"swift", "app", kGenerates},
    {"swift", "sample", kGenerates},
    {"swift", "deploy", kServes},
    {"swift", "rollout", kServes},
    {"swift", "eval", kEvaluates},
    {"swift", "export", kConverts},
    {"swift", "merge-lora", kConverts},
    {"megatron", "export", kConverts},
    {"llamafactory-cli", "chat", kGenerates},
    {"llamafactory-cli", "webchat", kGenerates},
    {"llamafactory-cli", "api", kServes},
    {"llamafactory-cli", "eval", kEvaluates},
    {"llamafactory-cli", "export", kConverts},
    {"axolotl", "inference", kGenerates},
    {"axolotl", "vllm-serve", kServes},
    {"axolotl", "evaluate", kEvaluates},
    {"axolotl", "lm-eval", kEvaluates},
    {"axolotl", "merge-lora", kConverts},
    {"axolotl", "merge-sharded-fsdp-weights", kConverts},
    {"axolotl", "quantize", kConverts},
    {"axolotl", "delinearize-llama4", kConverts},
    {"axolotl", "preprocess", kPrepares},
    {"axolotl", "fetch", kPrepares},
    {"trl", "chat", kGenerates},
    {"trl", "vllm-serve", kServes},
    {"xtuner", "chat", kGenerates},
    {"xtuner", "test", kEvaluates},
    {"xtuner", "mmbench", kEvaluates},
    {"xtuner", "convert", kConverts},
    {"xtuner", "preprocess", kPrepares},
    {"tune", "download", kPrepares},
};

/// Programs that only serve, ask or measure models: commands, or modules of Python.
struct Program {
  std::string_view name;
  std::string_view work;
};
constexpr Program kPrograms[] = {
    {"vllm", kServes},
    {"sglang", kServes},
    {"lmdeploy", kServes},
    {"ollama", kServes},
    {"llama-server", kServes},
    {"text-generation-launcher", kServes},
    {"lm_eval", kEvaluates},
    {"lighteval", kEvaluates},
    {"axolotl.cli.inference", kGenerates},
    {"axolotl.cli.evaluate", kEvaluates},
    {"axolotl.cli.merge_lora", kConverts},
    {"axolotl.cli.merge_sharded_fsdp_weights", kConverts},
    {"axolotl.cli.quantize", kConverts},
    {"axolotl.cli.preprocess", kPrepares},
};

/// Words of file names that tell what a program does.
constexpr Program kNames[] = {
    {"infer", kGenerates},     {"inference", kGenerates}, {"generate", kGenerates}, {"generation", kGenerates},
    {"chat", kGenerates},      {"demo", kGenerates},      {"predict", kGenerates},  {"serve", kServes},
    {"server", kServes},       {"deploy", kServes},       {"eval", kEvaluates},     {"evaluate", kEvaluates},
    {"merge", kConverts},      {"export", kConverts},     {"convert", kConverts},   {"quantize", kConverts},
    {"preprocess", kPrepares}, {"init", kPrepares},       {"tokenize", kPrepares},  {"download", kPrepares},
};

/// Parts of words that only training has: of a file's name, a flag, a call.
constexpr std::string_view kTraining[] = {"train", "sft",      "finetun",  "fine_tun", "tuning", "dpo",
                                          "grpo",  "ppo",      "lora",     "optim",    "epoch",  "warmup",
                                          "step",  "backward", "learning", "loss"};

bool speaks_of_training(std::string_view word) {
  std::string plain = lower_case(word);
  for (std::size_t at = plain.find("pretrained"); at != std::string::npos; at = plain.find("pretrained"))
    plain.erase(at, std::string_view{"pretrained"}.size());
  return std::any_of(std::begin(kTraining), std::end(kTraining),
                     [&](std::string_view part) { return plain.find(part) != std::string::npos; });
}

/// transformers examples/pytorch: these train under --do_train alone.
bool asks_only_to_evaluate(const Launch& launch) {
  constexpr std::string_view kScripts[] = {"run_clm",
                                           "run_mlm",
                                           "run_plm",
                                           "run_fim",
                                           "run_glue",
                                           "run_xnli",
                                           "run_classification",
                                           "run_ner",
                                           "run_qa",
                                           "run_seq2seq_qa",
                                           "run_swag",
                                           "run_summarization",
                                           "run_translation",
                                           "run_speech_recognition",
                                           "run_audio_classification",
                                           "run_image_classification"};
  const std::string_view name = base_name(launch.program);
  const bool decides = std::any_of(std::begin(kScripts), std::end(kScripts),
                                   [&](std::string_view script) { return name.starts_with(script); });
  return decides && (has_flag(launch, "do_eval") || has_flag(launch, "do_predict")) && !has_flag(launch, "do_train");
}

/// A word of the program's name, where neither it nor a flag speaks of training.
const Program* named_so(const Launch& launch) {
  const std::string_view name = base_name(launch.program);
  if (!name.ends_with(".py") || speaks_of_training(name)) return nullptr;
  if (std::any_of(launch.arguments.begin(), launch.arguments.end(),
                  [](const ShellWord& word) { return speaks_of_training(flag_of(word.word())); }))
    return nullptr;
  const std::string stem = lower_case(name.substr(0, name.size() - 3));
  for (std::size_t at = 0; at <= stem.size();) {
    const std::size_t end = std::min(stem.find_first_of("_-.", at), stem.size());
    const std::string_view word = std::string_view{stem}.substr(at, end - at);
    for (const Program& row : kNames) {
      if (row.name == word) return &row;
    }
    at = end + 1;
  }
  return nullptr;
}

const Program* program_of(std::string_view name) {
  for (const Program& row : kPrograms) {
    if (lies_in(name, row.name)) return &row;
  }
  return nullptr;
}

/// What a call does beside training, or nothing.
std::string_view work_of_call(const PyObject& call) {
  for (const char* name :
       {"merge_and_unload", "save_pretrained_merged", "push_to_hub_merged", "save_pretrained_gguf"}) {
    if (call.is(name)) return kConverts;
  }
  for (const char* name : {"generate", "transformers.pipeline", "pipeline", "vllm.LLM", "for_inference", "chat",
                           "no_grad", "inference_mode", "encode"}) {
    if (call.is(name)) return kGenerates;
  }
  if (call.is("from_pretrained") && call.name.find("Pipeline.") != std::string::npos) return kGenerates;
  for (const char* name : {"evaluate", "predict", "simple_evaluate"}) {
    if (call.is(name)) return kEvaluates;
  }
  return {};
}

}  // namespace

std::string work_in_words(std::string_view name, std::string_view work) {
  return "\"" + std::string{name} + "\" " + std::string{work};
}

std::string other_work(const Launch& launch) {
  for (const Verb& row : kVerbs) {
    if (row.launcher == launch.launcher && row.word == launch.program)
      return work_in_words(launch.launcher + " " + launch.program, row.work);
  }
  if (const Program* row = program_of(launch.program); row != nullptr) return work_in_words(launch.program, row->work);
  const std::string name{base_name(launch.program)};
  if (asks_only_to_evaluate(launch)) return work_in_words(name + "\" without \"--do_train", kEvaluates);
  if (const Program* row = named_so(launch); row != nullptr) return work_in_words(name, row->work);
  return {};
}

std::string other_work(const TrainingScript& script) {
  std::string work;
  for (const Launch& launch : script.launches) {
    work = other_work(launch);
    if (work.empty()) return {};
  }
  if (!work.empty()) return work;
  for (const ShellCommand& command : script.script.commands) {
    const auto started = std::find_if_not(command.words.begin(), command.words.end(), [](const ShellWord& word) {
      return word.word() == "nohup" || word.word() == "sudo" || word.word() == "exec" || word.word() == "srun";
    });
    if (started == command.words.end()) continue;
    if (const Program* row = program_of(base_name(started->word())); row != nullptr)
      return work_in_words(row->name, row->work);
  }
  return {};
}

std::string other_work(const PyProgram& program) {
  std::string work;
  bool prepared = false;
  for (const PyObject& call : program.objects) {
    const std::string_view name = call.name;
    // A Trainer that is made and only asked to evaluate trains nothing either.
    const bool prepares = name.ends_with("Trainer") || name.ends_with("TrainingArguments");
    prepared = prepared || prepares;
    if (!prepares &&
        (speaks_of_training(name) || std::any_of(call.bases.begin(), call.bases.end(), speaks_of_training)))
      return {};
    const std::string_view does = work_of_call(call);
    if (!does.empty() && (work.empty() || does == kEvaluates))
      work = work_in_words(name.substr(name.rfind('.') + 1), does);
  }
  return prepared && work.find(kEvaluates) == std::string::npos ? std::string{} : work;
}

void tell_other_work(Reading& reading, std::string_view file, std::string_view work) {
  reading.issues.push_back({"NO_JOB", Severity::kError, std::string{file},
                            "Nothing here trains: " + std::string{work} +
                                ". Estimates are of training: hand over the command or the file that trains the model.",
                            ""});
}

}  // namespace tidemark::exchange
