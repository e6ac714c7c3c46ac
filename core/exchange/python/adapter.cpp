// peft 0.18 tuners/lora/config.py and its like, utils/constants.py.
#include <utility>

#include "core/exchange/python/library_calls.hpp"
#include "core/exchange/python/topics.hpp"
#include "core/exchange/unsloth_targets.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyValue::Kind;

constexpr const char* kTargets = "adapter.target_modules";

/// A field as the configuration has it under one of these names, or else its default.
void adapter_field(PyJob& job, const std::string& path, std::initializer_list<std::string_view> keys,
                   Value standard = {}, const char* why = "") {
  for (std::string_view key : keys) {
    const PyValue* value = job.lora->find(key);
    if (value == nullptr) continue;
    if (value->is_known() && value->kind != Kind::kNone) return job.say(path, *value);
    return job.unknown(path + ": not in the file");
  }
  if (!standard.is_null()) job.say(path, std::move(standard), {job.lora->place}, why);
}

/// What stands under target_modules says of which.
bool names_modules(const PyValue* value) {
  return value != nullptr && value->is_known() && value->kind != Kind::kNone && value->kind != Kind::kObject;
}

/// PEFT's choice where no modules are named (utils/constants.py: TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING).
Value mapped_modules(const std::string& model) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> families) {
    for (std::string_view family : families) {
      if (contains(model, family)) return true;
    }
    return false;
  };
  if (is_one_of({"llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen", "gemma", "opt", "vicuna", "smollm"}))
    return words({"q_proj", "v_proj"});
  if (is_one_of({"gpt2"})) return words({"c_attn"});
  if (is_one_of({"pythia", "falcon", "bloom", "neox"})) return words({"query_key_value"});
  if (is_one_of({"bert"})) return words({"query", "value"});
  if (is_one_of({"t5"})) return words({"q", "v"});
  return of("auto");
}

void read_saved_modules(PyJob& job) {
  const PyValue* saved = job.lora->find("modules_to_save");
  if (saved != nullptr && saved->kind == Kind::kList && !saved->items.empty())
    job.say("adapter.modules_to_save", *saved);
}

/// A configuration beside LoraConfig: what it says; its defaults are the request's.
void read_other_adapter(PyJob& job, std::string_view kind) {
  job.say("adapter.kind", of(kind), {job.lora->place});
  if (kind != "adalora") adapter_field(job, "adapter.r", {"r"});
  adapter_field(job, "adapter.lora_dropout", {"lora_dropout", "vera_dropout"});
  for (const std::string_view word : adapter_words()) adapter_field(job, "adapter." + std::string{word}, {word});
  if (kind == "prompt_tuning" || kind == "p_tuning" || kind == "prefix_tuning") return;
  if (const PyValue* modules = job.lora->find("target_modules"); names_modules(modules))
    job.say(kTargets, *modules);
  else
    job.say(kTargets, of("auto"), {job.lora->place}, "PEFT's mapping for the model type");
  read_saved_modules(job);
}

/// FastModel's and FastVisionModel's choice of parts, with or without names of modules.
void read_unsloth_parts(PyJob& job, const PyValue* modules) {
  UnslothParts parts;
  std::vector<Origin> places;
  const auto flag = [&](const char* name, bool& part) {
    const PyValue* value = job.lora->find(name);
    if (value == nullptr || value->kind != Kind::kBool) return;
    part = value->boolean;
    cite(places, value);
  };
  flag("finetune_vision_layers", parts.vision);
  flag("finetune_language_layers", parts.language);
  flag("finetune_attention_modules", parts.attention);
  flag("finetune_mlp_modules", parts.mlp);
  if (places.empty()) places.push_back(job.lora->place);
  if (modules != nullptr && modules->is_string() && modules->text == "all-linear") {
    parts = {};
    modules = nullptr;
  }
  if (modules != nullptr && (modules->kind != Kind::kList || parts == UnslothParts{}))
    return job.say(kTargets, *modules);
  for (std::size_t i = 0; modules != nullptr && i < modules->items.size(); ++i) {
    parts.names.push_back(modules->items[i].text);
  }
  if (modules != nullptr) places.insert(places.begin(), modules->places.begin(), modules->places.end());
  job.say(kTargets, of(unsloth_targets(parts)), std::move(places),
          "Unsloth makes an expression of the parts that it is to tune (unsloth_zoo peft_utils.py: get_peft_regex)");
}

/// Unsloth's choice where no modules are named.
void read_unsloth_targets(PyJob& job) {
  const Value modules = is_fast_encoder(*job.lora)
                            ? words({"query", "key", "value", "dense"})
                            : words({"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"});
  job.say(kTargets, modules, {job.lora->place}, "Unsloth's default");
}

void read_targets(PyJob& job, bool fast, const PyValue* modules) {
  const bool named = names_modules(modules);
  const std::string& name = job.lora->name;
  if (fast && (contains(name, "Vision") || contains(name, "FastModel")))
    return read_unsloth_parts(job, named ? modules : nullptr);
  if (named) return job.say(kTargets, *modules);
  if (fast) return read_unsloth_targets(job);
  if (modules == nullptr || modules->kind == Kind::kNone) {
    const Finding* model = find(job.reading, "model");
    return job.say(kTargets, mapped_modules(model == nullptr ? std::string{} : lower_case(model->value.string)),
                   {job.lora->place}, "PEFT's mapping for the model type (utils/constants.py)");
  }
  if (contains(job.text, "find_all_linear"))
    return job.say(kTargets, of("all-linear"), modules->places, "a function collects all linear layers");
  job.unknown(std::string{kTargets} + ": computed at run time");
}

}  // namespace

void read_adapter(PyJob& job) {
  const std::string_view kind = adapter_kind(*job.lora);
  if (!kind.empty()) return read_other_adapter(job, kind);
  if (const std::string other = unmodelled_kind(*job.lora); !other.empty()) {
    if (!lora_stands_for(other)) return job.say("adapter.kind", of(other), {job.lora->place});
    not_counted(job.reading, last_word(job.lora->name) + ", in the place of which LoRA stands", {job.lora->place});
  }
  const bool fast = contains(job.lora->name, "Fast");
  const bool trl = job.lora->is("ModelConfig");
  const char* why = fast  ? "Unsloth's default"
                    : trl ? "TRL ModelConfig's default"
                          : "LoraConfig's default (tuners/lora/config.py)";
  adapter_field(job, "adapter.r", {"r", "init_r", "lora_r"}, of(fast || trl ? 16 : 8), why);
  adapter_field(job, "adapter.lora_alpha", {"lora_alpha"}, of(trl ? 32 : fast ? 16 : 8), why);
  adapter_field(job, "adapter.lora_dropout", {"lora_dropout"}, of(trl ? 0.05 : 0.0), why);
  read_targets(job, fast, job.lora->find(trl ? "lora_target_modules" : "target_modules"));
  read_saved_modules(job);
  for (const char* name : {"rank_pattern", "alpha_pattern", "layers_to_transform", "layers_pattern",
                           "target_parameters", "trainable_token_indices", "exclude_modules", "bias"}) {
    const PyValue* value = job.lora->find(name);
    const bool says = value != nullptr && (value->is_number() || !value->items.empty() || !value->text.empty());
    if (says && value->is_known() && value->text != "none") job.say(std::string{"adapter."} + name, *value);
  }
  for (const char* name : {"use_dora", "use_rslora"}) {
    const PyValue* value = job.lora->find(name);
    if (is_true(value)) job.say(std::string{"adapter."} + name, *value);
  }
}

}  // namespace tidemark::exchange
