// transformers 4.28.1 to 5.12.0 training_args.py, modeling_utils.py: from_pretrained; peft 0.18.0
// tuners/lora/config.py, utils/constants.py, utils/other.py: prepare_model_for_kbit_training; trl 0.9.3 to 1.9.0
// trainer/*.py; unsloth 015bdef0.
#include "core/exchange/python_job.hpp"

#include <algorithm>

#include "core/exchange/accelerate_keys.hpp"
#include "core/exchange/deepspeed_keys.hpp"
#include "core/exchange/formats/shared.hpp"
#include "core/exchange/python_freezing.hpp"
#include "core/exchange/unsloth_targets.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyValue::Kind;

bool is_true(const PyValue* value) {
  return value != nullptr && value->kind == Kind::kBool && value->boolean;
}

/// What stands under target_modules says of which.
bool names_modules(const PyValue* value) {
  return value != nullptr && value->is_known() && value->kind != Kind::kNone && value->kind != Kind::kObject;
}

struct Trainer {
  std::string_view name;
  std::string_view task;
};
constexpr Trainer kTrainers[] = {
    {"GRPOTrainer", "grpo"},
    {"RLOOTrainer", "rloo"},
    {"PPOTrainer", "ppo"},
    {"PPOv2Trainer", "ppo"},
    {"DPOTrainer", "dpo"},
    {"KTOTrainer", "kto"},
    {"BCOTrainer", "bco"},
    {"TPOTrainer", "tpo"},
    {"PRMTrainer", "prm"},
    {"ORPOTrainer", "orpo"},
    {"CPOTrainer", "simpo"},
    {"RewardTrainer", "reward"},
    {"GKDTrainer", "gkd"},
    {"OnlineDPOTrainer", "online_dpo"},
    {"NashMDTrainer", "nash_md"},
    {"IWOPDTrainer", "iw_opd"},
    {"AsyncGRPOTrainer", "async_grpo"},
    {"SFTTrainer", "sft"},
    {"UnslothTrainer", "sft"},
    {"SentenceTransformerTrainer", "embedding"},
    {"SparseEncoderTrainer", "embedding"},
    {"CrossEncoderTrainer", "classification"},
    {"Seq2SeqTrainer", ""},
    {"Trainer", ""},
    {"SentenceTransformersFinetuneEngine", "embedding"},
};
constexpr std::string_view kArguments[] = {
    "GRPOConfig",
    "RLOOConfig",
    "PPOConfig",
    "PPOv2Config",
    "DPOConfig",
    "OnlineDPOConfig",
    "KTOConfig",
    "BCOConfig",
    "PRMConfig",
    "ORPOConfig",
    "CPOConfig",
    "RewardConfig",
    "GKDConfig",
    "SFTConfig",
    "SentenceTransformerTrainingArguments",
    "SparseEncoderTrainingArguments",
    "CrossEncoderTrainingArguments",
    "Seq2SeqTrainingArguments",
    "UnslothTrainingArguments",
    "TrainingArguments",
};

bool is_object(const PyValue* value) {
  return value != nullptr && value->kind == Kind::kObject && value->index >= 0;
}

class Job {
 public:
  Job(PyProgram& program, std::string_view text, Reading& reading)
      : program_(program), text_(text), reading_(reading) {}

  void read() {
    find_parts();
    read_task();
    read_model();
    read_attention();
    read_quantization();
    read_method();
    read_arguments();
    read_plugins();
    read_wrappers();
    read_lightning();
    read_lengths();
    read_checkpointing();
    read_precision();
    read_own_flags();
    read_reference();
    read_rollout();
    read_judge();
    read_teacher();
    ask();
    tell_unread();
  }

 private:
  // ---------------------------------------------------------------- telling
  void say(std::string_view path, Value value, std::vector<Origin> places, std::string why = {}) {
    if (value.is_null()) return;
    state(reading_, path, std::move(value), std::move(places), std::move(why));
  }
  void say(std::string_view path, const PyValue& value) { say(path, to_value(value), value.places, value.why); }
  void say(std::string_view path, Value value, const PyValue& by) { say(path, std::move(value), by.places, by.why); }
  bool told(std::string_view path) const { return find(reading_, path) != nullptr; }
  void unknown(std::string what) {
    if (std::find(reading_.unknowns.begin(), reading_.unknowns.end(), what) == reading_.unknowns.end())
      reading_.unknowns.push_back(std::move(what));
  }
  const PyObject* at(const PyValue* value) const {
    return is_object(value) ? &program_.objects[static_cast<std::size_t>(value->index)] : nullptr;
  }

  /// A keyword of the trainer's arguments, or of the trainer itself (older TRL).
  const PyValue* argument(std::string_view key) const {
    for (const PyObject* one : {arguments_, trainer_, space_}) {
      const PyValue* value = one == nullptr ? nullptr : one->find(key);
      if (value != nullptr && value->is_known() && value->kind != Kind::kNone && value->kind != Kind::kObject)
        return value;
    }
    return nullptr;
  }
  const PyValue* any_argument(std::initializer_list<std::string_view> keys) const {
    for (std::string_view key : keys) {
      if (const PyValue* value = argument(key); value != nullptr) return value;
    }
    return nullptr;
  }
  bool on(std::string_view key) const { return is_true(argument(key)); }
  bool imports(std::string_view word) const {
    return contains(text_, "import " + std::string{word}) || contains(text_, "from " + std::string{word});
  }

  /// The value that a variable of a telling name was given last.
  const PyValue* variable(std::initializer_list<std::string_view> names) const {
    for (std::string_view name : names) {
      for (auto one = program_.assignments.rbegin(); one != program_.assignments.rend(); ++one) {
        if (lower_case(one->name) == name && one->value.is_number()) return &one->value;
      }
    }
    return nullptr;
  }

  // ---------------------------------------------------------------- the parts of the program
  /// The kind of adapter that a configuration of PEFT's beside LoraConfig makes; empty for any other object.
  static std::string_view kind_of(const PyObject& one) {
    static constexpr std::pair<const char*, std::string_view> kKinds[] = {{"AdaLoraConfig", "adalora"},
                                                                          {"IA3Config", "ia3"},
                                                                          {"LoHaConfig", "loha"},
                                                                          {"LoKrConfig", "lokr"},
                                                                          {"VeraConfig", "vera"},
                                                                          {"OFTConfig", "oft"},
                                                                          {"BOFTConfig", "boft"},
                                                                          {"LNTuningConfig", "ln_tuning"},
                                                                          {"PromptTuningConfig", "prompt_tuning"},
                                                                          {"PromptEncoderConfig", "p_tuning"},
                                                                          {"PrefixTuningConfig", "prefix_tuning"}};
    for (const auto& [name, kind] : kKinds) {
      if (one.is(name)) return kind;
    }
    return {};
  }

  void find_parts() {
    for (const PyObject& one : program_.objects) {
      for (const Trainer& row : kTrainers) {
        if (!one.is(row.name)) continue;
        const bool plain = row.name == "Trainer";
        const bool own = plain && one.name != "Trainer" && !contains(one.name, "transformers") &&
                         std::none_of(one.bases.begin(), one.bases.end(),
                                      [](const std::string& base) { return contains(base, "Trainer"); });
        if (own) own_trainer_ = &one;
        if (own) break;
        trainer_ = &one;
        trainer_task_ = row.task;
        trainer_name_ = row.name;
        break;
      }
      // Another trainer of TRL's is its own task, of which nothing is known here but the name (trl.experimental.sdft:
      // SDFTTrainer).
      if (trainer_ == nullptr && one.name.starts_with("trl.") && one.name.ends_with("Trainer")) {
        const std::string_view word = std::string_view{one.name}.substr(one.name.rfind('.') + 1);
        other_task_ = lower_case(word.substr(0, word.size() - std::string_view{"Trainer"}.size()));
        trainer_ = &one;
        trainer_task_ = other_task_;
        trainer_name_ = word;
      }
      if (one.name == "argparse.Namespace") space_ = &one;
      if (one.is("Mxfp4Config")) mx_ = &one;
      if (one.is("GPTQConfig") || one.is("AwqConfig") || one.is("HqqConfig")) packed_ = &one;
      if (one.is("Accelerator")) accelerator_ = &one;
      if (contains(one.name, "lightning") && (one.is("Trainer") || one.is("Fabric"))) lightning_ = &one;
      if (one.is("LoraConfig") || is_fast_adapter(one) || !kind_of(one).empty()) lora_ = &one;
      if (one.is("BitsAndBytesConfig")) bits_ = &one;
      if (one.is("prepare_model_for_kbit_training") || one.is("prepare_model_for_int8_training")) prepared_ = &one;
    }
    arguments_ = trainer_ == nullptr ? nullptr : at(trainer_->find("args"));
    if (arguments_ == nullptr && trainer_ != nullptr && trainer_->positional.size() > 1)
      arguments_ = at(&trainer_->positional[1]);
    if (arguments_ == nullptr) {
      for (const PyObject& one : program_.objects) {
        for (std::string_view name : kArguments) {
          if (one.is(name) && !(trainer_ != nullptr && one.from_command)) arguments_ = &one;
        }
      }
    }
    if (arguments_ != nullptr && arguments_->name == "written.TrainingArguments") task_hint_ = "sft";
    unsloth_ = imports("unsloth");
    trl_ = arguments_ != nullptr && !arguments_->is("TrainingArguments") &&
           !contains(arguments_->name, "TrainingArguments");
    if (lora_ == nullptr && trainer_ != nullptr) {
      if (const PyObject* config = at(trainer_->find("peft_config"));
          config != nullptr && !config->is("get_peft_config"))
        lora_ = config;
    }
    if (trainer_ != nullptr && trainer_->find("peft_config") != nullptr &&
        at(trainer_->find("peft_config")) != nullptr && at(trainer_->find("peft_config"))->is("LoraConfig"))
      lora_ = at(trainer_->find("peft_config"));
    find_model_config();
    find_load();
    // unsloth 2026.8.19 models/vision.py: get_peft_model hands such a model back as it is.
    if (tunes_fully()) lora_ = nullptr;
  }

  /// unsloth 2026.10.9 models/loader.py: from_pretrained: full_finetuning puts out load_in_4bit, which is its default,
  /// and load_in_8bit.
  bool tunes_fully() const { return unsloth_ && load_ != nullptr && is_true(load_->find("full_finetuning")); }

  /// unsloth 2026.10.9 models/_utils.py: torchao's linear layers with fake quantisation, which keep a quantised copy.
  void read_fake_quantisation() {
    if (!unsloth_) return;
    for (const PyObject* one : {load_, lora_}) {
      const PyValue* scheme = one == nullptr ? nullptr : one->find("qat_scheme");
      if (scheme != nullptr && scheme->is_string())
        not_counted(reading_, "quantisation-aware training (qat_scheme)", scheme->places);
    }
  }

  /// peft_config=get_peft_config(model_args) of a TRL ModelConfig that the file fills in.
  void find_model_config() {
    const PyObject* made = trainer_ == nullptr ? nullptr : at(trainer_->find("peft_config"));
    if (made == nullptr || !made->is("get_peft_config") || made->positional.empty()) return;
    const PyObject* config = at(&made->positional[0]);
    if (config == nullptr || config->from_command) return;
    if (is_true(config->find("use_peft"))) lora_ = config;
  }

