#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/options/builders.hpp"
#include "core/options/floats.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr Choice kBiases[] = {
    {"none", number(TrainedBiases::kNone), "none"},
    {"all", number(TrainedBiases::kAll), "all of the model"},
    {"lora_only", number(TrainedBiases::kLoraOnly), "those of adapted modules"},
};

constexpr Choice kTasks[] = {
    {"auto", number(TaskType::kAuto), "that of the head"},
    {"CAUSAL_LM", number(TaskType::kOther), "a language model"},
    {"SEQ_CLS", number(TaskType::kSequenceClassification), "classifier and score are trained in full"},
    {"TOKEN_CLS", number(TaskType::kTokenClassification), "the same"},
    {"QUESTION_ANS", number(TaskType::kQuestionAnswering), "qa_outputs is trained in full"},
    {"SEQ_2_SEQ_LM", number(TaskType::kOther), "an encoder-decoder"},
    {"FEATURE_EXTRACTION", number(TaskType::kOther), "no head is added"},
    {"none", number(TaskType::kOther), "no task is named"},
};

/// LoraConfig.init_lora_weights but for true and false; "pissa_niter_16" is one more.
constexpr std::string_view kInitialisations[] = {"gaussian", "eva",   "olora",      "pissa",
                                                 "corda",    "loftq", "orthogonal", "default"};

