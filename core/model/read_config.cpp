#include "core/model/read_config.hpp"

#include <cmath>
#include <string>

#include "core/model/config_fields.hpp"
#include "core/model/families/families.hpp"
#include "core/units/nearest.hpp"

namespace tidemark {

namespace {

/// Which heads a family's classes come with.
enum class Kind { kDecoder, kEncoder, kVisionEncoder, kEncoderDecoder };

struct ModelType {
  std::string_view model_type;  ///< as in config.json
  Family family;                ///< the block program
  Kind kind;
  std::string_view class_prefix;  ///< what the family's class names start with
  std::string_view class_name;    ///< the class that is trained unless something else is said
  void (*read)(ConfigFields&, Architecture&);
};

constexpr ModelType kModelTypes[] = {
    {"llama", Family::kLlama, Kind::kDecoder, "Llama", "LlamaForCausalLM", read_llama_config},
    {"smollm3", Family::kLlama, Kind::kDecoder, "SmolLM3", "SmolLM3ForCausalLM", read_smollm3_config},
    {"mistral", Family::kLlama, Kind::kDecoder, "Mistral", "MistralForCausalLM", read_mistral_config},
    {"ministral", Family::kLlama, Kind::kDecoder, "Ministral", "MinistralForCausalLM", read_ministral_config},
    {"ministral3", Family::kLlama, Kind::kDecoder, "Ministral3", "Ministral3ForCausalLM", read_ministral3_config},
    {"qwen2", Family::kLlama, Kind::kDecoder, "Qwen2", "Qwen2ForCausalLM", read_qwen2_config},
    {"qwen3", Family::kQwen3, Kind::kDecoder, "Qwen3", "Qwen3ForCausalLM", read_qwen3_config},
    {"seed_oss", Family::kLlama, Kind::kDecoder, "SeedOss", "SeedOssForCausalLM", read_seed_oss_config},
    // The first Yi files, of a class that came with them; the same keys and modules as Llama.
    {"Yi", Family::kLlama, Kind::kDecoder, "Yi", "LlamaForCausalLM", read_llama_config},
    {"gemma", Family::kGemma, Kind::kDecoder, "Gemma", "GemmaForCausalLM", read_gemma_config},
    {"gemma2", Family::kGemma2, Kind::kDecoder, "Gemma2", "Gemma2ForCausalLM", read_gemma2_config},
    {"gemma3_text", Family::kGemma3, Kind::kDecoder, "Gemma3", "Gemma3ForCausalLM", read_gemma3_text_config},
    {"phi", Family::kPhi, Kind::kDecoder, "Phi", "PhiForCausalLM", read_phi_config},
    {"phi3", Family::kPhi3, Kind::kDecoder, "Phi3", "Phi3ForCausalLM", read_phi3_config},
    {"gpt2", Family::kGpt2, Kind::kDecoder, "GPT2", "GPT2LMHeadModel", read_gpt2_config},
    {"gpt_bigcode", Family::kGptBigCode, Kind::kDecoder, "GPTBigCode", "GPTBigCodeForCausalLM",
     read_gpt_bigcode_config},
    {"gpt_neo", Family::kGptNeo, Kind::kDecoder, "GPTNeo", "GPTNeoForCausalLM", read_gpt_neo_config},
    {"gptj", Family::kGptJ, Kind::kDecoder, "GPTJ", "GPTJForCausalLM", read_gptj_config},
    {"gpt_neox", Family::kGptNeoX, Kind::kDecoder, "GPTNeoX", "GPTNeoXForCausalLM", read_gpt_neox_config},
    {"opt", Family::kOpt, Kind::kDecoder, "OPT", "OPTForCausalLM", read_opt_config},
    {"bloom", Family::kBloom, Kind::kDecoder, "Bloom", "BloomForCausalLM", read_bloom_config},
    {"falcon", Family::kFalcon, Kind::kDecoder, "Falcon", "FalconForCausalLM", read_falcon_config},
    // The first Falcon files.
    {"RefinedWeb", Family::kFalcon, Kind::kDecoder, "RW", "FalconForCausalLM", read_falcon_config},
    {"RefinedWebModel", Family::kFalcon, Kind::kDecoder, "RW", "FalconForCausalLM", read_falcon_config},
    {"mpt", Family::kMpt, Kind::kDecoder, "Mpt", "MptForCausalLM", read_mpt_config},
    {"stablelm", Family::kStableLm, Kind::kDecoder, "StableLm", "StableLmForCausalLM", read_stablelm_config},
    {"olmo", Family::kOlmo, Kind::kDecoder, "Olmo", "OlmoForCausalLM", read_olmo_config},
    {"olmo2", Family::kOlmo2, Kind::kDecoder, "Olmo2", "Olmo2ForCausalLM", read_olmo2_config},
    {"olmo3", Family::kOlmo2, Kind::kDecoder, "Olmo3", "Olmo3ForCausalLM", read_olmo3_config},
    {"granite", Family::kGranite, Kind::kDecoder, "Granite", "GraniteForCausalLM", read_granite_config},
    {"starcoder2", Family::kStarcoder2, Kind::kDecoder, "Starcoder2", "Starcoder2ForCausalLM", read_starcoder2_config},
    {"internlm2", Family::kInternLm2, Kind::kDecoder, "InternLM2", "InternLM2ForCausalLM", read_internlm2_config},
    {"baichuan", Family::kBaichuan, Kind::kDecoder, "Baichuan", "BaichuanForCausalLM", read_baichuan_config},
    {"cohere", Family::kCohere, Kind::kDecoder, "Cohere", "CohereForCausalLM", read_cohere_config},
    {"cohere2", Family::kCohere, Kind::kDecoder, "Cohere2", "Cohere2ForCausalLM", read_cohere2_config},
    {"glm", Family::kGlm, Kind::kDecoder, "Glm", "GlmForCausalLM", read_glm_config},
    {"glm4", Family::kGlm4, Kind::kDecoder, "Glm4", "Glm4ForCausalLM", read_glm_config},
    {"nemotron", Family::kNemotron, Kind::kDecoder, "Nemotron", "NemotronForCausalLM", read_nemotron_config},
    {"apertus", Family::kApertus, Kind::kDecoder, "Apertus", "ApertusForCausalLM", read_apertus_config},
    {"helium", Family::kHelium, Kind::kDecoder, "Helium", "HeliumForCausalLM", read_helium_config},
    {"bert", Family::kBert, Kind::kEncoder, "Bert", "BertForMaskedLM", read_bert_config},
    {"roberta", Family::kBert, Kind::kEncoder, "Roberta", "RobertaForMaskedLM", read_bert_config},
    {"distilbert", Family::kDistilBert, Kind::kEncoder, "DistilBert", "DistilBertForMaskedLM", read_distilbert_config},
    {"vit", Family::kVit, Kind::kVisionEncoder, "ViT", "ViTForImageClassification", read_vit_config},
    {"t5", Family::kT5, Kind::kEncoderDecoder, "T5", "T5ForConditionalGeneration", read_t5_config},
};

struct HeadSuffix {
  std::string_view suffix;  ///< what follows the family's prefix in a class name
  Head head;
};

constexpr HeadSuffix kDecoderHeads[] = {{"ForCausalLM", Head::kCausalLm},
                                        {"LMHeadModel", Head::kCausalLm},
                                        {"ForSequenceClassification", Head::kSequenceClassification},
                                        {"Model", Head::kNone}};
constexpr HeadSuffix kEncoderHeads[] = {{"ForMaskedLM", Head::kMaskedLm},
                                        {"ForSequenceClassification", Head::kSequenceClassification},
                                        {"Model", Head::kNone}};
constexpr HeadSuffix kVisionHeads[] = {{"ForImageClassification", Head::kImageClassification}, {"Model", Head::kNone}};
// The first T5 files name a class of a library version long gone.
constexpr HeadSuffix kEncoderDecoderHeads[] = {{"ForConditionalGeneration", Head::kSeq2SeqLm},
                                               {"WithLMHeadModel", Head::kSeq2SeqLm}};

struct HeadSuffixes {
  const HeadSuffix* first;
  std::size_t count;
  const HeadSuffix* begin() const { return first; }
  const HeadSuffix* end() const { return first + count; }
};

template <std::size_t kSize>
HeadSuffixes all_of(const HeadSuffix (&suffixes)[kSize]) {
  return {suffixes, kSize};
}

HeadSuffixes heads_of(Kind kind) {
  switch (kind) {
    case Kind::kDecoder:
      return all_of(kDecoderHeads);
    case Kind::kEncoder:
      return all_of(kEncoderHeads);
    case Kind::kVisionEncoder:
      return all_of(kVisionHeads);
    case Kind::kEncoderDecoder:
      return all_of(kEncoderDecoderHeads);
  }
  return {nullptr, 0};
}

std::string quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

/// "LLaMAForCausalLM" was written by early converters: class names are compared without regard to case.
bool starts_with_folded(std::string_view text, std::string_view prefix) {
  if (text.size() < prefix.size()) return false;
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    if (lower(text[i]) != lower(prefix[i])) return false;
  }
  return true;
}

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

/// The type whose class names start like this one, the longest prefix winning ("GPTNeoX" before "GPTNeo").
const ModelType* type_of_class(std::string_view class_name) {
  const ModelType* best = nullptr;
  for (const ModelType& type : kModelTypes) {
    if (!starts_with_folded(class_name, type.class_prefix)) continue;
    if (best == nullptr || type.class_prefix.size() > best->class_prefix.size()) best = &type;
  }
  if (best == nullptr) return nullptr;
  // "Qwen2MoeForCausalLM" starts like Qwen2 and is another family: a head must follow directly.
  const std::string_view rest = class_name.substr(best->class_prefix.size());
  for (const HeadSuffix& head : heads_of(best->kind)) {
    if (rest == head.suffix) return best;
  }
  return nullptr;
}

const ModelType* type_named(std::string_view model_type) {
  for (const ModelType& type : kModelTypes) {
    if (type.model_type == model_type) return &type;
  }
  return nullptr;
}

std::string list_of_model_types() {
  std::string list;
  for (const ModelType& type : kModelTypes) {
    if (!list.empty()) list += ", ";
    list += type.model_type;
  }
  return list;
}

/// The supported type closest to this one. Families grow by suffixes ("qwen3_moe"), so a common beginning counts most.
std::string nearest_type(std::string_view model_type) {
  constexpr std::size_t kTellingPrefix = 3;
  std::string similar = nearest(model_type, supported_model_types());
  if (!similar.empty()) return similar;
  std::string_view best;
  std::size_t best_common = kTellingPrefix - 1;
  for (const ModelType& type : kModelTypes) {
    std::size_t common = 0;
    const std::size_t shorter = type.model_type.size() < model_type.size() ? type.model_type.size() : model_type.size();
    while (common < shorter && lower(type.model_type[common]) == lower(model_type[common])) ++common;
    if (common > best_common) {
      best = type.model_type;
      best_common = common;
    }
  }
  return std::string(best);
}

/// The first entry of `architectures`, or an empty view.
std::string_view class_in(const Value& config) {
  const Value* classes = config.find("architectures");
  if (classes == nullptr || classes->items.empty()) return {};
  return classes->items.front().string;
}

/// Finds what kind of model the file describes; on failure adds the error and returns nothing.
const ModelType* find_type(const Value& config, ConfigFields& fields) {
  const std::string model_type = fields.text({"model_type"}, "");
  const std::string_view class_name = class_in(config);
  if (model_type.empty()) {
    const ModelType* by_class = type_of_class(class_name);
    if (by_class == nullptr) {
      if (class_name.empty()) {
        fields.error("MISSING_FIELD", "model_type",
                     "The configuration does not say what it describes; add \"model_type\".");
      } else {
        fields.error("UNSUPPORTED_ARCHITECTURE", "architectures",
                     "The class " + quoted(class_name) +
                         " is not modelled; model types that are: " + list_of_model_types() + ".");
      }
      return nullptr;
    }
    fields.note("ASSUMED_DEFAULT", "model_type",
                "\"model_type\" is absent; " + quoted(by_class->model_type) + " follows from the class " +
                    quoted(class_name) + ".");
    return by_class;
  }
  const ModelType* type = type_named(model_type);
  if (type != nullptr) return type;

  std::string message =
      "The model type " + quoted(model_type) + " is not modelled; these are: " + list_of_model_types() + ".";
  for (const std::string_view key : {"text_config", "llm_config", "language_config"}) {
    const Value* inner = config.find(key);
    const Value* inner_type = inner == nullptr ? nullptr : inner->find("model_type");
    if (inner_type != nullptr && type_named(inner_type->string) != nullptr) {
      message += " Its language model is a " + quoted(inner_type->string) + ": give " + quoted(key) +
                 " alone to estimate that part.";
    }
  }
  fields.error("UNSUPPORTED_ARCHITECTURE", "model_type", message, nearest_type(model_type));
  return nullptr;
}

/// Sets the class that is trained and its head.
void choose_class(const ModelType& type, std::string_view class_override, ConfigFields& fields,
                  Architecture& architecture) {
  const std::string_view in_file = class_in(fields.object());
  const bool overridden = !class_override.empty();
  const std::string_view wanted = overridden ? class_override : in_file;
  architecture.class_name = wanted.empty() ? type.class_name : wanted;

  auto report = [&](Severity severity, std::string_view code, std::string message) {
    fields.issues().push_back(Issue{std::string(code), severity,
                                    overridden ? "/architecture" : fields.path() + "/architectures", std::move(message),
                                    std::string(type.class_name)});
  };
  for (const HeadSuffix& head : heads_of(type.kind)) {
    const std::string_view name = architecture.class_name;
    if (!ends_with(name, head.suffix)) continue;
    architecture.head = head.head;
    const std::string_view prefix = name.substr(0, name.size() - head.suffix.size());
    const bool same_family = prefix.size() == type.class_prefix.size() && starts_with_folded(prefix, type.class_prefix);
    if (!same_family && name != type.class_name) {
      if (overridden) {
        report(Severity::kError, "INVALID_VALUE",
               quoted(name) + " is no class of the model type " + quoted(type.model_type) + ".");
      } else {
        report(Severity::kWarning, "INVALID_VALUE",
               quoted(name) + " is no class of transformers for the model type " + quoted(type.model_type) +
                   "; it is read as the one of that type with the same head.");
      }
    }
    return;
  }
  std::string heads;
  for (const HeadSuffix& head : heads_of(type.kind)) {
    if (!heads.empty()) heads += ", ";
    heads += std::string(type.class_prefix) + std::string(head.suffix);
  }
  report(Severity::kError, "UNSUPPORTED_ARCHITECTURE",
         "The class " + quoted(architecture.class_name) + " is not modelled; of this model type these are: " + heads +
             ". Give one of them as \"architecture\".");
}

/// Lists with one entry per layer follow, so that the depth comes first.
bool depth_is_sane(const Value& config, ConfigFields& fields) {
  constexpr Count kMostLayers = 1'000'000;
  for (const std::string_view key : {"num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"}) {
    const Value* depth = config.find(key);
    if (depth != nullptr && depth->is_number() && depth->real > static_cast<double>(kMostLayers)) {
      fields.error("INVALID_VALUE", key,
                   "More than " + std::to_string(kMostLayers) + " layers: " + quoted(key) + " must be a mistake.");
      return false;
    }
  }
  return true;
}

/// Whatever is counted later must fit 63 bits with room to spare: no trained model has 10^15 parameters.
bool size_is_sane(const Architecture& architecture, ConfigFields& fields) {
  const auto real = [](Count count) { return static_cast<double>(count); };
  const double width = real(architecture.hidden_size);
  const double attention = real(architecture.num_heads + 2 * architecture.num_kv_heads) * real(architecture.head_dim);
  const double per_layer = width * (2.0 * attention + 3.0 * real(architecture.intermediate_size));
  const double layers = real(architecture.num_layers + architecture.num_decoder_layers);
  const double tables = 2.0 * width * real(architecture.vocab_size + architecture.max_positions);
  if (per_layer * layers + tables < 1e15) return true;
  fields.issues().push_back(Issue{"INVALID_VALUE", Severity::kError, fields.path(),
                                  "These sizes give more than 10^15 parameters; one of them must be a mistake.", ""});
  return false;
}

void read_labels(ConfigFields& fields, Architecture& architecture) {
  const Value* labels = fields.find({"id2label"});
  architecture.num_labels = fields.count({"num_labels", "_num_labels"}, 2);
  if (labels != nullptr && labels->is_object()) {
    architecture.num_labels = static_cast<Count>(labels->members.size());
  }
}

}  // namespace

