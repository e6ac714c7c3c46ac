#include "core/families/read_config.hpp"

#include <cmath>
#include <string>

#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/model/config_fields.hpp"
#include "core/units/excerpt.hpp"
#include "core/units/nearest.hpp"

namespace tidemark {

namespace {

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
const Family* type_of_class(std::string_view class_name) {
  const Family* best = nullptr;
  for (const Family* row : all_families()) {
    const Family& type = *row;
    if (!starts_with_folded(class_name, type.class_prefix)) continue;
    if (best == nullptr || type.class_prefix.size() > best->class_prefix.size()) best = &type;
  }
  if (best == nullptr) return nullptr;
  // "Qwen2MoeForCausalLM" starts like Qwen2 and is another family: a head must follow directly.
  const std::string_view rest = class_name.substr(best->class_prefix.size());
  for (const ClassSuffix& known : best->classes) {
    if (rest == known.suffix) return best;
  }
  return nullptr;
}

}  // namespace

const Family* type_named(std::string_view model_type) {
  for (const Family* row : all_families()) {
    const Family& type = *row;
    if (type.model_type == model_type) return &type;
  }
  return nullptr;
}

namespace {

std::string list_of_model_types() {
  std::string list;
  for (const std::string_view type : supported_model_types()) {
    if (!list.empty()) list += ", ";
    list += type;
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
  for (const Family* row : all_families()) {
    const Family& type = *row;
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

/// The first entry of `architectures`, or diffusers' `_class_name`, or an empty view.
std::string_view class_in(const Value& config) {
  const Value* of_diffusers = config.find("_class_name");
  if (of_diffusers != nullptr) return of_diffusers->string;
  const Value* classes = config.find("architectures");
  if (classes == nullptr || classes->items.empty()) return {};
  return classes->items.front().string;
}

/// Finds what kind of model the file describes; on failure adds the error and returns nothing.
const Family* find_type(const Value& config, std::string_view class_override, ConfigFields& fields) {
  const std::string model_type = fields.text({"model_type"}, "");
  std::string_view class_name = class_in(config);
  if (class_name.empty()) class_name = class_override;
  if (model_type.empty()) {
    const Family* by_class = type_of_class(class_name);
    if (by_class == nullptr) {
      if (class_name.empty()) {
        fields.error("MISSING_FIELD", "model_type",
                     "The configuration does not say what it describes; add \"model_type\".");
      } else {
        fields.error("UNSUPPORTED_ARCHITECTURE", "architectures",
                     "The class " + in_quotes(class_name) +
                         " is not modelled; model types that are: " + list_of_model_types() + ".");
      }
      return nullptr;
    }
    // A file of diffusers names its class alone.
    if (by_class->model_type == class_name) return by_class;
    fields.note("ASSUMED_DEFAULT", "model_type",
                "\"model_type\" is absent; " + in_quotes(by_class->model_type) + " follows from the class " +
                    in_quotes(class_name) + ".");
    return by_class;
  }
  const Family* type = type_named(model_type);
  if (type != nullptr) return type;

  std::string message =
      "The model type " + in_quotes(model_type) + " is not modelled; these are: " + list_of_model_types() + ".";
  for (const std::string_view key : {"text_config", "llm_config", "language_config"}) {
    const Value* inner = config.find(key);
    const Value* inner_type = inner == nullptr ? nullptr : inner->find("model_type");
    if (inner_type != nullptr && type_named(inner_type->string) != nullptr) {
      message += " Its language model is a " + in_quotes(inner_type->string) + ": give " + in_quotes(key) +
                 " alone to estimate that part.";
    }
  }
  fields.error("UNSUPPORTED_ARCHITECTURE", "model_type", message, nearest_type(model_type));
  return nullptr;
}

/// What a class of that name computes: the longest ending that the family's classes have, or else that any family has,
/// or null.
const ClassSuffix* suffix_of(std::string_view class_name, const Family& own) {
  const ClassSuffix* best = nullptr;
  for (const ClassSuffix& known : own.classes) {
    if (ends_with(class_name, known.suffix) && (best == nullptr || known.suffix.size() > best->suffix.size())) {
      best = &known;
    }
  }
  for (const Family* row : all_families()) {
    const Family& type = *row;
    for (const ClassSuffix& known : type.classes) {
      if (!ends_with(class_name, known.suffix)) continue;
      if (best == nullptr || known.suffix.size() > best->suffix.size()) best = &known;
    }
  }
  return best;
}

/// The family's class with that head, or null where transformers has none.
const ClassSuffix* class_with(const Family& type, Head head) {
  for (const ClassSuffix& known : type.classes) {
    if (known.head == head) return &known;
  }
  return nullptr;
}

bool is_class_of(const Family& type, std::string_view name) {
  if (name == type.class_name) return true;
  if (!starts_with_folded(name, type.class_prefix)) return false;
  const std::string_view rest = name.substr(type.class_prefix.size());
  for (const ClassSuffix& known : type.classes) {
    if (rest == known.suffix) return true;
  }
  return false;
}

std::string list_of_classes(const Family& type) {
  std::string list;
  for (const ClassSuffix& known : type.classes) {
    if (!list.empty()) list += ", ";
    list += std::string(type.class_prefix) + std::string(known.suffix);
  }
  return list;
}

/// Whether the class is none of transformers' (towers.hpp).
bool is_made_by_swift(const Family& type, const ClassSuffix& own) {
  const ClassSuffix* const classes = type.classes.first;
  return own.head == Head::kSequenceClassification &&
         (classes == kSeeingClasses || classes == kHearingClasses || classes == kOmniClasses);
}

/// Sets the class that is trained and its head.
void choose_class(const Family& type, std::string_view class_override, ConfigFields& fields,
                  Architecture& architecture) {
  const std::string_view in_file = class_in(fields.object());
  const bool overridden = !class_override.empty();
  const std::string_view wanted = overridden ? class_override : in_file;
  architecture.class_name = wanted.empty() ? type.class_name : excerpt(wanted);
  const std::string_view name = architecture.class_name;

  auto report = [&](Severity severity, std::string_view code, std::string message) {
    fields.issues().push_back(Issue{std::string(code), severity,
                                    overridden ? "/architecture" : fields.path() + "/architectures", std::move(message),
                                    std::string(type.class_name)});
  };
  const ClassSuffix* suffix = suffix_of(name, type);
  const ClassSuffix* own = suffix == nullptr ? nullptr : class_with(type, suffix->head);
  if (own == nullptr) {
    report(Severity::kError, "UNSUPPORTED_ARCHITECTURE",
           "The class " + in_quotes(name) + " is not modelled; of this model type these are: " + list_of_classes(type) +
               ". Give one of them as \"architecture\".");
    return;
  }
  architecture.head = own->head;
  if (is_class_of(type, name)) {
    if (is_made_by_swift(type, *own)) {
      report(Severity::kNote, "ASSUMED_DEFAULT",
             "transformers has no class " + in_quotes(name) + ": it is what ms-swift makes of " +
                 in_quotes(type.class_name) + ", with a linear layer \"score\" in the place of the head.");
    }
    return;
  }
  if (overridden) {
    report(Severity::kError, "INVALID_VALUE",
           in_quotes(name) + " is no class of the model type " + in_quotes(type.model_type) +
               "; these are: " + list_of_classes(type) + ".");
    return;
  }
  report(Severity::kWarning, "INVALID_VALUE",
         in_quotes(name) + " is no class of transformers for the model type " + in_quotes(type.model_type) +
             "; it is read as the one of that type with the same head.");
}

/// What files are read into tables of, or divided by and multiplied, before anything is computed of it.
struct Most {
  std::string_view key;
  Count most;
  std::string_view of;
};
constexpr Count kMostLayers = 2000;   // twenty times as deep as any published language model
constexpr Count kMostExperts = 4096;  // twice as many as the largest that is published (Switch's 2048)
constexpr Count kMostPixels = 65535;  // a side of a picture, or of a part of it
constexpr Most kMost[] = {
    {"num_hidden_layers", kMostLayers, "layers"},
    {"n_layer", kMostLayers, "layers"},
    {"n_layers", kMostLayers, "layers"},
    {"num_layers", kMostLayers, "layers"},
    {"num_decoder_layers", kMostLayers, "layers"},
    {"encoder_layers", kMostLayers, "layers"},
    {"decoder_layers", kMostLayers, "layers"},
    {"decoder_num_hidden_layers", kMostLayers, "layers"},
    {"layers", kMostLayers, "layers"},
    {"depth", kMostLayers, "layers"},
    {"depths", kMostLayers, "layers"},
    {"num_blocks", kMostLayers, "layers"},
    {"num_global_layers", kMostLayers, "layers"},
    {"num_nextn_predict_layers", kMostLayers, "layers"},
    {"resampler_depth", kMostLayers, "layers"},
    {"num_experts", kMostExperts, "experts"},
    {"num_local_experts", kMostExperts, "experts"},
    {"n_routed_experts", kMostExperts, "experts"},
    {"moe_num_experts", kMostExperts, "experts"},
    {"image_size", kMostPixels, "pixels a side"},
    {"sample_size", kMostPixels, "pixels a side"},
    {"patch_size", kMostPixels, "pixels a side"},
    {"spatial_merge_size", kMostPixels, "patches a side"},
};

/// Whether a number, or each of a list, is at most so large.
bool is_at_most(const Value& value, Count most) {
  if (value.is_array()) {
    return std::all_of(value.items.begin(), value.items.end(),
                       [most](const Value& item) { return is_at_most(item, most); });
  }
  return !value.is_number() || value.real <= static_cast<double>(most);
}

/// The model's numbers, and those of each of its parts.
bool numbers_are_sane(const Value& config, ConfigFields& fields) {
  for (const Most& limit : kMost) {
    const Value* value = config.find(limit.key);
    if (value == nullptr || is_at_most(*value, limit.most)) continue;
    fields.error("INVALID_VALUE", limit.key,
                 "At most " + format_grouped(limit.most) + " " + std::string{limit.of} +
                     " are computed: " + in_quotes(limit.key) + " must be a mistake.");
    return false;
  }
  return std::all_of(config.members.begin(), config.members.end(), [&](const Value::Member& member) {
    if (member.value.kind != Value::Kind::kObject) return true;
    ConfigFields part(member.value, fields.path() + "/" + member.key, fields.issues());
    return numbers_are_sane(member.value, part);
  });
}

/// Whatever is counted later must fit 63 bits with room to spare: no trained model has 10^15 parameters.
bool size_is_sane(const Architecture& architecture, ConfigFields& fields) {
  const auto real = [](Count count) { return static_cast<double>(count); };
  const double width = real(architecture.hidden_size);
  const double attention = real(architecture.num_heads + 2 * architecture.num_kv_heads) * real(architecture.head_dim);
  const double per_layer = width * (2.0 * attention + 3.0 * real(architecture.intermediate_size));
  const Experts& experts = architecture.experts;
  const double of_experts = 3.0 * width * (real(experts.count) * real(experts.width) + real(experts.shared_width));
  const double layers = real(architecture.num_layers + architecture.num_decoder_layers);
  const double tables = 2.0 * width * real(architecture.vocab_size + architecture.max_positions);
  if ((per_layer + of_experts) * layers + tables < 1e15) return true;
  fields.issues().push_back(Issue{"INVALID_VALUE", Severity::kError, fields.path(),
                                  "These sizes give more than 10^15 parameters; one of them must be a mistake.", ""});
  return false;
}

/// PreTrainedConfig.num_labels and `problem_type`; without one, what transformers 5.12.1 loss/loss_utils.py
/// ForSequenceClassificationLoss takes for labels that are whole numbers.
void read_labels(ConfigFields& fields, Architecture& architecture) {
  const Value* labels = fields.find({"id2label"});
  architecture.num_labels = fields.count({"num_labels", "_num_labels"}, 2);
  if (labels != nullptr && labels->is_object()) {
    architecture.num_labels = static_cast<Count>(labels->members.size());
  }
  const std::string problem = fields.text({"problem_type"}, "");
  if (problem == "regression" || (problem.empty() && architecture.num_labels == 1)) {
    architecture.problem_type = ProblemType::kRegression;
  } else if (problem == "multi_label_classification") {
    architecture.problem_type = ProblemType::kMultiLabel;
  } else if (!problem.empty() && problem != "single_label_classification") {
    fields.error("INVALID_VALUE", "problem_type",
                 in_quotes(problem) +
                     " is no problem type; these are: regression, single_label_classification, "
                     "multi_label_classification.");
  }
  // GenericForTokenClassification.__init__ and its like; families with another rule overwrite it.
  architecture.classifier_dropout = fields.probability({"classifier_dropout"}, 0.1);
  // BertForQuestionAnswering and others make as many logits per token as there are labels, and unpack two.
  if (architecture.head == Head::kQuestionAnswering && architecture.num_labels != 2) {
    fields.error("INVALID_VALUE", "id2label",
                 "A span has a start and an end: " + in_quotes(architecture.class_name) + " needs two labels, not " +
                     std::to_string(architecture.num_labels) + ".");
  }
}

}  // namespace

std::vector<std::string_view> supported_model_types() {
  std::vector<std::string_view> types;
  for (const Family* row : all_families()) {
    if (row->program != nullptr) types.push_back(row->model_type);
  }
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
  const Family* type = find_type(config, class_override, fields);
  if (type == nullptr) return result;

  Architecture& architecture = result.architecture;
  architecture.program = type->program;
  architecture.layers_path = type->layers;
  architecture.body_prefix = type->layers.substr(0, type->layers.find('.') + 1);
  architecture.model_type = type->model_type;
  architecture.facts = type->facts;
  choose_class(*type, class_override, fields, architecture);
  read_labels(fields, architecture);
  if (!numbers_are_sane(config, fields)) return result;
  type->read(fields, architecture);
  if (has_error(result.issues) || !size_is_sane(architecture, fields)) return result;

  fields.report_unread(type->model_type);
  return result;
}

}  // namespace tidemark
