#include <algorithm>
#include <utility>

#include "core/exchange/python/topics.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

/// The class that an AutoModel picks, where the name tells the family.
void read_architecture(PyJob& job, const std::string& name) {
  if (job.load == nullptr) return;
  std::string head;
  for (const char* kind :
       {"ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMaskedLM"}) {
    const PyValue* own = job.load->find("auto_model");  // Unsloth's
    if (contains(job.load->name, kind) || (own != nullptr && contains(own->text, kind))) head = kind;
  }
  if (job.load->is("CrossEncoder")) head = "ForSequenceClassification";
  if (job.load->is("SparseEncoder")) head = "ForMaskedLM";
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
    return job.say("architecture", of(family + head), {job.load->place}, "the class that the head and the name make");
  }
}

/// Whether the last component of a path is a model's name and not a run's.
bool speaks(const std::string& name) {
  if (contains(name, "checkpoint")) return false;
  if (std::any_of(name.begin(), name.end(), [](char letter) { return letter >= '0' && letter <= '9'; })) return true;
  const std::string small = lower_case(name);
  for (const char* family :
       {"llama", "mistral", "qwen", "gemma", "phi", "gpt", "bert", "falcon", "opt", "baichuan", "glm"}) {
    if (contains(small, family)) return true;
  }
  return false;
}

const PyValue* first_of(const PyObject& one, std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys) {
    if (const PyValue* value = one.find(key); value != nullptr) return value;
  }
  return nullptr;
}

/// What the model is called where it is loaded, or where a notebook's configuration names it.
const PyValue* name_of_model(const PyJob& job) {
  if (job.model_name != nullptr) return job.model_name;
  const PyValue* name = nullptr;
  if (job.load != nullptr) {
    name = first_of(*job.load,
                    {"pretrained_model_name_or_path", "model_name", "model_name_or_path", "model_id", "model_path"});
    if (name == nullptr && !job.load->positional.empty()) name = &job.load->positional[0];
  }
  if (name == nullptr && job.is_written())
    name = first_of(*job.arguments, {"model_id", "model_name_or_path", "model_name", "base_model"});
  if (name == nullptr && job.is_llama_index()) name = job.trainer->find("model_id");
  return name;
}

void read_attention(PyJob& job) {
  if (job.load == nullptr) return;
  if (const PyValue* attention = job.load->find("attn_implementation"); attention != nullptr && attention->is_string())
    job.say("attention", *attention);
  const PyValue* flash = job.load->find("use_flash_attention_2");
  if (flash != nullptr && flash->boolean) job.say("attention", of("flash_attention_2"), *flash);
}

void read_name(PyJob& job) {
  const PyValue* name = name_of_model(job);
  if (name == nullptr && read_own_gpt(job)) return;
  if (name == nullptr) return job.unknown("model");
  if (!name->is_string() || name->text.empty()) return job.unknown("model: not in the file");
  say_model(job, *name);
  const PyObject* load = job.load;
  if (load != nullptr && (load->is("timm.create_model") ||
                          (load->is("create_model") && job.imports("timm") && !contains(name->text, "/"))))
    job.say("model", of("timm/" + name->text), *name);
  read_architecture(job, name->text);
}

}  // namespace

void say_model(PyJob& job, const PyValue& name) {
  std::string text = name.text;
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  const std::string head = lower_case(text.substr(0, text.find('/')));
  for (const char* folder : {"output", "outputs", "results", "checkpoints", "checkpoint", "models", "model", "saved",
                             "runs", "out", "saved_models"}) {
    if (head == folder && contains(text, "/")) return job.unknown("model: " + text + " is a local folder");
  }
  const bool local = text[0] == '/' || text[0] == '.' || text[0] == '~' || contains(text, ":\\");
  if (!local && std::count(text.begin(), text.end(), '/') <= 1) return job.say("model", of(text), name);
  const std::string last{base_name(text)};
  if (!speaks(last)) return job.unknown("model: " + text + " is a local folder");
  job.say("model", of(last), name.places, "the last component of a local path");
}

void read_model(PyJob& job) {
  read_name(job);
  read_attention(job);
}

}  // namespace tidemark::exchange