  /// unsloth 2026.10.9 __init__.py: FastLanguageModel, FastVisionModel, FastModel and others.
  static bool is_fast_adapter(const PyObject& one) { return one.is("get_peft_model") && contains(one.name, "Fast"); }

  /// unsloth 2026.10.9 models/sentence_transformer.py: 16 bits, nothing checkpointed and an encoder's modules unless
  /// they are told.
  static bool is_fast_encoder(const PyObject& one) { return contains(one.name, "FastSentenceTransformer"); }

  static bool loads_model(const PyObject& one) {
    const std::string& name = one.name;
    if (contains(name, "Tokenizer") || contains(name, "Processor") || contains(name, "AutoConfig") ||
        contains(name, "FeatureExtractor") || contains(name, "Scheduler") || contains(name, "PeftModel") ||
        contains(name, "AutoPeft"))
      return false;
    return one.is("from_pretrained") || one.is("SentenceTransformer") || one.is("CrossEncoder") ||
           one.is("SparseEncoder") || one.is("timm.create_model") || one.is("create_model") ||
           one.is("AutoModelForCausalLM.from_config") || one.is("get_model");
  }

  /// Follows wrappers, from what the trainer is given down to what is loaded.
  const PyObject* loaded(const PyValue* value, int depth = 0) const {
    const PyObject* one = at(value);
    if (one == nullptr || depth > 8) return nullptr;
    if (loads_model(*one)) return one;
    for (const char* wrapper : {"get_peft_model", "prepare_model_for_kbit_training", "prepare_model_for_int8_training",
                                "PeftModel.from_pretrained", "DataParallel", "DistributedDataParallel", "torch.compile",
                                "prepare", "FSDP", "apply_chat_template"}) {
      if (!one->is(wrapper) && one->name != std::string{"."} + wrapper) continue;
      const PyValue* inner = !one->positional.empty() ? &one->positional[0] : one->find("model");
      return loaded(inner, depth + 1);
    }
    return nullptr;
  }

  void find_load() {
    if (trainer_ != nullptr) {
      const PyValue* model = trainer_->find("model");
      if (model == nullptr && !trainer_->positional.empty()) model = &trainer_->positional[0];
      load_ = loaded(model);
      if (model != nullptr && model->is_string()) named_ = model;
    }
    if (load_ != nullptr || named_ != nullptr) return;
    for (const PyObject& one : program_.objects) {
      if (!loads_model(one) || contains(one.name, "AutoencoderKL") || contains(one.name, "TextEncoder") ||
          contains(one.name, "CLIPText"))
        continue;
      if (load_ == nullptr) load_ = &one;
    }
  }

  /// Where the model is loaded, the trainer made and its arguments: the places of what a default decides.
  std::vector<Origin> context() const {
    std::vector<Origin> places;
    for (const PyObject* one : {load_, arguments_, trainer_, own_trainer_, accelerator_}) {
      if (one != nullptr) places.push_back(one->place);
    }
    if (const PyValue* start = text_variable("init_from"); start != nullptr)
      places.insert(places.end(), start->places.begin(), start->places.end());
    for (const PyObject& one : program_.objects) {
      if (trainer_ != nullptr || places.size() > 8) break;
      const bool moved = one.name == ".to" || one.name == ".cuda" || one.is("AdamW");
      const bool steps = contains(lower_case(one.name), "optimizer") && one.name != ".zero_grad";
      if (!moved && !steps) continue;
      // What is moved is the model where a call made it.
      if (moved && one.self >= 0) places.push_back(program_.objects[static_cast<std::size_t>(one.self)].place);
      places.push_back(one.place);
    }
    return places;
  }

  // ---------------------------------------------------------------- task, model, method
  void read_task() {
    std::string task{trainer_task_.empty() && !task_hint_.empty() ? std::string_view{task_hint_} : trainer_task_};
    std::vector<Origin> places;
    if (trainer_ != nullptr) places.push_back(trainer_->place);
    if (task.empty() && arguments_ != nullptr) {
      for (const Trainer& row : kTrainers) {
        const std::string config = std::string{row.name.substr(0, row.name.size() - 7)} + "Config";
        if (!row.task.empty() && row.name.size() > 10 && arguments_->is(config)) task = row.task;
      }
    }
    const std::string load = load_ == nullptr ? std::string{} : load_->name;
    const std::string file = lower_case(base_name(reading_.file));
    std::string why;
    const bool pictures = contains(text_, "images") || contains(text_, "\"image\"");
    const bool sees = contains(load, "Vision") || (pictures && contains(load, "ImageTextToText"));
    if (task == "sft" && (sees || contains(text_, "FastVisionModel.get_peft_model"))) task = "vlm";
    const bool sft = task == "sft";

    if (task.empty() || task == "sft") {
      for (const auto& [word, kind] : {std::pair{"SequenceClassification", "classification"},
                                       {"TokenClassification", "token_classification"},
                                       {"QuestionAnswering", "question_answering"},
                                       {"Whisper", "asr"},
                                       {"SpeechSeq2Seq", "asr"},
                                       {"ForCTC", "asr"},
                                       {"ImageTextToText", "vlm"},
                                       {"Vision2Seq", "vlm"},
                                       {"VLForConditional", "vlm"},
                                       {"Seq2SeqLM", "seq2seq"},
                                       {"ImageClassification", "vision"},
                                       {"CrossEncoder", "classification"},
                                       {"SentenceTransformer", "embedding"}}) {
        if (contains(load, word) && !(sft && contains(load, "ImageTextToText"))) task = kind;
      }
    }
    if (task.empty()) {
      why = "what the program loads and its name";
      if (imports("diffusers"))
        task = "diffusion";
      else if (imports("timm"))
        task = "vision";
      else if (trainer_ == nullptr && contains(file, "dpo"))
        task = "dpo";
      else if (trainer_ == nullptr && ((contains(text_, "pixel_values") && contains(text_, "processor")) ||
                                       contains(text_, "AutoProcessor.from_pretrained")))
        task = "vlm";
      else if (load_ != nullptr || named_ != nullptr || trainer_ != nullptr || contains(file, "sft") ||
               contains(file, "finetun"))
        task = "sft";
      else
        task = "pretrain";
    }
    task_ = task;
    say("task", of(task), std::move(places), std::move(why));
    if (unsloth_) {
      say("framework.name", of("unsloth"), load_ == nullptr ? std::vector<Origin>{} : std::vector<Origin>{load_->place},
          load_ == nullptr ? "it imports unsloth" : "");
    }
  }

  void read_model() {
    const PyValue* name = named_;
    if (name == nullptr && load_ != nullptr) {
      for (const char* key :
           {"pretrained_model_name_or_path", "model_name", "model_name_or_path", "model_id", "model_path"}) {
        if (name == nullptr) name = load_->find(key);
      }
      if (name == nullptr && !load_->positional.empty()) name = &load_->positional[0];
    }
    if (name == nullptr && arguments_ != nullptr && arguments_->name == "written.TrainingArguments") {
      for (const char* key : {"model_id", "model_name_or_path", "model_name", "base_model"}) {
        if (name == nullptr) name = arguments_->find(key);
      }
    }
    if (name == nullptr && trainer_ != nullptr && trainer_name_ == "SentenceTransformersFinetuneEngine")
      name = trainer_->find("model_id");
    if (name == nullptr && read_own_gpt()) return;
    if (name == nullptr) return unknown("model");
    if (!name->is_string() || name->text.empty()) return unknown("model: not in the file");
    say_model(*name);
    if (load_ != nullptr && (load_->is("timm.create_model") ||
                             (load_->is("create_model") && imports("timm") && !contains(name->text, "/"))))
      say("model", of("timm/" + name->text), *name);
    read_architecture(name->text);
  }

  void read_attention() {
    if (load_ == nullptr) return;
    if (const PyValue* attention = load_->find("attn_implementation"); attention != nullptr && attention->is_string())
      say("attention", *attention);
    const PyValue* flash = load_->find("use_flash_attention_2");
    if (flash != nullptr && flash->boolean) say("attention", of("flash_attention_2"), *flash);
  }

  /// minGPT's models by name (mingpt/model.py: GPT.__init__), and what its trainer takes where nothing is set
  /// (mingpt/trainer.py: get_default_config; AdamW by GPT.configure_optimizers).
  bool read_mingpt() {
    struct Shape {
      std::string_view name;
      int layers, heads, width;
    };
    constexpr Shape kShapes[] = {{"openai-gpt", 12, 12, 768},  {"gpt2", 12, 12, 768},     {"gpt2-medium", 24, 16, 1024},
                                 {"gpt2-large", 36, 20, 1280}, {"gpt2-xl", 48, 25, 1600}, {"gopher-44m", 8, 16, 512},
                                 {"gpt-mini", 6, 6, 192},      {"gpt-micro", 4, 4, 128},  {"gpt-nano", 3, 3, 48}};
    if (!imports("mingpt")) return false;
    for (const PyObject& one : program_.objects) {
      if (one.is("Trainer.get_default_config")) {
        const PyValue* batch = one.find("batch_size");
        if (batch != nullptr)
          say("micro_batch_size", *batch);
        else
          say("micro_batch_size", of(64), {one.place}, "default of mingpt.trainer");
      }
      if (one.is("mingpt.trainer.Trainer"))
        say("optimizer", of("adamw_torch"), {one.place}, "as minGPT's configure_optimizers makes it");
      const PyValue* type = one.is("GPT.get_default_config") ? one.find("model_type") : nullptr;
      for (const Shape& shape : kShapes) {
        if (type == nullptr || type->text != shape.name) continue;
        say("config",
            object({{"model_type", of("gpt2")},
                    {"n_layer", of(shape.layers)},
                    {"n_head", of(shape.heads)},
                    {"n_embd", of(shape.width)}}),
            type->places, "minGPT's '" + type->text + "'");
      }
    }
    return told("config");
  }

  /// nanoGPT and those made after it: GPT-2's shape by keywords or by a dictionary, under either's names.
  bool read_own_gpt() {
    if (read_mingpt()) return true;
    if (const PyValue* start = text_variable("init_from"); start != nullptr && start->text.rfind("gpt2", 0) == 0) {
      say_model(*start);
      return true;
    }
    constexpr std::pair<std::string_view, std::string_view> kKeys[] = {{"n_embd", "n_embd"},
                                                                       {"emb_dim", "n_embd"},
                                                                       {"n_layer", "n_layer"},
                                                                       {"n_layers", "n_layer"},
                                                                       {"n_head", "n_head"},
                                                                       {"n_heads", "n_head"},
                                                                       {"vocab_size", "vocab_size"},
                                                                       {"block_size", "n_positions"},
                                                                       {"context_length", "n_positions"},
                                                                       {"bias", "bias"}};
    for (const PyObject& one : program_.objects) {
      if (!contains(one.name, "GPT")) continue;
      const PyValue* shape =
          !one.positional.empty() && one.positional[0].kind == Kind::kDict ? &one.positional[0] : nullptr;
      Value config = object({{"model_type", of("gpt2")}});
      std::vector<Origin> places{one.place};
      for (const auto& [theirs, ours] : kKeys) {
        const PyValue* value = shape == nullptr ? one.find(theirs) : shape->find(theirs);
        if (value == nullptr || !(value->is_number() || value->kind == Kind::kBool)) continue;
        set(config, ours, to_value(*value));
        places.insert(places.end(), value->places.begin(), value->places.end());
      }
      if (config.find("n_embd") == nullptr || config.find("n_layer") == nullptr) continue;
      say("config", std::move(config), std::move(places));
      return true;
    }
    return false;
  }
  const PyValue* text_variable(std::string_view name) const {
    for (auto one = program_.assignments.rbegin(); one != program_.assignments.rend(); ++one) {
      if (one->name == name && one->value.is_string()) return &one->value;
    }
    return nullptr;
  }

