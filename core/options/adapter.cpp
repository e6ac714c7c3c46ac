#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/options/adapter_kinds.hpp"
#include "core/options/builders.hpp"
#include "core/options/floats.hpp"
#include "core/options/module_choice.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr Choice kKinds[] = {
    {"lora", number(AdapterKind::kLora), "low-rank updates"},
    {"adalora", number(AdapterKind::kAdaLora), "updates whose ranks adapt"},
    {"ia3", number(AdapterKind::kIa3), "vectors that scale"},
    {"loha", number(AdapterKind::kLoHa), "Hadamard products of low-rank updates"},
    {"lokr", number(AdapterKind::kLoKr), "Kronecker products"},
    {"vera", number(AdapterKind::kVera), "vectors beside shared random matrices"},
    {"oft", number(AdapterKind::kOft), "orthogonal blocks that turn the input"},
    {"boft", number(AdapterKind::kBoft), "orthogonal blocks that turn the weight"},
    {"ln_tuning", number(AdapterKind::kLnTuning), "copies of the norms"},
    {"prompt_tuning", number(AdapterKind::kPromptTuning), "virtual tokens"},
    {"p_tuning", number(AdapterKind::kPTuning), "virtual tokens from a small network"},
    {"prefix_tuning", number(AdapterKind::kPrefixTuning), "virtual keys and values"},
};

constexpr Choice kReparameterizations[] = {
    {"MLP", 0, "three linear layers"},
    {"LSTM", 0, "a recurrent network", false},
};

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

/// peft 0.18: the defaults of each kind's configuration class.
struct KindDefaults {
  AdapterKind kind;
  Count r;           ///< r, of AdaLoRA init_r
  Count block_size;  ///< oft_block_size, boft_block_size
};
constexpr KindDefaults kDefaults[] = {
    {AdapterKind::kLora, 16, 0}, {AdapterKind::kAdaLora, 12, 0}, {AdapterKind::kLoHa, 8, 0},
    {AdapterKind::kLoKr, 8, 0},  {AdapterKind::kVera, 256, 0},   {AdapterKind::kOft, 0, 32},
    {AdapterKind::kBoft, 0, 4},
};

/// "method": "oft" says the same.
void check_kind(const OptionValue& v, const ReadSoFar& read, Issues& issues) {
  const AdapterKind by_method = read.request.job.adapter.kind;
  if (by_method == AdapterKind::kLora || static_cast<int>(by_method) == v.choice) return;
  refuse(issues, "kind", "the one that \"method\" names, or left out");
}