std::vector<std::string_view> supported_model_types() {
  std::vector<std::string_view> types;
  for (const ModelType& type : kModelTypes) types.push_back(type.model_type);
  return types;
}

ConfigResult read_config(const Value& config, std::string_view class_override) {
  ConfigResult result;
  ConfigFields fields(config, "/config", result.issues);
  if (!config.is_object()) {
    result.issues.push_back(
        Issue{"WRONG_TYPE", Severity::kError, "/config", "A config.json must be a JSON object.", ""});
    return result;
  }
  const ModelType* type = find_type(config, fields);
  if (type == nullptr) return result;

  Architecture& architecture = result.architecture;
  architecture.family = type->family;
  architecture.model_type = type->model_type;
  choose_class(*type, class_override, fields, architecture);
  read_labels(fields, architecture);
  if (!depth_is_sane(config, fields)) return result;
  type->read(fields, architecture);
  if (has_error(result.issues) || !size_is_sane(architecture, fields)) return result;

  if (fields.has({"quantization_config"})) {
    fields.warning("UNKNOWN_KEY", "quantization_config",
                   "The checkpoint's own quantisation is not read from here; say how the weights are held by "
                   "\"method\" and \"quantization\".");
  }
  fields.report_unread(type->model_type);
  return result;
}

}  // namespace tidemark