  /// The class that an AutoModel picks, where the name tells the family.
  void read_architecture(const std::string& name) {
    if (load_ == nullptr) return;
    std::string head;
    for (const char* kind :
         {"ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMaskedLM"}) {
      if (contains(load_->name, kind)) head = kind;
    }
    if (load_->is("CrossEncoder")) head = "ForSequenceClassification";
    if (load_->is("SparseEncoder")) head = "ForMaskedLM";
    const std::string small = lower_case(name);
    for (const auto& [word, family] : {std::pair{"distilroberta", "Roberta"},
                                       {"xlm-roberta", "XLMRoberta"},
                                       {"roberta", "Roberta"},
                                       {"distilbert", "DistilBert"},
                                       {"deberta", "DebertaV2"},
                                       {"modernbert", "ModernBert"},
                                       {"albert", "Albert"},
                                       {"bert", "Bert"}}) {
      if (head.empty() || !contains(small, word)) continue;
      return say("architecture", of(family + head), {load_->place}, "the class that the head and the name make");
    }
  }

  void say_model(const PyValue& name) {
    std::string text = name.text;
    while (text.size() > 1 && text.back() == '/') text.pop_back();
    const std::string head = lower_case(text.substr(0, text.find('/')));
    for (const char* folder : {"output", "outputs", "results", "checkpoints", "checkpoint", "models", "model", "saved",
                               "runs", "out", "saved_models"}) {
      if (head == folder && contains(text, "/")) return unknown("model: " + text + " is a local folder");
    }
    const bool local = text[0] == '/' || text[0] == '.' || text[0] == '~' || contains(text, ":\\");
    if (!local && std::count(text.begin(), text.end(), '/') <= 1) return say("model", of(text), name);
    const std::string last{base_name(text)};
    const std::string small = lower_case(last);
    bool speaks = std::any_of(last.begin(), last.end(), [](char letter) { return letter >= '0' && letter <= '9'; });
    for (const char* family :
         {"llama", "mistral", "qwen", "gemma", "phi", "gpt", "bert", "falcon", "opt", "baichuan", "glm"}) {
      speaks |= contains(small, family);
    }
    if (!speaks || contains(last, "checkpoint")) return unknown("model: " + text + " is a local folder");
    say("model", of(last), name.places, "the last component of a local path");
  }

  const PyValue* load_option(std::string_view key) const {
    const PyValue* value = load_ == nullptr ? nullptr : load_->find(key);
    if (value != nullptr && value->is_known()) return value;
    const PyValue* kwargs = arguments_ == nullptr ? nullptr : arguments_->find("model_init_kwargs");
    return kwargs == nullptr ? nullptr : kwargs->find(key);
  }

  /// transformers' configurations of GPTQ, AWQ and HQQ; what they leave out is the same here.
  void read_packed(const PyObject& config) {
    quantised_ = true;
    quantised_by_.places = {config.place};
    const char* type = config.is("HqqConfig") ? "hqq" : config.is("AwqConfig") ? "awq" : "gptq";
    say("quantization.quant_type", of(type), {config.place});
    constexpr const char* kWords[][2] = {
        {"bits", "bits"}, {"nbits", "bits"}, {"group_size", "group_size"}, {"desc_act", "desc_act"}};
    for (const auto& [word, field] : kWords) {
      const PyValue* value = config.find(word);
      if (value != nullptr) say(std::string{"quantization."} + field, *value);
    }
    if (prepared_ != nullptr) say("quantization.prepare_kbit", of(true), {prepared_->place});
  }

  void read_quantization() {
    read_fake_quantisation();
    if (tunes_fully()) return;
    const PyValue* config = load_option("quantization_config");
    const bool refused = config != nullptr && config->kind == Kind::kNone;
    const PyObject* bits = at(config) != nullptr ? at(config) : refused ? nullptr : bits_;
    if (mx_ != nullptr) {
      // transformers 5.12 quantizers/quantizer_mxfp4.py: experts are unpacked as they are loaded, and nothing stays
      // packed.
      if (!is_true(mx_->find("dequantize"))) say("quantization.quant_type", of("mxfp4"), {mx_->place});
      return;
    }
    if (packed_ != nullptr) return read_packed(*packed_);
    const PyValue* four = nullptr;
    const PyValue* eight = nullptr;
    if (bits != nullptr && bits->is("BitsAndBytesConfig")) {
      four = bits->find("load_in_4bit");
      eight = bits->find("load_in_8bit");
    } else {
      bits = nullptr;
      four = load_option("load_in_4bit");
      eight = load_option("load_in_8bit");
    }
    const bool unsloth_default = unsloth_ && load_ != nullptr && contains(load_->name, "Fast") &&
                                 !is_fast_encoder(*load_) && four == nullptr && !is_true(eight);
    if (!is_true(four) && !is_true(eight) && !unsloth_default) return;
    refuse_both_widths(reading_, is_true(four) && four->why.empty(), is_true(eight) && eight->why.empty());
    quantised_ = true;
    PyValue by = is_true(four) ? *four : is_true(eight) ? *eight : PyValue{};
    if (bits != nullptr) by.places.push_back(bits->place);
    if ((bits != nullptr && bits->unsure) || (load_ != nullptr && bits == nullptr && load_->unsure))
      by.why = "a test at run time decides";
    if (unsloth_default) by.places.push_back(load_->place);
    const bool is_four = is_true(four) || unsloth_default;
    quantised_by_ = by;
    say("quantization.bits", of(is_four ? 4 : 8), by);
    const char* why = unsloth_ ? "Unsloth loads nf4 with double quantisation" : "bitsandbytes' default";
    const PyValue* type = bits == nullptr ? nullptr : bits->find("bnb_4bit_quant_type");
    const PyValue* nested = bits == nullptr ? nullptr : bits->find("bnb_4bit_use_double_quant");
    if (!is_four)
      say("quantization.quant_type", of("int8"), by);
    else if (type != nullptr && type->is_string())
      say("quantization.quant_type", *type);
    else
      say("quantization.quant_type", of(unsloth_ ? "nf4" : "fp4"), by.places, why);
    if (is_four && nested != nullptr && nested->kind == Kind::kBool)
      say("quantization.double_quant", *nested);
    else if (is_four)
      say("quantization.double_quant", of(unsloth_), by.places, why);
    const bool trl_prepares = trainer_ != nullptr && trainer_task_ != "" && trainer_->find("peft_config") != nullptr;
    if (prepared_ != nullptr)
      say("quantization.prepare_kbit", of(true), {prepared_->place});
    else if (trl_prepares)
      unknown("quantization.prepare_kbit: TRL calls it up to 0.23, not since 0.26");
    else if (!unsloth_)
      say("quantization.prepare_kbit", of(false), by.places, "prepare_model_for_kbit_training is not called");
  }

  void read_method() {
    if (const PyValue* program = arguments_ == nullptr ? nullptr : arguments_->find("program");
        program != nullptr && lora_ == nullptr) {
      const std::string name = lower_case(program->text);
      if (contains(name, "lora")) {
        quantised_ = contains(name, "qlora");
        return say("method", of(quantised_ ? "qlora" : "lora"), program->places,
                   "the name of the program that is started");
      }
    }
    const PyObject* adapter_folder = nullptr;
    for (const PyObject& one : program_.objects) {
      if ((one.is("PeftModel.from_pretrained") && one.find("is_trainable") != nullptr) ||
          one.is("AutoPeftModelForCausalLM.from_pretrained"))
        adapter_folder = &one;
    }
    const bool template_peft = lora_ == nullptr && trainer_ != nullptr && at(trainer_->find("peft_config")) != nullptr;
    if (lora_ != nullptr) {
      std::vector<Origin> places{lora_->place};
      places.insert(places.end(), quantised_by_.places.begin(), quantised_by_.places.end());
      say("method", of(quantised_ ? "qlora" : "lora"), std::move(places),
          !quantised_by_.why.empty() ? quantised_by_.why
          : lora_->unsure            ? "a test at run time decides"
                                     : "");
      read_frozen();
      return read_adapter();
    }
    if (adapter_folder != nullptr) {
      say("method", of(quantised_ ? "qlora" : "lora"), {adapter_folder->place});
      return unknown("adapter.*: a PEFT folder read at run time");
    }
    const bool speaks_of_peft = contains(text_, "peft") || contains(text_, "lora");
    if (template_peft || (trainer_ != nullptr && is_command() && speaks_of_peft))
      return unknown("method: the command line");
    if (quantised_ && unsloth_) return say("method", of("qlora"), quantised_by_.places);
    if (quantised_ && quantised_by_.why.empty() && !unsloth_ && bits_of_model())
      refuse_packed_alone(reading_, told("quantization.bits") ? "load_in_4bit or load_in_8bit" : "quantization_config");
    if (read_frozen()) return;
    say("method", of("full"), context(), "no adapter");
  }

  /// Whether bitsandbytes packs what is trained: other kinds may be trained as they are.
  bool bits_of_model() const { return packed_ == nullptr && load_ != nullptr && trainer_ != nullptr; }

  /// The parameters that the program's own lines freeze. Whether there are any.
  bool read_frozen() {
    if (load_ == nullptr || imports("diffusers")) return false;
    const bool adapts = told("method");
    const Frozen frozen = frozen_by(
        program_.freezing,
        [&](int root) {
          const PyObject* one = &program_.objects[static_cast<std::size_t>(root)];
          if (adapts) return one->is("get_peft_model");
          PyValue value;
          value.kind = Kind::kObject;
          value.index = root;
          return loaded(&value) == load_;
        },
        adapts);
    if (frozen.what == Frozen::What::kNothing) return false;
    if (!adapts) say("method", of("freeze"), frozen.places, "requires_grad is set by name");
    if (frozen.what == Frozen::What::kUnread) {
      unknown("freeze: lines set requires_grad, and which parameters they leave trained is not read");
      return true;
    }
    const auto list = [&](const char* path, const std::vector<std::string>& patterns) {
      std::vector<Value> all;
      for (const std::string& one : patterns) all.push_back(of(one));
      if (!all.empty()) say(path, of(std::move(all)), frozen.places);
    };
    list("freeze", frozen.freeze);
    list("trainable", frozen.trainable);
    return true;
  }

  /// Its arguments come from a command line that is not known.
  bool is_command() const { return arguments_ != nullptr && arguments_->from_command; }
  /// And nothing of the job stands in the file.
  bool is_template() const { return is_command() && !told("model"); }