std::string lower_case(std::string_view text) {
  std::string lower{text};
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

void refuse(Issues& issues, std::string_view key, std::string wanted) {
  issues.push_back({"INVALID_VALUE", Severity::kError, "/adapter/" + std::string{key},
                    "\"adapter." + std::string{key} + "\" must be " + std::move(wanted) + ".", ""});
}

/// A list of names, or a string: a shorthand or a regular expression. On the command line all are lists.
ModuleChoice module_choice(const OptionValue& value) {
  const std::string& word = value.list.size() == 1 ? value.list.front() : value.text;
  if (lower_case(word) == "all-linear") return {ModuleChoice::Kind::kAllLinear, {}, {}};
  if (word == "attention") return {ModuleChoice::Kind::kAttention, {}, {}};
  if (value.text.empty()) return {ModuleChoice::Kind::kNames, value.list, {}};
  return {ModuleChoice::Kind::kExpression, {}, value.text};
}

void target_modules(Request& r, const OptionValue& v) {
  r.job.adapter.target_modules = module_choice(v);
}

void exclude_modules(Request& r, const OptionValue& v) {
  r.job.adapter.exclude_modules = module_choice(v);
}

/// {"q_proj": 8, ".*mlp.*": 4}
bool is_pattern_map(const Value& value, bool whole) {
  constexpr double kMost = 1e6;
  constexpr std::size_t kMostPatterns = 10000;
  constexpr std::size_t kLongestPattern = 1000;
  if (!value.is_object() || value.members.size() > kMostPatterns) return value.is_null();
  return std::all_of(value.members.begin(), value.members.end(), [whole](const Value::Member& m) {
    if (m.key.empty() || m.key.size() > kLongestPattern || !m.value.is_number()) return false;
    const double number = m.value.real;
    return number > 0.0 && number <= kMost && (!whole || number == std::floor(number));
  });
}

void check_ranks(const OptionValue& v, const ReadSoFar&, Issues& issues) {
  if (!is_pattern_map(*v.document, true))
    refuse(issues, "rank_pattern", "an object of ranks by pattern: {\"q_proj\": 8}");
}

void check_alphas(const OptionValue& v, const ReadSoFar&, Issues& issues) {
  if (!is_pattern_map(*v.document, false))
    refuse(issues, "alpha_pattern", "an object of numbers by pattern: {\"q_proj\": 16}");
}

void rank_pattern(Request& r, const OptionValue& v) {
  if (!is_pattern_map(*v.document, true)) return;
  for (const Value::Member& m : v.document->members) {
    r.job.adapter.rank_pattern.push_back({m.key, static_cast<Count>(m.value.real)});
  }
}

bool is_layer(const Value& value) {
  constexpr double kMost = 1e6;
  return value.is_number() && value.real >= 0.0 && value.real <= kMost && value.real == std::floor(value.real);
}

bool are_layers(const Value& value) {
  constexpr std::size_t kMostLayers = 10000;
  if (!value.is_array()) return is_layer(value) || value.is_null();
  return value.items.size() <= kMostLayers && std::all_of(value.items.begin(), value.items.end(), is_layer);
}

void check_layers(const OptionValue& v, const ReadSoFar&, Issues& issues) {
  if (!are_layers(*v.document)) {
    refuse(issues, "layers_to_transform", "a list of layers' numbers, from 0");
  }
}

void layers_to_transform(Request& r, const OptionValue& v) {
  if (!are_layers(*v.document)) return;
  std::vector<Count>& layers = r.job.adapter.layers_to_transform;
  if (v.document->is_number()) layers.push_back(static_cast<Count>(v.document->real));
  for (const Value& item : v.document->items) layers.push_back(static_cast<Count>(item.real));
}

void check_initialisation(const OptionValue& v, const ReadSoFar&, Issues& issues) {
  const Value& value = *v.document;
  const std::string word = value.is_string() ? lower_case(value.string) : "";
  const bool known =
      std::find(std::begin(kInitialisations), std::end(kInitialisations), word) != std::end(kInitialisations);
  if (value.is_bool() || known || word.rfind("pissa_niter_", 0) == 0) return;
  refuse(issues, "init_lora_weights",
         "true, false, gaussian, eva, olora, pissa, pissa_niter_N, corda, loftq or orthogonal");
}

constexpr Option kOptions[] = {
    integer("adapter.r", "16", "Rank", "Rank.")
        .within(1, 65536)
        .usually(1, 512)
        .known_as("lora_r,lora_rank")
        .spelled("--rank")
        .into<&TrainingJob::adapter, &Adapter::r>(),
    integer("adapter.oft_block_size", "null", "Block of OFT", "Inputs that an orthogonal adapter turns together; 32.")
        .within(1, 65536)
        .when("method", "oft,qoft")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          r.job.adapter.r = std::max<Count>((v.integer + 2) / 4, 1);  // (b - 1)/4: method.cpp says why
        }),
    real("adapter.lora_alpha", "32", "Alpha", "Scaling numerator; it moves no memory.")
        .within(0, 1e6)
        .known_as("lora_alpha")
        .further()
        .into<&TrainingJob::adapter, &Adapter::lora_alpha>(),
    real("adapter.lora_dropout", "0.0", "Dropout", "Dropout on the input of each adapter.")
        .within(0, 1, "probability")
        .known_as("lora_dropout")
        .into<&TrainingJob::adapter, &Adapter::lora_dropout>(),
    texts("adapter.target_modules", "\"all-linear\"", "Adapted modules",
          "Adapted modules: all-linear, attention, a list of names or their last parts (q_proj,v_proj), or as a string "
          "a regular expression for the whole name.")
        .known_as("lora_target_modules,target_modules,lora_target")
        .sets(target_modules),
    texts("adapter.modules_to_save", "[]", "Modules trained in full",
          "Modules trained in full beside the adapters, by the ends of their names: lm_head,embed_tokens.")
        .known_as("lora_modules_to_save,modules_to_save,additional_target")
        .further()
        .into<&TrainingJob::adapter, &Adapter::modules_to_save>(),
    texts("adapter.exclude_modules", "[]", "Modules not adapted",
          "Modules that get no adapter, whatever the targets: a list of names or last parts, or an expression.")
        .further()
        .sets(exclude_modules),
    of_type(OptionType::kAny, "adapter.rank_pattern", "{}", "Ranks by name",
            "Ranks that differ, by a name's end or a regular expression for it: {\"down_proj\": 8}.")
        .further()
        .checked(check_ranks)
        .sets(rank_pattern),
    of_type(OptionType::kAny, "adapter.alpha_pattern", "{}", "Alphas by name",
            "Scalings that differ, by the same patterns; they move no memory.")
        .further()
        .checked(check_alphas),
    of_type(OptionType::kAny, "adapter.layers_to_transform", "null", "Adapted layers",
            "Numbers of the layers that get adapters; only with a list of names.")
        .further()
        .checked(check_layers)
        .sets(layers_to_transform),
    texts("adapter.layers_pattern", "[]", "Name of the list of layers",
          "Names of the lists whose numbers layers_to_transform means: layers, h. None: any.")
        .further()
        .into<&TrainingJob::adapter, &Adapter::layers_pattern>(),
    choice("adapter.bias", "\"none\"", kBiases, "Trained biases", "Biases of the model that are trained too.")
        .further()
        .into<&TrainingJob::adapter, &Adapter::bias>(),
    choice("adapter.task_type", "\"auto\"", kTasks, "Task", "PEFT's task type: a classifier's head is trained in full.")
        .further()
        .into<&TrainingJob::adapter, &Adapter::task_type>(),
    flag("adapter.use_rslora", false, "rsLoRA", "Scaling by the root of the rank; it moves no memory.").further(),
    flag("adapter.fan_in_fan_out", false, "Transposed weights", "How the base stores its weights; it moves no memory.")
        .further(),
    of_type(OptionType::kAny, "adapter.init_lora_weights", "true", "Initialisation",
            "How adapters start (true, gaussian, pissa, olora, eva, corda, loftq, orthogonal); training takes the same "
            "memory.")
        .further()
        .checked(check_initialisation),
    of_type(OptionType::kAny, "adapter.trainable_token_indices", "null", "Trained tokens",
            "Tokens whose embeddings are trained.")
        .further()
        .refused("Training single rows of the token table is not modelled yet; modules_to_save trains all of it."),
    texts("adapter.target_parameters", "[]", "Adapted parameters",
          "Parameters, rather than modules, that get adapters: experts.gate_up_proj, experts.down_proj.")
        .further()
        .into<&TrainingJob::adapter, &Adapter::target_parameters>(),
    choice("adapter.dtype", "\"fp32\"", kFloats, "Dtype of the adapters",
           "Dtype of the adapters' weights; PEFT keeps them in fp32 unless told otherwise.")
        .known_as("lora_dtype")
        .into<&TrainingJob::adapter, &Adapter::dtype>(),
    flag("adapter.use_dora", false, "DoRA", "DoRA: a magnitude vector beside each adapter.")
        .known_as("use_dora,peft_use_dora")
        .spelled("--dora")
        .further()
        .into<&TrainingJob::adapter, &Adapter::use_dora>(),
    flag("lora_target_linear", false, "All linear layers", "axolotl's word for target_modules all-linear.")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          OptionValue all;
          all.list = {"all-linear"};
          all.text = "all-linear";
          if (v.boolean) target_modules(r, all);
        }),
};

}  // namespace

constinit const Topic kAdapterTopic{{"adapter", "LoRA adapters (method lora or qlora)", true, {"method", "lora,qlora"}},
                                    kPacked<kOptions>};

}  // namespace tidemark