void target_modules(Request& r, const OptionValue& v) {
  r.job.adapter.target_modules = module_choice(v);
  r.open.targets = false;
  if (v.text == "auto" || (v.list.size() == 1 && v.list.front() == "auto"))
    r.job.adapter.target_modules = {ModuleChoice::Kind::kByPeft, {}, {}};
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

void feedforward_modules(Request& r, const OptionValue& v) {
  r.job.adapter.feedforward_modules = module_choice(v);
  r.job.adapter.knows_feedforward = true;
}

constexpr Option kOptions[] = {
    choice("adapter.kind", "\"lora\"", kKinds, "Kind of adapter", "Which of PEFT's adapters (peft_type).")
        .known_as("peft_type")
        .further()
        .checked(check_kind)
        .sets([](Request& r, const OptionValue& v) { set_adapter_kind(r.job.adapter, v.text); }),
    integer("adapter.r", "16", "Rank", "Rank.")
        .within(1, 65536)
        .usually(1, 512)
        .known_as("lora_r,lora_rank")
        .spelled("--rank")
        .when("adapter.kind", "lora,loha,lokr,vera,oft")
        .sets([](Request& r, const OptionValue& v) {
          // peft 0.18 tuners/adalora/config.py: "`r` is not used in AdaLora and will be ignored"
          if (r.job.adapter.kind != AdapterKind::kAdaLora) r.job.adapter.r = v.integer;
        }),
    integer("adapter.init_r", "null", "First rank", "AdaLoRA: rank at the start, 12; all memory is taken for it.")
        .within(1, 65536)
        .when("adapter.kind", "adalora")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          if (r.job.adapter.kind == AdapterKind::kAdaLora) r.job.adapter.r = v.integer;
        }),
    integer("adapter.target_r", "8", "Last rank", "AdaLoRA: mean rank at the end; it moves no memory.")
        .within(1, 65536)
        .when("adapter.kind", "adalora")
        .further(),
    texts("adapter.feedforward_modules", "null", "Feed-forward modules",
          "IA3: those of the targets whose inputs are scaled; none named: PEFT's of this model.")
        .when("adapter.kind", "ia3")
        .further()
        .sets(feedforward_modules),
    flag("adapter.decompose_both", false, "Both factors", "LoKr: the left factor is of low rank, too.")
        .when("adapter.kind", "lokr")
        .further()
        .into<&TrainingJob::adapter, &Adapter::decompose_both>(),
    integer("adapter.decompose_factor", "-1", "Size of a factor", "LoKr: rows of the left factor; -1: near the root.")
        .within(-1, 65536)
        .when("adapter.kind", "lokr")
        .further()
        .into<&TrainingJob::adapter, &Adapter::decompose_factor>(),
    integer("adapter.oft_block_size", "32", "Block of OFT", "Inputs that a block turns; 0: adapter.r says how many.")
        .within(0, 65536)
        .when("adapter.kind", "oft")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          if (r.job.adapter.kind == AdapterKind::kOft) r.job.adapter.block_size = v.integer;
        }),
    flag("adapter.block_share", false, "Shared blocks", "OFT: all blocks of a module are one.")
        .when("adapter.kind", "oft")
        .further()
        .into<&TrainingJob::adapter, &Adapter::block_share>(),
    flag("adapter.use_cayley_neumann", true, "Series", "OFT: a series takes the place of a solver.")
        .when("adapter.kind", "oft")
        .further()
        .into<&TrainingJob::adapter, &Adapter::use_cayley_neumann>(),
    integer("adapter.num_cayley_neumann_terms", "5", "Terms of it", "OFT: how many terms.")
        .within(1, 100)
        .when("adapter.kind", "oft")
        .further()
        .into<&TrainingJob::adapter, &Adapter::num_cayley_neumann_terms>(),
    flag("adapter.coft", false, "Constrained OFT", "OFT: blocks stay near the identity.")
        .when("adapter.kind", "oft")
        .further()
        .refused("Constrained OFT is not modelled yet; leave \"coft\" out."),
    integer("adapter.boft_block_size", "4", "Block of BOFT", "Inputs that a block turns; 0: boft_block_num counts.")
        .within(0, 65536)
        .when("adapter.kind", "boft")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          if (r.job.adapter.kind == AdapterKind::kBoft) r.job.adapter.block_size = v.integer;
        }),
    integer("adapter.boft_block_num", "0", "Blocks of BOFT", "Blocks of each module, where boft_block_size is 0.")
        .within(0, 65536)
        .when("adapter.kind", "boft")
        .further()
        .into<&TrainingJob::adapter, &Adapter::block_num>(),
    integer("adapter.num_virtual_tokens", "20", "Virtual tokens", "Tokens that a learned prompt puts before a sample.")
        .within(1, 65536)
        .when("adapter.kind", "prompt_tuning,p_tuning,prefix_tuning")
        .further()
        .into<&TrainingJob::adapter, &Adapter::num_virtual_tokens>(),
    integer("adapter.encoder_hidden_size", "null", "Width of the network",
            "P-tuning, prefix tuning: width of the network that makes them; null: the model's, of keys that of a "
            "token's keys.")
        .within(1, 1e6)
        .when("adapter.kind", "p_tuning,prefix_tuning")
        .further()
        .into<&TrainingJob::adapter, &Adapter::encoder_hidden_size>(),
    choice("adapter.encoder_reparameterization_type", "\"MLP\"", kReparameterizations, "Kind of network",
           "P-tuning: what makes the tokens.")
        .when("adapter.kind", "p_tuning")
        .further(),
    flag("adapter.prefix_projection", false, "Projected prefix", "Prefix tuning: a small network makes the prefix.")
        .when("adapter.kind", "prefix_tuning")
        .further()
        .into<&TrainingJob::adapter, &Adapter::prefix_projection>(),
    real("adapter.lora_alpha", "32", "Alpha", "Scaling numerator; it moves no memory.")
        .within(0, 1e6)
        .known_as("lora_alpha")
        .further()
        .into<&TrainingJob::adapter, &Adapter::lora_alpha>(),
    real("adapter.lora_dropout", "0.0", "Dropout", "Dropout on the input of each adapter.")
        .within(0, 1, "probability")
        .known_as("lora_dropout,adapter.vera_dropout")
        .into<&TrainingJob::adapter, &Adapter::lora_dropout>(),
    texts("adapter.target_modules", "\"all-linear\"", "Adapted modules",
          "Adapted modules: all-linear, attention, a list of names or their last parts (q_proj,v_proj), as a string a "
          "regular expression for the whole name, or auto: PEFT's own for the model type, as adapters beside LoRA have "
          "them where none are named.")
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

std::span<const Choice> adapter_kinds() {
  return kKinds;
}

void set_adapter_kind(Adapter& adapter, std::string_view word) {
  const auto* kind =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Choice& c) { return c.name == word; });
  if (kind == std::end(kKinds)) return;
  adapter.kind = static_cast<AdapterKind>(kind->value);
  const bool all = adapter.kind == AdapterKind::kLora || adapter.learns_prompt();
  adapter.target_modules.kind = all ? ModuleChoice::Kind::kAllLinear : ModuleChoice::Kind::kByPeft;
  for (const KindDefaults& d : kDefaults) {
    if (d.kind != adapter.kind) continue;
    adapter.r = d.r;
    adapter.block_size = d.block_size;
  }
}

constinit const Topic kAdapterTopic{
    {"adapter", "Adapters of PEFT (method lora or qlora)", true, {"method", "lora,qlora"}}, kPacked<kOptions>};

}  // namespace tidemark