  void adapter_field(const char* path, std::initializer_list<std::string_view> keys, Value standard, const char* why) {
    for (std::string_view key : keys) {
      const PyValue* value = lora_->find(key);
      if (value == nullptr) continue;
      if (value->is_known() && value->kind != Kind::kNone) return say(path, *value);
      return unknown(std::string{path} + ": not in the file");
    }
    if (!standard.is_null()) say(path, std::move(standard), {lora_->place}, why);
  }

  void read_adapter() {
    const bool fast = contains(lora_->name, "Fast");
    const bool trl = lora_->is("ModelConfig");
    const std::string_view kind = kind_of(*lora_);
    if (!kind.empty()) return read_other_adapter(kind);
    const char* why = fast  ? "Unsloth's default"
                      : trl ? "TRL ModelConfig's default"
                            : "LoraConfig's default (tuners/lora/config.py)";
    adapter_field("adapter.r", {"r", "init_r", "lora_r"}, of(fast || trl ? 16 : 8), why);
    adapter_field("adapter.lora_alpha", {"lora_alpha"}, of(trl ? 32 : fast ? 16 : 8), why);
    adapter_field("adapter.lora_dropout", {"lora_dropout"}, of(trl ? 0.05 : 0.0), why);
    const PyValue* modules = lora_->find(trl ? "lora_target_modules" : "target_modules");
    const bool named = names_modules(modules);
    if (fast && (contains(lora_->name, "Vision") || contains(lora_->name, "FastModel"))) {
      read_unsloth_parts(named ? modules : nullptr);
    } else if (named) {
      say("adapter.target_modules", *modules);
    } else if (is_fast_encoder(*lora_)) {
      say("adapter.target_modules", words({"query", "key", "value", "dense"}), {lora_->place}, "Unsloth's default");
    } else if (fast) {
      say("adapter.target_modules",
          words({"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}), {lora_->place},
          "Unsloth's default");
    } else if (modules == nullptr || modules->kind == Kind::kNone) {
      say_mapping();
    } else if (contains(text_, "find_all_linear")) {
      say("adapter.target_modules", of("all-linear"), modules->places, "a function collects all linear layers");
    } else {
      unknown("adapter.target_modules: computed at run time");
    }
    const PyValue* saved = lora_->find("modules_to_save");
    if (saved != nullptr && saved->kind == Kind::kList && !saved->items.empty()) say("adapter.modules_to_save", *saved);
    for (const char* name : {"rank_pattern", "alpha_pattern", "layers_to_transform", "layers_pattern",
                             "target_parameters", "trainable_token_indices", "exclude_modules", "bias"}) {
      const PyValue* value = lora_->find(name);
      const bool says = value != nullptr && (value->is_number() || !value->items.empty() || !value->text.empty());
      if (says && value->is_known() && value->text != "none") say(std::string{"adapter."} + name, *value);
    }
    for (const char* name : {"use_dora", "use_rslora"}) {
      const PyValue* value = lora_->find(name);
      if (is_true(value)) say(std::string{"adapter."} + name, *value);
    }
  }

  /// FastModel's and FastVisionModel's choice of parts, with or without names of modules.
  void read_unsloth_parts(const PyValue* modules) {
    UnslothParts parts;
    std::vector<Origin> places;
    const auto flag = [&](const char* name, bool& part) {
      const PyValue* value = lora_->find(name);
      if (value == nullptr || value->kind != Kind::kBool) return;
      part = value->boolean;
      places.insert(places.end(), value->places.begin(), value->places.end());
    };
    flag("finetune_vision_layers", parts.vision);
    flag("finetune_language_layers", parts.language);
    flag("finetune_attention_modules", parts.attention);
    flag("finetune_mlp_modules", parts.mlp);
    if (places.empty()) places.push_back(lora_->place);
    if (modules != nullptr && modules->is_string() && modules->text == "all-linear") {
      parts = {};
      modules = nullptr;
    }
    if (modules != nullptr && (modules->kind != Kind::kList || parts == UnslothParts{}))
      return say("adapter.target_modules", *modules);
    for (std::size_t i = 0; modules != nullptr && i < modules->items.size(); ++i) {
      parts.names.push_back(modules->items[i].text);
    }
    if (modules != nullptr) places.insert(places.begin(), modules->places.begin(), modules->places.end());
    say("adapter.target_modules", of(unsloth_targets(parts)), std::move(places),
        "Unsloth makes an expression of the parts that it is to tune (unsloth_zoo peft_utils.py: get_peft_regex)");
  }

  /// A configuration beside LoraConfig: what it says; its defaults are the request's.
  void read_other_adapter(std::string_view kind) {
    say("adapter.kind", of(kind), {lora_->place});
    if (kind != "adalora") adapter_field("adapter.r", {"r"}, {}, "");
    adapter_field("adapter.lora_dropout", {"lora_dropout", "vera_dropout"}, {}, "");
    for (const std::string_view word : adapter_words()) {
      adapter_field(("adapter." + std::string{word}).c_str(), {word}, {}, "");
    }
    if (kind == "prompt_tuning" || kind == "p_tuning" || kind == "prefix_tuning") return;
    const PyValue* modules = lora_->find("target_modules");
    if (names_modules(modules)) {
      say("adapter.target_modules", *modules);
    } else {
      say("adapter.target_modules", of("auto"), {lora_->place}, "PEFT's mapping for the model type");
    }
    const PyValue* saved = lora_->find("modules_to_save");
    if (saved != nullptr && saved->kind == Kind::kList && !saved->items.empty()) say("adapter.modules_to_save", *saved);
  }

  /// PEFT's choice where no modules are named (utils/constants.py: TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING).
  void say_mapping() {
    const Finding* model = find(reading_, "model");
    const std::string name = model == nullptr ? std::string{} : lower_case(model->value.string);
    const char* why = "PEFT's mapping for the model type (utils/constants.py)";
    for (const char* word :
         {"llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen", "gemma", "opt", "vicuna", "smollm"}) {
      if (contains(name, word)) return say("adapter.target_modules", words({"q_proj", "v_proj"}), {lora_->place}, why);
    }
    if (contains(name, "gpt2")) return say("adapter.target_modules", words({"c_attn"}), {lora_->place}, why);
    if (contains(name, "pythia") || contains(name, "falcon") || contains(name, "bloom") || contains(name, "neox"))
      return say("adapter.target_modules", words({"query_key_value"}), {lora_->place}, why);
    if (contains(name, "bert")) return say("adapter.target_modules", words({"query", "value"}), {lora_->place}, why);
    if (contains(name, "t5")) return say("adapter.target_modules", words({"q", "v"}), {lora_->place}, why);
    say("adapter.target_modules", of("auto"), {lora_->place}, why);
  }

  // ---------------------------------------------------------------- arguments
  void copy(const char* path, std::initializer_list<std::string_view> keys) {
    if (const PyValue* value = any_argument(keys);
        value != nullptr && (value->is_number() || value->kind == Kind::kBool))
      say(path, *value);
  }

  void read_arguments() {
    copy("micro_batch_size", {"per_device_train_batch_size", "per_gpu_train_batch_size"});
    if (!told("micro_batch_size")) read_own_batch();
    if (!told("micro_batch_size") && arguments_ != nullptr && !is_template() &&
        arguments_->find("per_device_train_batch_size") == nullptr && !auto_batch()) {
      say("micro_batch_size", of(8), {arguments_->place, arguments_->defined},
          is_command() ? "TrainingArguments default; the command may say otherwise" : "TrainingArguments default");
    }
    copy("gradient_accumulation_steps", {"gradient_accumulation_steps"});
    if (!told("gradient_accumulation_steps") && accelerator_ != nullptr) {
      const PyValue* value = accelerator_->find("gradient_accumulation_steps");
      if (value != nullptr && value->is_number()) say("gradient_accumulation_steps", *value);
    }
    if (!told("gradient_accumulation_steps")) {
      if (const PyValue* value = variable(
              {"gradient_accumulation_steps", "grad_accum_steps", "accumulation_steps", "gradient_accumulation"});
          value != nullptr && arguments_ == nullptr)
        say("gradient_accumulation_steps", *value);
    }
    if (!told("gradient_accumulation_steps") && arguments_ != nullptr && !is_command())
      say("gradient_accumulation_steps", of(1), {}, "default 1");
    copy("max_grad_norm", {"max_grad_norm"});
    copy("neftune_noise_alpha", {"neftune_noise_alpha"});
    copy("label_smoothing_factor", {"label_smoothing_factor"});
    if (!told("max_grad_norm")) {
      for (const PyObject& one : program_.objects) {
        if (!one.is("clip_grad_norm_") && one.name != ".clip_grad_norm_") continue;
        const PyValue* norm = one.positional.size() > 1 ? &one.positional[1] : one.find("max_norm");
        if (norm != nullptr && norm->is_number()) say("max_grad_norm", *norm);
      }
    }
    read_optimizer();
    if (const PyValue* packing = argument("packing"); packing != nullptr && packing->kind == Kind::kBool)
      say("packing", *packing);
    for (const char* word : {"padding_free", "activation_offloading"}) {
      const PyValue* value = argument(word);
      if (trl_ && is_true(value)) say(word, *value);
    }
    read_loss();
    if (on("torch_compile"))
      say("compile", of("full"), *argument("torch_compile"));
    else if (const std::vector<const PyObject*> compiled = program_.calls("torch.compile"); !compiled.empty())
      say("compile", of("full"), with_switch(compiled[0]->place, {"compile", "use_compile", "torch_compile"}));
    read_sharding();
    read_evaluation();
  }

  /// trl 1.9 trainer/sft_config.py: __post_init__. max_seq_length is a word of releases before 0.20.
  void read_loss() {
    if (on("use_liger_kernel") || on("use_liger"))
      return say("loss", of("liger"), *any_argument({"use_liger_kernel", "use_liger"}));
    const PyValue* kind = argument("loss_type");
    if (task_ == "dpo" && names_sft(kind)) not_counted(reading_, kChosenCrossEntropy, kind->places);
    if (!trl_ || unsloth_ || task_ != "sft") return;
    if (kind != nullptr && (kind->text == "chunked_nll" || kind->text == "nll"))
      return say("loss", of(kind->text == "nll" ? "default" : "chunked"), *kind);
    if (kind != nullptr || is_command() || argument("max_seq_length") != nullptr) return;
    say("loss", of("chunked"), {arguments_->place}, "chunked_nll is SFTConfig's default since trl 1.7, nll before");
  }

  /// A place, and that of a variable which switches on what stands there.
  std::vector<Origin> with_switch(const Origin& place, std::initializer_list<std::string_view> names) const {
    std::vector<Origin> places{place};
    for (const PyAssignment& one : program_.assignments) {
      if (one.value.kind != Kind::kBool || std::find(names.begin(), names.end(), one.name) == names.end()) continue;
      places.insert(places.end(), one.value.places.begin(), one.value.places.end());
    }
    return places;
  }

  bool auto_batch() const { return on("auto_find_batch_size"); }

  void read_own_batch() {
    if (arguments_ != nullptr || told("micro_batch_size")) return;
    const PyValue* best = nullptr;
    for (const PyObject& one : program_.objects) {
      if (!one.is("DataLoader") && trainer_name_ != "SentenceTransformersFinetuneEngine") continue;
      const PyValue* size = one.find("batch_size");
      if (size == nullptr && one.is("DataLoader") && one.positional.size() > 1) size = &one.positional[1];
      if (size == nullptr || !size->is_number()) continue;
      const PyValue* shuffled = one.find("shuffle");
      if (best == nullptr || (shuffled != nullptr && shuffled->boolean)) best = size;
    }
    if (best != nullptr) return say("micro_batch_size", *best);
    const PyValue* value = any_argument({"train_batch_size", "batch_size"});
    if (value == nullptr)
      value = variable({"micro_batch_size", "per_device_train_batch_size", "train_batch_size", "batch_size"});
    if (value != nullptr && value->is_number()) say("micro_batch_size", *value);
    if (!told("micro_batch_size") && trainer_name_ == "SentenceTransformersFinetuneEngine")
      say("micro_batch_size", of(10), {trainer_->place},
          "llama_index's SentenceTransformersFinetuneEngine default batch_size");
  }

  void read_optimizer() {
    if (told("optimizer")) return;
    const PyValue* optim = argument("optim");
    for (const char* key : {"optim_args", "optim_target_modules"}) {
      const PyValue* setting = argument(key);
      if (setting != nullptr && (setting->is_string() || setting->kind == Kind::kList)) say(key, *setting);
    }
    if (optim != nullptr && (optim->is_string())) return say("optimizer", of(optimizer_word(optim->text)), *optim);
    for (const PyObject& one : program_.objects) {
      const std::string name = one.name.substr(one.name.rfind('.') == std::string::npos ? 0 : one.name.rfind('.') + 1);
      std::string word;
      const bool torch = contains(one.name, "optim") || contains(one.name, "torch") ||
                         contains(one.name, "bitsandbytes") || contains(one.name, "bnb");
      if (!torch && name != "AdamW" && name != "Adam") continue;
      if (name == "AdamW" || name == "Adam") word = "adamw_torch";  // both keep two states
      if (name == "AdamW8bit" || name == "Adam8bit") word = "adamw_8bit";
      if (name == "PagedAdamW8bit") word = "paged_adamw_8bit";
      if (name == "SGD") word = one.find("momentum") == nullptr ? "sgd" : "sgd_momentum";
      if (word.empty()) continue;
      const PyValue* fused = one.find("fused");
      if (is_true(fused) && word == "adamw_torch") word = "adamw_torch_fused";
      std::vector<Origin> places{one.place};
      const PyValue* named = space_ == nullptr ? nullptr : space_->find("optimizer");
      if (named != nullptr) places.insert(places.end(), named->places.begin(), named->places.end());
      say("optimizer", of(word), std::move(places));
      const PyObject* given = one.positional.empty() ? nullptr : at(&one.positional[0]);
      if (given != nullptr && given->name == ".parameters" && !given->part.empty())
        unknown("optimizer: it gets the parameters of " + given->part +
                " alone, and states of all that is trained are counted");
      return;
    }
    // nanoGPT model.py: configure_optimizers: AdamW, fused on CUDA.
    for (const PyObject& one : program_.objects) {
      if (one.name == ".configure_optimizers" || one.is("configure_optimizers"))
        return say("optimizer", of("adamw_torch_fused"), {one.place}, "as nanoGPT's configure_optimizers makes it");
    }
    if (const PyValue* opt = space_ == nullptr || !imports("timm") ? nullptr : space_->find("opt");
        opt != nullptr && opt->is_string()) {
      // timm optim/_optim_factory.py: momentum 0.9 unless told.
      return say("optimizer",
                 of(opt->text == "sgd"     ? "sgd_momentum"
                    : opt->text == "adamw" ? "adamw_torch"
                                           : opt->text),
                 *opt);
    }
    if (arguments_ != nullptr)
      unknown("optimizer: TrainingArguments' default by version (adamw_torch, fused with torch 2.8)");
  }

  void read_sharding() {
    if (arguments_ != nullptr) {
      const PyValue* processes = arguments_->find("nproc_per_node");
      if (processes != nullptr && processes->is_number() && arguments_->name == "written.TrainingArguments")
        say("parallelism.data", *processes);
    }
    const PyValue* deepspeed = argument("deepspeed");
    if (deepspeed != nullptr && deepspeed->is_string() && !deepspeed->text.empty()) {
      if (const int stage = zero_stage_of_name(deepspeed->text); stage >= 0)
        say("parallelism.zero_stage", of(stage), deepspeed->places, "from the file name");
      reading_.companions.push_back(deepspeed->text);
      unknown("the DeepSpeed JSON itself: " + deepspeed->text);
    } else if (deepspeed != nullptr && deepspeed->kind == Kind::kDict) {
      // The Trainer fills in the rest, and refuses what differs from its own arguments.
      for (const Finding& one : said_by_deepspeed(*deepspeed)) {
        if (one.path.starts_with("parallelism.") || one.path.starts_with("offload.") ||
            one.path.starts_with("deepspeed."))
          say(one.path, one.value, deepspeed->places, one.assumed);
      }
    }
    const PyValue* fsdp = argument("fsdp");
    if (fsdp != nullptr && (fsdp->is_string() || fsdp->kind == Kind::kList) &&
        !(fsdp->text.empty() && fsdp->items.empty())) {
      const std::string text = fsdp->is_string() ? fsdp->text : fsdp->items[0].text;
      say("parallelism.fsdp", of(fsdp_strategy(text)), *fsdp);
      if (contains(fsdp->text, "offload")) say("offload.parameters", of("cpu"), *fsdp);
    }
  }

  /// Plugins that an Accelerator is handed, under the keys of accelerate's YAML (accelerate 1.14 utils/dataclasses.py).
  void read_plugins() {
    const PyObject* shards = accelerator_ == nullptr ? nullptr : at(accelerator_->find("fsdp_plugin"));
    const PyObject* zero = accelerator_ == nullptr ? nullptr : at(accelerator_->find("deepspeed_plugin"));
    if (shards == nullptr && zero == nullptr) return;
    Node tree;
    const auto put_value = [&](const std::string& path, const PyValue& value) {
      Node node;
      if (value.kind == Kind::kBool || value.kind == Kind::kInteger) {
        node = node_of(value);
      } else if (value.is_string() || value.kind == Kind::kSymbol) {
        node = text_node(std::string_view{value.text}.substr(value.text.rfind('.') + 1), 0);
      } else {
        return;
      }
      put_node(tree, path, std::move(node));
    };
    put_node(tree, "distributed_type", text_node(shards != nullptr ? "FSDP" : "DEEPSPEED", 0));
    if (const PyValue* mixed = accelerator_->find("mixed_precision"); mixed != nullptr)
      put_value("mixed_precision", *mixed);
    for (const auto& [key, value] : (shards != nullptr ? shards : zero)->fields) {
      if (shards == nullptr && key == "hf_ds_config" && value.is_string()) {
        put_node(tree, "deepspeed_config.deepspeed_config_file", text_node(value.text, 0));
      } else if (shards == nullptr) {
        put_value("deepspeed_config." + key, value);
      } else if (key == "cpu_offload") {
        const PyObject* made = at(&value);  // CPUOffload(offload_params=True)
        const PyValue* offload = made == nullptr ? &value : made->find("offload_params");
        if (offload != nullptr) put_value("fsdp_config.fsdp_offload_params", *offload);
      } else {
        put_value("fsdp_config.fsdp_" + key, value);
      }
    }
    const Origin place = (shards != nullptr ? shards : zero)->place;
    Reading scratch;
    Keys keys(tree, reading_.file, scratch);
    read_accelerate_sharding(keys);
    keys.tell_unread();
    for (const Finding& one : scratch.findings) say(one.path, one.value, {place}, one.assumed);
    for (const Unread& one : scratch.unread) reading_.unread.push_back({one.key, place, one.harmless});
    for (const std::string& one : scratch.unknowns) unknown(one);
    reading_.companions.insert(reading_.companions.end(), scratch.companions.begin(), scratch.companions.end());
  }

  /// What a program divides the model by itself: torch's FullyShardedDataParallel and fully_shard, DeepSpeed's engine.
  void read_wrappers() {
    for (const PyObject& one : program_.objects) {
      const bool first = one.is("FullyShardedDataParallel") && contains(one.name, "fsdp");
      if (first || (one.is("fully_shard") && contains(one.name, "fsdp"))) {
        const PyValue* strategy = one.find("sharding_strategy");
        const std::string word = strategy == nullptr ? std::string{} : lower_case(strategy->text);
        if (contains(word, "no_shard")) continue;
        say("parallelism.fsdp", of(first ? fsdp_strategy(word) : "fsdp2"), {one.place});
      } else if (one.is("deepspeed.initialize")) {
        const PyValue* config = one.find("config") != nullptr ? one.find("config") : one.find("config_params");
        if (config != nullptr && config->is_string()) {
          reading_.companions.push_back(config->text);
          unknown("the DeepSpeed JSON itself: " + config->text);
        } else if (config != nullptr && config->kind == Kind::kDict) {
          for (const Finding& finding : said_by_deepspeed(*config)) {
            if (!told(finding.path)) say(finding.path, finding.value, config->places, finding.assumed);
          }
        } else if (!told("parallelism.zero_stage")) {
          unknown("parallelism.zero_stage: deepspeed.initialize takes a configuration that is not read");
        }
      }
    }
  }

  /// Lightning's Trainer and Fabric (lightning 2.5 fabric/plugins/precision/precision.py, pytorch/strategies/fsdp.py,
  /// pytorch/strategies/deepspeed.py).
  void read_lightning() {
    if (lightning_ == nullptr) return;
    const PyObject& one = *lightning_;
    const auto count = [&](const char* key) -> std::int64_t {
      const PyValue* value = one.find(key);
      if (value == nullptr) return 1;
      if (value->kind == Kind::kList) return static_cast<std::int64_t>(value->items.size());
      return value->kind == Kind::kInteger && value->integer > 0 ? value->integer : 0;
    };
    const PyValue* devices = one.find("devices");
    const std::int64_t gpus = devices == nullptr ? 0 : count("devices") * count("num_nodes");
    if (gpus > 0)
      say("parallelism.data", of(gpus), {one.place});
    else
      unknown("parallelism.data: Lightning takes all GPUs in sight");
    if (const PyValue* steps = one.find("accumulate_grad_batches"); steps != nullptr && steps->is_number())
      say("gradient_accumulation_steps", *steps);
    if (const PyValue* norm = one.find("gradient_clip_val"); norm != nullptr && norm->is_number())
      say("max_grad_norm", *norm);
    const bool zero = read_lightning_strategy();
    const PyValue* said = one.find("precision");
    std::string word = said == nullptr                ? "32"
                       : said->kind == Kind::kInteger ? std::to_string(said->integer)
                                                      : said->text;
    if (word == "bf16" || word == "16") word += "-mixed";
    const char* cast = word.starts_with("bf16") ? "bf16" : word.starts_with("16") ? "fp16" : "";
    if (std::string_view{cast}.empty() && !word.starts_with("32")) return unknown("precision: Lightning's " + word);
    if (zero && !std::string_view{cast}.empty())
      return say("precision", of(std::string{"deepspeed_"} + cast), {one.place});
    if (word.ends_with("-true")) return say("precision", of(std::string{"pure_"} + cast), {one.place});
    PyValue by;
    const std::string weights = weights_dtype(by);
    by.places.push_back(one.place);
    say("precision", precision_of(weights.empty() || weights == "auto" ? "fp32" : weights, cast), by.places,
        weights.empty() ? no_dtype() : std::string{});
  }

  static Node node_of(const PyValue& value) {
    Node node;
    if (value.kind == Kind::kBool) {
      node.kind = Node::Kind::kBool;
      node.boolean = value.boolean;
    } else if (value.kind == Kind::kInteger) {
      node = plain_scalar(std::to_string(value.integer));
    } else if (value.kind == Kind::kReal) {
      node.kind = Node::Kind::kReal;
      node.real = value.real;
    } else if (value.is_string()) {
      node = text_node(value.text, 0);
    } else if (value.kind == Kind::kDict || value.kind == Kind::kList) {
      node.kind = value.kind == Kind::kDict ? Node::Kind::kObject : Node::Kind::kArray;
      node.keys = value.keys;
      for (const PyValue& item : value.items) node.items.push_back(node_of(item));
    }
    return node;
  }

  /// What a dictionary of DeepSpeed's keys says, and no default.
  std::vector<Finding> said_by_deepspeed(const PyValue& dictionary) {
    const Node tree = node_of(dictionary);
    Reading scratch;
    Keys keys(tree, reading_.file, scratch);
    read_deepspeed_keys(keys);
    keys.tell_unread();
    for (const Issue& issue : scratch.issues) reading_.issues.push_back(issue);
    for (Unread& one : scratch.unread) {
      if (!dictionary.places.empty()) one.origin = dictionary.places.front();
      reading_.unread.push_back(std::move(one));
    }
    std::erase_if(scratch.findings, [](const Finding& one) { return one.path == "precision" && !one.assumed.empty(); });
    return scratch.findings;
  }

  /// Whether DeepSpeed divides something.
  bool read_lightning_strategy() {
    const PyValue* strategy = lightning_->find("strategy");
    const PyObject* made = at(strategy);
    const std::string word = lower_case(made != nullptr       ? made->name
                                        : strategy == nullptr ? std::string{}
                                                              : strategy->text);
    const auto on = [&](const char* key) { return made != nullptr && is_true(made->find(key)); };
    const std::vector<Origin> places = strategy == nullptr ? std::vector<Origin>{} : strategy->places;
    const bool offload = contains(word, "offload");
    if (contains(word, "fsdp")) {
      const PyValue* how = made == nullptr ? nullptr : made->find("sharding_strategy");
      const std::string kind = how == nullptr ? std::string{} : lower_case(how->text);
      if (!contains(kind, "no_shard")) {
        say("parallelism.fsdp", of(fsdp_strategy(kind)), places);
      }
      if (offload || on("cpu_offload")) say("offload.parameters", of("cpu"), places);
      if (made != nullptr && made->find("activation_checkpointing_policy") != nullptr)
        say("gradient_checkpointing", of("full"), places);
      return false;
    }
    if (!contains(word, "deepspeed")) {
      if (!word.empty() && word != "auto" && !contains(word, "ddp")) unknown("strategy: Lightning's " + word);
      return false;
    }
    std::int64_t stage = 2;  // DeepSpeedStrategy's default
    if (const PyValue* number = made == nullptr ? nullptr : made->find("stage"); number != nullptr)
      stage = number->integer;
    if (made == nullptr && contains(word, "stage_")) stage = word[word.find("stage_") + 6] - '0';
    say("parallelism.zero_stage", of(stage), places);
    if (offload || on("offload_optimizer")) say("offload.optimizer", of("cpu"), places);
    if ((offload && stage == 3) || on("offload_parameters")) say("offload.parameters", of("cpu"), places);
    return true;
  }

  /// Programs with an argparse of their own: DeepSpeed's, diffusers'.
  void read_own_flags() {
    if (space_ == nullptr) return;
    const PyValue* stage = space_->find("zero_stage");
    if (imports("deepspeed") && stage != nullptr && stage->is_number()) {
      say("parallelism.zero_stage", *stage);
      if (const PyValue* dtype = space_->find("dtype"); dtype != nullptr && dtype->is_string())
        say("precision", of("deepspeed_" + dtype->text), *dtype);
    }
    const PyValue* resolution = space_->find("resolution");
    if (task_ == "diffusion" && resolution != nullptr && resolution->is_number()) {
      const Value side = to_value(*resolution);
      say("image_size", of(std::vector<Value>{side, side}), *resolution);
    }
  }

  void read_evaluation() {
    const PyValue* strategy = any_argument({"eval_strategy", "evaluation_strategy"});
    if (strategy == nullptr || !strategy->is_string() || strategy->text == "no") return;
    if (const PyValue* batch = argument("per_device_eval_batch_size"); batch != nullptr)
      say("evaluation.micro_batch_size", *batch);
    else
      say("evaluation.micro_batch_size", of(8), strategy->places,
          "per_device_eval_batch_size default 8 (TrainingArguments)");
    const PyValue* generates = argument("predict_with_generate");
    if (generates == nullptr || !generates->boolean) return;
    say("evaluation.generate", *generates);
    if (const PyValue* most = argument("generation_max_length"); most != nullptr && most->is_number())
      say("evaluation.max_new_tokens", *most);
    if (const PyValue* beams = argument("generation_num_beams"); beams != nullptr && beams->is_number())
      say("evaluation.num_beams", *beams);
  }

  // ---------------------------------------------------------------- lengths
  void read_lengths() {
    const PyValue* length =
        task_ == "dpo" || trl_
            ? any_argument({"max_length", "max_seq_length", "max_seq_len"})
            : any_argument({"max_seq_length", "max_length", "model_max_length", "block_size", "max_len", "cutoff_len",
                            "max_seq_len", "seq_len", "seq_length", "bptt"});
    if (length == nullptr && unsloth_ && load_ != nullptr) {
      length = load_->find("max_seq_length");
      if (length != nullptr && !length->is_number()) length = nullptr;
    }
    if (length == nullptr && load_ != nullptr) length = number_of(*load_, "max_seq_length");
    if (length == nullptr) length = tokenizer_length();
    if (length == nullptr) length = field_anywhere("allowed_max_length");
    if (length == nullptr)
      length = variable({"max_seq_length", "max_length", "max_seq_len", "cutoff_len", "model_max_length", "max_len",
                         "block_size", "seq_length", "sequence_length", "context_length"});
    const PyValue* source = length == nullptr ? field_anywhere("source_max_len") : nullptr;
    const PyValue* target = source == nullptr ? nullptr : field_anywhere("target_max_len");
    if (target != nullptr) {
      std::vector<Origin> places = source->places;
      places.insert(places.end(), target->places.begin(), target->places.end());
      say("sequence_length", of(source->integer + target->integer), std::move(places), "source and target in one row");
    } else if (length != nullptr && length->is_number())
      say("sequence_length", *length);
    else if (arguments_ != nullptr && trl_ && !is_command() && (task_ == "sft" || task_ == "dpo")) {
      say("sequence_length", of(1024), {arguments_->place},
          "TRL's default 1024 (SFTConfig since 0.15, DPOConfig since 0.14)");
      unknown("sequence_length: TRL's default by version (1024 since 0.16)");
    } else if (arguments_ != nullptr && !is_command() && task_ == "online_dpo") {
      say("sequence_length", of(512), {arguments_->place}, "OnlineDPOConfig's default");
    } else if (!generates_answers(task_) || any_argument({"max_prompt_length"}) == nullptr)
      unknown("sequence_length");
    copy("max_prompt_length", {"max_prompt_length"});
    if (Finding* prompt = find(reading_, "max_prompt_length"); prompt != nullptr && prompt->assumed.empty()) {
      const int cell = prompt->origins.empty() ? -1 : prompt->origins.front().cell;
      const auto elsewhere = [cell](const Origin& origin) { return origin.cell != cell; };
      if (std::any_of(prompt->origins.begin(), prompt->origins.end(), elsewhere))
        prompt->assumed = "a variable of another cell, which may have run anew";
    }
    for (const OfRollout& one : rollout_numbers()) {
      if (generates_answers(task_) || std::string_view{one.key} != "beta") copy(one.path, {one.key});
    }
    // trl 1.9 trainer/rloo_config.py: num_generations
    if (task_ == "rloo" && arguments_ != nullptr && !is_command() && !told("num_generations"))
      say("num_generations", of(2), {arguments_->place}, "RLOOConfig's default");
    for (const PyObject* collator : program_.calls("UnslothVisionDataCollator")) {
      if (!told("images_per_sample")) say("images_per_sample", of(1), {collator->place}, "a picture a sample");
    }
    read_padding();
  }

  static const PyValue* number_of(const PyObject& one, std::string_view key) {
    const PyValue* value = one.find(key);
    return value != nullptr && value->is_number() ? value : nullptr;
  }
  const PyValue* field_anywhere(std::string_view key) const {
    for (const PyObject& one : program_.objects) {
      if (const PyValue* value = number_of(one, key); value != nullptr) return value;
    }
    return nullptr;
  }

  bool is_tokenizer_call(const PyObject& one) const {
    if (one.find("truncation") != nullptr || one.find("padding") != nullptr) return true;
    return contains(lower_case(one.name), "tokeniz");
  }
  const PyValue* tokenizer_length() const {
    for (const PyObject& one : program_.objects) {
      const PyValue* length = is_tokenizer_call(one) && !one.is("from_pretrained") ? one.find("max_length") : nullptr;
      if (length != nullptr && length->is_number()) return length;
    }
    for (const PyObject& one : program_.objects) {
      const PyValue* length = contains(one.name, "Tokenizer") ? one.find("model_max_length") : nullptr;
      if (length != nullptr && length->is_number()) return length;
    }
    return nullptr;
  }

  void read_padding() {
    std::vector<Origin> places;
    for (const PyObject& one : program_.objects) {
      const PyValue* padding = one.find("padding");
      const bool collates = one.is("DataCollatorForSeq2Seq") || one.is("DataCollatorWithPadding") ||
                            one.is("DataCollatorForLanguageModeling") || one.is("CrossEncoder");
      const bool pads = is_true(padding) || (padding != nullptr && padding->is_string());
      if (pads) places.insert(places.end(), padding->places.begin(), padding->places.end());
      if (collates) places.push_back(one.place);
    }
    if (!places.empty()) return say("padding", of(true), std::move(places));
    read_padding_side();
  }
  // Trainers of preferences pad both answers to one length, on the side that the script chose.
  void read_padding_side() {
    if ((generates_answers(task_) || task_ == "online_dpo") && trainer_ != nullptr)
      return say("padding", of(true), {trainer_->place}, "answers end at different lengths");
    if (task_ != "dpo" && task_ != "kto" && task_ != "orpo" && task_ != "reward") return;
    for (const PyAssignment& one : program_.assignments) {
      if (one.name == "padding_side") return say("padding", of(true), one.value.places);
    }
    for (const PyObject& one : program_.objects) {
      for (const auto& [name, value] : one.fields) {
        if (name == "padding_side" && contains(one.name, "okenizer")) return say("padding", of(true), value.places);
      }
    }
  }

  // ---------------------------------------------------------------- memory
  void read_checkpointing() {
    const PyValue* flag = argument("gradient_checkpointing");
    const PyValue* kwargs = argument("gradient_checkpointing_kwargs");
    if (kwargs != nullptr) {
      if (const PyValue* reentrant = kwargs->find("use_reentrant"); reentrant != nullptr)
        say("use_reentrant", *reentrant);
    }
    const PyObject* fast = lora_ != nullptr || !unsloth_ ? lora_ : load_;
    if (fast != nullptr && contains(fast->name, "Fast")) {
      const PyValue* how = fast->find("use_gradient_checkpointing");
      if (how == nullptr && load_ != nullptr) how = load_->find("use_gradient_checkpointing");
      if (how == nullptr && is_fast_encoder(*fast))
        return say("gradient_checkpointing", of("none"), {fast->place}, "Unsloth's default for sentences");
      if (how == nullptr)
        return say("gradient_checkpointing", of("offload"), {fast->place}, "Unsloth's default \"unsloth\"");
      if (how->is_string())
        return say("gradient_checkpointing",
                   of(how->text == "unsloth" ? "offload"
                      : how->text == "true"  ? "full"
                                             : "none"),
                   *how);
      return say("gradient_checkpointing", of(how->boolean ? "full" : "none"), *how);
    }
    const PyValue* prepared = prepared_ == nullptr ? nullptr : prepared_->find("use_gradient_checkpointing");
    for (const PyObject& one : program_.objects) {
      if (one.name != ".gradient_checkpointing_enable") continue;
      return say("gradient_checkpointing", of("full"), {one.place});
    }
    if (is_true(flag)) return say("gradient_checkpointing", of("full"), *flag);
    if (prepared_ != nullptr && !(prepared != nullptr && prepared->kind == Kind::kBool && !prepared->boolean)) {
      return say("gradient_checkpointing", of("full"), {prepared_->place},
                 "prepare_model_for_kbit_training's use_gradient_checkpointing defaults to True");
    }
    if (flag != nullptr && flag->kind == Kind::kBool) return say("gradient_checkpointing", of("none"), *flag);
    if (is_command() || (unsloth_ && arguments_ != nullptr)) return unknown("gradient_checkpointing");
    if (trl_) {
      say("gradient_checkpointing", of("full"), {arguments_->place}, "on by default since trl 0.22, off before");
      return unknown("gradient_checkpointing: off before trl 0.22, on since");
    }
    std::vector<Origin> places = context();
    if (const PyValue* off = argument("grad_checkpointing"); off != nullptr)
      places.insert(places.begin(), off->places.begin(), off->places.end());
    say("gradient_checkpointing", of("none"), std::move(places), "default");
  }

  /// What nothing says of the weights' dtype comes to. trl 1.9 trainer/sft_trainer.py: __init__: a model given by its
  /// name is loaded in float32, unlike from_pretrained.
  std::string no_dtype() const {
    if (load_ == nullptr && trl_) return "no dtype: TRL loads a model that is given by name in fp32";
    return "no dtype: " + std::string{kBefore5};
  }

  /// The dtype that weights are loaded or cast in: "bf16", "fp16", "fp32", "auto"; empty where nothing says it.
  std::string weights_dtype(PyValue& by) const {
    for (const char* key : {"torch_dtype", "dtype"}) {
      const PyValue* value = load_ == nullptr ? nullptr : load_->find(key);
      if (value == nullptr) value = load_option(key);
      if (value == nullptr || value->text.empty()) continue;
      by = *value;
      const std::string word = lower_case(value->text);
      if (contains(word, "bfloat16") || contains(word, "bf16")) return "bf16";
      if (contains(word, "float16") || contains(word, "half") || contains(word, "fp16")) return "fp16";
      return word == "auto" ? "auto" : "fp32";
    }
    for (const PyObject& one : program_.objects) {
      const bool of_model =
          one.self >= 0 && load_ != nullptr && &program_.objects[static_cast<std::size_t>(one.self)] == load_;
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

  /// "bf16", "fp16" or nothing, by the trainer's flags, accelerate or autocast; `open` where the command decides.
  std::string autocast(PyValue& by, bool& open) const {
    const PyValue* bf16 = argument("bf16");
    const PyValue* fp16 = argument("fp16");
    refuse_both_halves(reading_, is_true(bf16) && bf16->why.empty(), is_true(fp16) && fp16->why.empty());
    if (is_true(bf16)) {
      by = *bf16;
      return "bf16";
    }
    if (is_true(fp16)) {
      by = *fp16;
      return "fp16";
    }
    const PyValue* mixed = accelerator_ == nullptr ? nullptr : accelerator_->find("mixed_precision");
    if (mixed != nullptr && mixed->is_string() && mixed->text != "no") {
      by = *mixed;
      return mixed->text;
    }
    for (const PyObject& one : program_.objects) {
      if (!one.is("autocast") && !one.is("torch.amp.autocast") && !one.is("torch.cuda.amp.autocast")) continue;
      const PyValue* dtype = one.find("dtype");
      by.places = {one.place};
      return dtype != nullptr && contains(dtype->text, "bfloat16") ? "bf16" : "fp16";
    }
    const bool unresolved =
        (arguments_ != nullptr &&
         ((arguments_->find("bf16") != nullptr && arguments_->find("bf16")->kind == Kind::kUnknown) ||
          (arguments_->find("fp16") != nullptr && arguments_->find("fp16")->kind == Kind::kUnknown)));
    open = is_template() || unresolved || (trl_ && bf16 == nullptr && fp16 == nullptr);
    return {};
  }

  static std::vector<Origin> with(std::vector<Origin> places, const Origin& further) {
    places.push_back(further);
    return places;
  }

  void read_precision() {
    PyValue by_dtype;
    PyValue by_flag;
    bool open = false;
    const std::string weights = weights_dtype(by_dtype);
    const std::string cast = autocast(by_flag, open);
    PyValue by = by_flag;
    by.places.insert(by.places.end(), by_dtype.places.begin(), by_dtype.places.end());
    // Flags that are off decide it as well.
    const auto cite = [](std::vector<Origin>& places, const PyValue* value) {
      if (value != nullptr) places.insert(places.end(), value->places.begin(), value->places.end());
    };
    std::vector<Origin> around = by.places;
    for (std::string_view key : {"bf16", "fp16", "amp", "mixed_precision"}) cite(around, argument(key));
    for (const PyObject& one : program_.objects) {
      if (!loads_model(one)) continue;
      for (std::string_view key : {"torch_dtype", "dtype"}) cite(around, one.find(key));
    }
    const std::vector<Origin> here = context();
    around.insert(around.end(), here.begin(), here.end());
    if (by.why.empty()) by.why = by_dtype.why;
    if (lightning_ != nullptr) return;
    if (trainer_ == nullptr && told("precision")) return;  // an Accelerator's plugin or DeepSpeed's keys said it
    // trl 1.9 experimental/ppo/ppo_trainer.py: __init__: Accelerator(gradient_accumulation_steps=…).
    if (task_ == "ppo" && !unsloth_ && !quantised_ && !(open && is_command()) && weights != "auto") {
      return say("precision", precision_of(weights.empty() ? "fp32" : weights, ""), around,
                 "PPOTrainer's own Accelerator is not told of bf16 and fp16");
    }
    const bool by_version = open && trl_ && !is_command() && argument("bf16") == nullptr && argument("fp16") == nullptr;
    if (by_version) {
      unknown("precision: bf16 is TRL's default since 0.19");
      const bool narrow = quantised_ || unsloth_ || weights == "bf16" || weights == "auto";
      return say("precision", of(narrow ? "bf16_amp" : "amp_bf16"), around,
                 unsloth_ ? "Unsloth turns on bf16 on Ampere and later"
                 : narrow ? "bf16 is TRL's default since 0.19"
                          : "bf16 is TRL's default since 0.19; " + no_dtype());
    }
    if (open) return unknown("precision: the command line");
    if (cast.empty() || by.places.empty()) by.places = around;

    const bool is_stated = !weights.empty() && weights != "auto";
    const PyValue* deepspeed = argument("deepspeed");
    const bool by_engine = deepspeed != nullptr &&
                           (deepspeed->kind == Kind::kDict || (deepspeed->is_string() && !deepspeed->text.empty()));
    if (by_engine && !cast.empty()) return say("precision", of("deepspeed_" + cast), by);
    if (quantised_ || unsloth_) {
      if (!cast.empty()) return say("precision", precision_of(is_stated ? weights : cast, cast), by);
      if (unsloth_ && arguments_ == nullptr) return;
      if (prepared_ != nullptr)
        return say("precision", object({{"weights", of("fp32")}, {"autocast", of("none")}}),
                   with(around, prepared_->place),
                   "what is not quantised is fp32 after prepare_model_for_kbit_training; no bf16 or fp16");
      if (weights.empty()) return unknown("precision");
    }
    if (cast.empty()) {
      if (weights == "bf16" || weights == "auto")
        return say("precision", of("pure_bf16"), by.places,
                   weights == "auto" ? "dtype auto: the checkpoint's dtype, taken as bf16; no autocast"
                                     : "bf16 weights, no bf16 flag");
      if (weights == "fp16") return say("precision", of("pure_fp16"), by);
      if (load_ == nullptr && arguments_ == nullptr && named_ == nullptr && program_.calls("DataLoader").empty() &&
          trainer_ == nullptr && own_trainer_ == nullptr && !contains(text_, ".backward()")) {
        return unknown("precision");
      }
      return say("precision", of("fp32"), by.places,
                 no_dtype() + (is_command() ? ", and no bf16 or fp16 in the file; the command may say otherwise"
                                            : ", no autocast"));
    }
    const std::string loaded = is_stated ? weights : weights == "auto" && cast == "bf16" ? "bf16" : "fp32";
    say("precision", precision_of(loaded, cast), by.places,
        !by.why.empty()   ? by.why
        : weights.empty() ? no_dtype()
                          : std::string{});
  }

  // ---------------------------------------------------------------- preference and reinforcement
  void read_reference() {
    const bool compares = task_ == "dpo" || task_ == "kto" || task_ == "bco" || task_ == "ppo" || task_ == "online_dpo";
    if (!compares && !generates_answers(task_)) return;
    if (trainer_ == nullptr) return read_own_reference();
    const PyValue* reference = trainer_->find("ref_model");
    const bool given = is_object(reference) || (reference != nullptr && reference->is_string());
    const PyValue* beta = argument("beta");
    if (task_ == "grpo" && (beta == nullptr || beta->real == 0) && lora_ == nullptr) return;
    if (task_ == "rloo" && beta != nullptr && beta->real == 0) return;
    if (is_command()) {
      if (task_ == "ppo") {
        const PyValue* model = trainer_->find("ref_model");
        std::vector<Origin> places{trainer_->place};
        if (model != nullptr) places.insert(places.end(), model->places.begin(), model->places.end());
        say("reference_model.present", of(true), std::move(places));
      }
      return;
    }
    std::vector<Origin> places{trainer_->place};
    for (const PyValue* value : {reference, beta}) {
      if (value != nullptr) places.insert(places.end(), value->places.begin(), value->places.end());
    }
    say("reference_model.present", of(true), std::move(places), given ? "" : "the trainer makes one");
    if (given) return say_reference_dtype(at(reference));
    if (told("method") && find(reading_, "method")->value.string != "full") {
      say("reference_model.shared_with_adapter", of(true), {trainer_->place},
          "with an adapter it is the model without it");
    } else {
      say_reference_dtype(load_);
    }
  }

  /// A loop of one's own keeps the reference in a variable.
  void read_own_reference() {
    for (const PyAssignment& one : program_.assignments) {
      const bool named = one.name == "reference_model" || one.name == "ref_model";
      if (!named || one.value.kind != Kind::kObject) continue;
      std::vector<Origin> places = one.value.places;
      for (const PyObject& call : program_.objects) {
        if (call.self == one.value.index) places.push_back(call.place);
      }
      say("reference_model.present", of(true), places);
      const PyObject* model = at(&one.value);
      return model != nullptr && loads_model(*model)
                 ? say_reference_dtype(model)
                 : say("reference_model.dtype", of("fp32"), std::move(places), "no dtype: fp32");
    }
  }

  void say_reference_dtype(const PyObject* one) {
    if (one == nullptr) return;
    const PyValue* dtype = one->find("torch_dtype") != nullptr ? one->find("torch_dtype") : one->find("dtype");
    const std::string word = dtype == nullptr ? std::string{} : dtype->text;
    say("reference_model.dtype",
        of(contains(word, "bfloat16")  ? "bf16"
           : contains(word, "float16") ? "fp16"
                                       : "fp32"),
        dtype == nullptr ? std::vector<Origin>{one->place} : dtype->places,
        dtype == nullptr ? "no dtype: " + std::string{kBefore5} : std::string{});
  }

  void read_rollout() {
    if (!generates_answers(task_) && task_ != "online_dpo") return;
    if (on("use_vllm")) {
      say("rollout.engine", of("vllm"), *argument("use_vllm"));
      if (const PyValue* mode = argument("vllm_mode"); mode != nullptr) say("rollout.mode", *mode);
      copy("rollout.gpu_memory_utilization", {"vllm_gpu_memory_utilization"});
      copy("rollout.sleep", {"vllm_enable_sleep_mode"});
      copy("rollout.tensor_parallel", {"vllm_tensor_parallel_size"});
      // unsloth 2026.8.19 models/rl.py: the engine that from_pretrained made is the trainer's.
      if (unsloth_ && is_true(load_option("fast_inference"))) say_fast_inference(*load_option("fast_inference"));
      if (!told("rollout.mode")) unknown("rollout.mode: colocate in trl 1, server before");
    } else if (argument("ds3_gather_for_generation") != nullptr) {
      copy("rollout.gather_weights", {"ds3_gather_for_generation"});
    } else if (const PyValue* fast = load_option("fast_inference"); is_true(fast)) {
      say("rollout.engine", of("vllm"), *fast);
      say_fast_inference(*fast);
    }
  }

  void say_fast_inference(const PyValue& fast) {
    say("rollout.mode", of("colocate"), fast);
    say("rollout.shared_weights", of(true), fast);
    if (const PyValue* share = load_option("gpu_memory_utilization"); share != nullptr)
      say("rollout.gpu_memory_utilization", *share);
  }

  /// A model that the trainer is handed: a name, or what was loaded before.
  const PyObject* say_model(std::string_view path, const PyValue& given) {
    if (given.is_string()) {
      say(path, given);
      return nullptr;
    }
    const PyObject* model = at(&given);
    if (model == nullptr || !loads_model(*model)) {
      unknown(std::string{path});
      return nullptr;
    }
    const PyValue* name = model->find("pretrained_model_name_or_path");
    if (name == nullptr && !model->positional.empty()) name = &model->positional[0];
    if (name != nullptr && name->is_string()) say(path, *name);
    return model;
  }

  /// OnlineDPOTrainer(reward_funcs=…): a model that scores both answers, or functions.
  void read_judge() {
    if (task_ != "online_dpo") return;
    copy("max_completion_length", {"max_new_tokens"});
    if (trainer_ == nullptr) return;
    const PyValue* judge = trainer_->find("reward_funcs");
    if (judge == nullptr) judge = trainer_->find("reward_model");  // before trl 0.24
    if (judge != nullptr) say_model("reward_model", *judge);
  }

  /// GKDTrainer(teacher_model=…).
  void read_teacher() {
    if (task_ != "gkd") return;
    for (const OfRollout& one : distillation_words()) copy(one.path, {one.key});
    const PyValue* teacher = trainer_ == nullptr ? nullptr : trainer_->find("teacher_model");
    if (teacher == nullptr) return;
    const PyObject* model = say_model("teacher_model", *teacher);
    if (model == nullptr) return;
    const PyValue* dtype = model->find("torch_dtype") != nullptr ? model->find("torch_dtype") : model->find("dtype");
    const std::string word = dtype == nullptr ? std::string{} : dtype->text;
    if (contains(word, "float")) {
      const bool half = contains(word, "float16");
      say("teacher_dtype", of(contains(word, "bfloat16") ? "bf16" : half ? "fp16" : "fp32"), *dtype);
    }
  }

  /// Words of the calls that make the job which nobody asked for. What a class has by itself is no word of the job's.
  void tell_unread() {
    constexpr std::string_view kParts[] = {"model",
                                           "args",
                                           "tokenizer",
                                           "processing_class",
                                           "train_dataset",
                                           "eval_dataset",
                                           "data_collator",
                                           "compute_metrics",
                                           "callbacks",
                                           "formatting_func",
                                           "preprocess_logits_for_metrics",
                                           "optimizers",
                                           "peft_config",
                                           "task_type",
                                           "cache_dir",
                                           "use_auth_token",
                                           "device_map",
                                           "low_cpu_mem_usage",
                                           "quantization_config",
                                           "model_init_kwargs",
                                           "dataset_kwargs",
                                           "id2label",
                                           "label2id",
                                           "label_names",
                                           "dataset_num_proc",
                                           "random_state",
                                           "attn_implementation",
                                           "bias",
                                           "disable_tqdm",
                                           "log_with",
                                           "project_dir",
                                           "save_on_each_node",
                                           "eval_on_start",
                                           "do_eval",
                                           "eval_steps",
                                           "eval_strategy",
                                           "evaluation_strategy",
                                           "loss",
                                           "evaluator",
                                           "max_seq_length",
                                           "max_lora_rank",
                                           "importance_sampling_level",
                                           "mask_truncated_completions",
                                           "vllm_sampling_params",
                                           "trackio_space_id",
                                           "project",
                                           "chat_template_kwargs",
                                           "chat_template_path",
                                           "num_completions_to_print",
                                           "embedding_learning_rate",
                                           "bnb_4bit_compute_dtype",
                                           "batch_sampler",
                                           "auto_model",
                                           "fix_tokenizer",
                                           "data_seed",
                                           "delta",
                                           "prompts",
                                           "use_cache",
                                           "load_in_16bit",
                                           "dataloader_pin_memory",
                                           "dataloader_persistent_workers",
                                           "whisper_language",
                                           "whisper_task"};
    for (const PyObject* one : {arguments_, trainer_, lora_, bits_, load_, accelerator_, lightning_}) {
      if (one == nullptr || one->parsed || !one->bases.empty()) continue;
      for (const auto& [key, value] : one->fields) {
        const bool off = value.kind == Kind::kNone || (value.kind == Kind::kBool && !value.boolean);
        if (one->asked.contains(key) || off) continue;
        const bool harmless =
            is_harmless_key(key) || std::find(std::begin(kParts), std::end(kParts), key) != std::end(kParts);
        reading_.unread.push_back({key, value.places.empty() ? one->place : value.places.front(), harmless});
      }
    }
  }

  /// Trainers that train another model than the one that is read.
  void tell_other_trainers() {
    if (trainer_ == nullptr) return;
    std::size_t others = 0;
    for (const PyObject& one : program_.objects) {
      const bool trains =
          one.name.ends_with("Trainer") &&
          std::any_of(std::begin(kTrainers), std::end(kTrainers), [&](const Trainer& row) { return one.is(row.name); });
      if (!trains || one.unsure || &one == trainer_) continue;
      const PyValue* model = one.find("model");
      if (model == nullptr && !one.positional.empty()) model = &one.positional[0];
      const PyObject* made = loaded(model);
      if (made != nullptr && made != load_) ++others;
    }
    if (others == 0) return;
    reading_.notes.push_back(std::to_string(others + 1) + " trainers of other models stand here; the last, of line " +
                             std::to_string(trainer_->place.first) + ", is read");
  }

  void ask() {
    // accelerate's big_modeling: layers one after the other on the GPUs that it sees.
    if (const PyValue* map = load_ == nullptr ? nullptr : load_->find("device_map");
        map != nullptr && (map->text == "auto" || map->text == "balanced"))
      reading_.notes.push_back(
          "device_map \"" + map->text +
          "\" lays the model's layers on all GPUs that the process sees: parallelism.device_map is "
          "their number, one unless a launch command says it");
    if (is_command() && !told("micro_batch_size") && !told("model")) {
      reading_.notes.emplace_back("a template: its values come from the command line; give the command as well");
      unknown("everything that the command line says: model, batch, length, method");
    }
    if (!told("micro_batch_size") && !auto_batch()) unknown("micro_batch_size");
    if (!program_.calls("DistributedDataParallel").empty() && !told("parallelism.data"))
      unknown("parallelism.data: DistributedDataParallel, and no file says how many processes");
    tell_other_trainers();
    for (const std::string& file : program_.files) {
      unknown("the file " + file);
      reading_.companions.push_back(file);
    }
    unknown("gpu");
  }

  PyProgram& program_;
  std::string_view text_;
  Reading& reading_;
  const PyObject* trainer_ = nullptr;
  const PyObject* own_trainer_ = nullptr;  // a class of the program's own
  const PyObject* arguments_ = nullptr;
  const PyObject* space_ = nullptr;
  const PyObject* mx_ = nullptr;
  const PyObject* packed_ = nullptr;
  const PyObject* accelerator_ = nullptr;
  const PyObject* lightning_ = nullptr;  // its Trainer, or Fabric
  const PyObject* lora_ = nullptr;
  const PyObject* bits_ = nullptr;
  const PyObject* prepared_ = nullptr;
  const PyObject* load_ = nullptr;
  const PyValue* named_ = nullptr;
  PyValue quantised_by_;
  std::string other_task_;  // a trainer of TRL's that has no row
  std::string_view trainer_task_;
  std::string_view trainer_name_;
  std::string task_;
  std::string task_hint_;
  bool unsloth_ = false;
  bool trl_ = false;
  bool quantised_ = false;
};

}  // namespace

void read_python_job(PyProgram& program, std::string_view text, Reading& reading) {
  Job(program, text, reading).read();
}

}  // namespace tidemark::exchange
