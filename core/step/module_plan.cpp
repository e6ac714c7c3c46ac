#include "core/step/module_plan.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/job/framework.hpp"
#include "core/job/ia3_modules.hpp"
#include "core/job/lora_targets.hpp"
#include "core/job/module_pattern.hpp"
#include "core/layers/full_name.hpp"
#include "core/layers/program.hpp"
#include "core/plan/sharded.hpp"
#include "core/step/census.hpp"
#include "core/step/expert_targets.hpp"
#include "core/units/nearest.hpp"

namespace tidemark {
namespace {

/// Bytes of names times states of patterns that are looked at: some tenths of a second.
constexpr std::size_t kMostWork = 100'000'000;

bool has_adapters(const TrainingJob& job) {
  return job.method == Method::kLora || job.method == Method::kQlora;
}

void add_error(Issues& issues, std::string_view code, std::string_view path, std::string message,
               std::string suggestion = "") {
  issues.push_back({std::string{code}, Severity::kError, std::string{path}, std::move(message), std::move(suggestion)});
}

std::string_view last_part(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

bool freezes_parts(const TrainingJob& job) {
  return job.freeze_vision || job.freeze_projector || job.freeze_llm;
}

/// Whether a name is of what lies between a tower and the language model.
bool is_projector(std::string_view name) {
  constexpr std::string_view kBetween[] = {"projector",         "merger",  "connector",          "aligner",
                                           "vision_projection", "qformer", "language_projection"};
  if (name.find("vit_merger") != std::string_view::npos) return false;  // inside MiniCPM-V 4.6's tower
  return std::any_of(std::begin(kBetween), std::end(kBetween),
                     [name](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

/// Whether the module lies in a part of a model that sees which the job freezes: ms-swift llm/model/model_arch.py and
/// LLaMA-Factory model/model_utils/visual.py name language model, projector ("aligner") and tower by their modules.
bool in_frozen_part(const Architecture& architecture, const TrainingJob& job, std::string_view name) {
  if (architecture.language == nullptr || !freezes_parts(job)) return false;
  const auto has = [name](std::string_view word) { return name.find(word) != std::string_view::npos; };
  const bool is_thinker = architecture.model_type.ends_with("_thinker") && name.substr(0, 6) == "model.";
  if (is_thinker || has("language_model.") || has("text_model.") || has("lm_head")) return job.freeze_llm;
  return is_projector(name) ? job.freeze_projector : job.freeze_vision;
}

/// How a job treats modules, asked one by one.
class Rules {
 public:
  virtual ~Rules() = default;
  /// The treatment of a module, known by its full name.
  virtual Treatment treat(const Module& module, const std::string& name) = 0;
  /// Whether layers whose numbers have as many digits may fare differently.
  virtual bool tells_layers_apart() const = 0;
  /// How many steps a byte of a name takes at most.
  virtual std::size_t work() const = 0;
  /// Where the request says so.
  virtual std::string_view path() const = 0;
};

/// Patterns of parameters' names.
class NamePatterns {
 public:
  NamePatterns(const Architecture& architecture, std::string_view path) : architecture_(architecture), path_(path) {}

  void read(const std::vector<std::string>& texts, Issues& issues) {
    for (const std::string& text : texts) {
      std::string error;
      auto pattern = NamePattern::compile(text, error);
      if (!pattern) {
        add_error(issues, "INVALID_VALUE", path_,
                  "\"" + text.substr(0, 100) + "\" cannot be read as a regular expression: " + error + ".");
        continue;
      }
      entries_.push_back({text, std::move(*pattern), false});
    }
  }

  bool empty() const { return entries_.empty(); }

  bool name(const std::string& parameter) {
    bool named = false;
    for (Entry& e : entries_) {
      // Once a parameter is named, the others are asked only whether they are of use.
      if ((named && e.used) || !(e.pattern.names(parameter) || names_part(e.text, parameter))) continue;
      named = e.used = true;
    }
    return named;
  }

  bool tells_layers_apart() const {
    return std::any_of(entries_.begin(), entries_.end(), [](const Entry& e) { return e.pattern.tells_layers_apart(); });
  }

  std::size_t work() const {
    std::size_t steps = 0;
    for (const Entry& e : entries_) steps += e.pattern.work();
    return steps;
  }

  void report_unused(const std::string& does, Issues& issues) const {
    for (const Entry& e : entries_) {
      if (e.used) continue;
      issues.push_back({"UNMATCHED_PATTERN", Severity::kWarning, std::string{path_},
                        "\"" + e.text.substr(0, 100) + "\" fits no parameter of this model: it " + does + " nothing.",
                        ""});
    }
  }

 private:
  struct Entry {
    std::string text;     // as written
    NamePattern pattern;  // to ask
    bool used = false;    // it has named something
  };

  /// "vision_tower" is the tower of every model that sees, "projector" what lies between it and the language model,
  /// whatever the family calls them.
  bool names_part(std::string_view pattern, std::string_view parameter) const {
    if (architecture_.language == nullptr) return false;
    if (pattern == "projector") return is_projector(parameter);
    if (pattern != "vision_tower") return false;
    constexpr std::string_view kNames[] = {"visual.", "vision_model.", "vision_encoder."};
    return std::any_of(std::begin(kNames), std::end(kNames),
                       [parameter](std::string_view name) { return parameter.find(name) != std::string_view::npos; });
  }

  const Architecture& architecture_;
  std::string_view path_;
  std::vector<Entry> entries_;
};

/// `freeze`: a parameter is trained unless a pattern names it. `trainable`: the opposite, and the last word beside it.
class FreezeRules : public Rules {
 public:
  FreezeRules(const Architecture& architecture, const TrainingJob& job, Issues& issues)
      : architecture_(architecture), job_(job), frozen_(architecture, "/freeze"), trained_(architecture, "/trainable") {
    frozen_.read(job.freeze, issues);
    trained_.read(job.trainable, issues);
  }

  Treatment treat(const Module& module, const std::string& name) override {
    Treatment how;
    how.path = module.path;
    how.parameters = module.parameters;
    const bool by_part = in_frozen_part(architecture_, job_, name);
    for (const std::string_view parameter : module.parameters) {
      const std::string full =
          (module.is_token_table && is_named_by_head() ? "lm_head.decoder" : name) + "." + std::string{parameter};
      if (frozen_.empty() && module.is_tied) {  // named_parameters() has the table alone, which decides
        how.trained.push_back(1);
        continue;
      }
      const bool by_name = (frozen_.empty() ? !trained_.empty() : frozen_.name(full)) && !trained_.name(full);
      how.trained.push_back(by_name || by_part ? 0 : 1);
    }
    return how;
  }

  bool tells_layers_apart() const override { return frozen_.tells_layers_apart() || trained_.tells_layers_apart(); }

  std::size_t work() const override { return frozen_.work() + trained_.work(); }

  std::string_view path() const override { return "/freeze"; }

  void report_unused(Issues& issues) const {
    frozen_.report_unused("freezes", issues);
    trained_.report_unused("trains", issues);
  }

 private:
  /// named_parameters() has a shared table under the first of its names.
  bool is_named_by_head() const {
    const bool has_words = architecture_.head == Head::kMaskedLm || architecture_.head == Head::kCausalLm;
    return has_words && architecture_.tie_word_embeddings && architecture_.facts.head_first;
  }

  const Architecture& architecture_;
  const TrainingJob& job_;
  NamePatterns frozen_, trained_;
};

/// Modules that PEFT's task types train beside the adapters: peft_model.py PeftModelForSequenceClassification and its
/// like.
struct TaskModules {
  std::vector<std::string> before;  ///< known when targets are chosen, which leave them alone
  std::vector<std::string> after;   ///< added behind it
};

TaskType task_of(const Architecture& architecture) {
  const auto is_for = [&](std::string_view task) { return architecture.class_name.find(task) != std::string::npos; };
  if (is_for("ForSequenceClassification")) return TaskType::kSequenceClassification;
  if (is_for("ForTokenClassification")) return TaskType::kTokenClassification;
  if (is_for("ForQuestionAnswering")) return TaskType::kQuestionAnswering;
  return TaskType::kOther;
}

TaskModules modules_of_task(TaskType task, const Architecture& architecture) {
  if (task == TaskType::kAuto) task = task_of(architecture);
  switch (task) {
    case TaskType::kSequenceClassification:
      return {{"classifier", "score"}, {}};
    case TaskType::kTokenClassification:
      return {{}, {"classifier", "score"}};
    case TaskType::kQuestionAnswering:
      return {{}, {"qa_outputs"}};
    default:
      return {};
  }
}

/// PEFT's LoRA: parameters are frozen; targets get adapters, modules to save are copied, and biases may be trained.
class AdapterRules : public Rules {
 public:
  AdapterRules(const Architecture& architecture, const TrainingJob& job, const LayerCensus& census, Issues& issues)
      : architecture_(architecture),
        job_(job),
        adapter_(with_expert_targets(architecture, job, census, issues)),
        takes_convolutions_(runs_sd_scripts(job)),
        task_(modules_of_task(job.adapter.task_type, architecture)),
        targets_(adapter_, attention_of(census.modules), task_.before, issues),
        feedforward_(job.adapter, architecture.model_type, issues),
        issues_(issues),
        trained_(architecture, "/trainable") {
    trained_.read(job.trainable, issues);
    for (const LayerPlan::Stack& stack : census.stacks) lists_.push_back(full_name(architecture, stack.path));
    for (const std::string& name : adapter_.modules_to_save) saved_.push_back({name, false, true});
    for (const auto* names : {&task_.before, &task_.after}) {
      for (const std::string& name : *names) saved_.push_back({name, false, false});
    }
  }

  Treatment treat(const Module& module, const std::string& name) override {
    look_at_containers(name);
    Treatment how;
    how.path = module.path;
    how.parameters = module.parameters;
    how.copied = is_saved(name);
    const bool linear = module.kind == ModuleKind::kLinear || module.kind == ModuleKind::kConv1d;
    if (linear && !module.is_output_head) linear_names_.insert(std::string{last_part(name)});
    if (!adapter_.learns_prompt() && is_targeted(name, linear && !module.is_output_head) &&
        !in_frozen_part(architecture_, job_, name)) {
      adapt(module, name, how);
    }
    if (how.copied && (how.rank > 0 || (module.is_quantised && job_.method == Method::kQlora))) {
      refuse_saved(name, how.rank > 0);
    }
    for (const std::string_view parameter : module.parameters) {
      const bool beside = !trained_.empty() && trained_.name(name + "." + std::string{parameter});
      how.trained.push_back(beside || trains_bias(module, how, name, parameter) ? 1 : 0);
    }
    adapt_parameters(module, name, how);
    return how;
  }

  Count widest_in = 0, widest_out = 0;  ///< of the adapted linear layers

  bool tells_layers_apart() const override {
    return targets_.tells_layers_apart() || trained_.tells_layers_apart() ||
           std::any_of(saved_.begin(), saved_.end(), [](const Saved& s) { return has_digit(s.name); });
  }

  std::size_t work() const override {
    return targets_.work() + trained_.work() + saved_.size() + adapter_.target_parameters.size();
  }

  std::string_view path() const override { return "/adapter"; }

  void report_unused(Issues& issues) const {
    targets_.report_unused(issues);
    trained_.report_unused("trains", issues);
    for (const std::string& target : job_.adapter.target_parameters) {
      if (used_parameters_.count(target) != 0) continue;
      issues.push_back({"UNMATCHED_PATTERN", Severity::kWarning, "/adapter/target_parameters",
                        "\"" + target.substr(0, 100) + "\" is the end of no parameter's name: it adapts nothing.", ""});
    }
    for (const Saved& s : saved_) {
      if (s.used || !s.stated) continue;
      issues.push_back({"UNMATCHED_PATTERN", Severity::kWarning, "/adapter/modules_to_save",
                        "\"" + s.name.substr(0, 100) + "\" is the end of no module's name: nothing is saved for it.",
                        ""});
    }
  }

  /// PEFT raises when nothing is adapted.
  void report_nothing_adapted() const {
    const ModuleChoice& chosen = adapter_.target_modules;
    std::string what =
        chosen.kind == ModuleChoice::Kind::kExpression ? "\"" + chosen.expression.substr(0, 100) + "\"" : std::string{};
    for (std::size_t i = 0; i < chosen.names.size() && i < 5; ++i) {
      what += (i == 0 ? "\"" : ", \"") + chosen.names[i].substr(0, 60) + "\"";
    }
    if (what.empty()) what = "what is targeted";
    std::string message = "No module of this model is adapted: " + what + " fits none that is not excluded";
    if (!adapter_.layers_to_transform.empty()) message += " and lies in layers_to_transform";
    message += ". PEFT raises a ValueError. Its linear layers are " + linear_layers() + ".";
    add_error(issues_, "UNMATCHED_PATTERN", "/adapter/target_modules", std::move(message), suggestion());
  }

 private:
  /// An entry of modules_to_save.
  struct Saved {
    std::string name;     // end of a module's name
    bool used = false;    // it has been one
    bool stated = false;  // by the request, not by the task
  };

  /// A targeted module: what PEFT's classes take it for.
  void adapt(const Module& module, const std::string& name, Treatment& how) {
    const AdapterKind kind = adapter_.kind;
    if (kind == AdapterKind::kLnTuning) {  // ln_tuning/layer.py LNTuningLayer: a deep copy is trained in its place
      how.copied = true;
    } else if (module.kind == ModuleKind::kConvolution && !takes_convolutions_) {
      refuse_convolution(name);
    } else if (module.kind == ModuleKind::kOther ||
               (kind != AdapterKind::kLora && module.kind == ModuleKind::kEmbedding) ||
               (!takes_conv1d(kind) && module.kind == ModuleKind::kConv1d)) {
      refuse_target(name);
    } else {
      how.rank = std::max<Count>(targets_.rank(name), 1);
      how.feedforward = kind == AdapterKind::kIa3 && feedforward_.names(name);
      widest_in = std::max<Count>(widest_in, module.in_features);
      widest_out = std::max<Count>(widest_out, module.out_features);
      refuse_blocks(module, name);
    }
  }

  /// boft/layer.py update_layer
  void refuse_blocks(const Module& module, const std::string& name) {
    const Count by = adapter_.block_size > 0 ? adapter_.block_size : adapter_.block_num;
    if (adapter_.kind != AdapterKind::kBoft || by <= 0 || module.in_features % by == 0) return;
    if (std::exchange(refused_target_, true)) return;
    add_error(issues_, "INVALID_VALUE",
              adapter_.block_size > 0 ? "/adapter/boft_block_size" : "/adapter/boft_block_num",
              name + " has " + std::to_string(module.in_features) +
                  " inputs, which these blocks do not divide: PEFT raises a ValueError.");
  }

  static bool has_digit(std::string_view text) {
    return std::any_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  }

  /// The attention's linear layers, as a list for PEFT names them: by the last two parts.
  static std::vector<std::string> attention_of(const Census& census) {
    std::set<std::string> names;
    for (const std::vector<Module>& layer : census.layers) {
      for (const Module& module : layer) {
        const bool linear = module.kind == ModuleKind::kLinear || module.kind == ModuleKind::kConv1d;
        if (!linear || module.role != ModuleRole::kAttention) continue;
        const std::size_t dot = module.path.rfind('.');
        const std::size_t before = dot == std::string::npos || dot == 0 ? dot : module.path.rfind('.', dot - 1);
        names.insert(before == std::string::npos ? module.path : module.path.substr(before + 1));
      }
    }
    return {names.begin(), names.end()};
  }

  // unsloth 2026.8.19 models/vision.py: get_peft_model hands PEFT the Linear inside of a Gemma4ClippableLinear.
  bool wraps(std::string_view outside, std::string_view name) const {
    constexpr std::string_view kInside = ".linear";
    return job_.framework.name == "unsloth" && name.size() == outside.size() + kInside.size() &&
           name.substr(outside.size()) == kInside;
  }

  bool is_targeted(std::string_view name, bool linear) {
    using Verdict = LoraTargets::Verdict;
    const std::string_view outside = name.substr(0, std::min(name.rfind('.'), name.size()));
    return targets_.verdict(name, linear) == Verdict::kTargeted ||
           (wraps(outside, name) && targets_.verdict(outside, false) == Verdict::kTargeted);
  }

  /// Modules that hold this one, each once: no adapter fits them.
  void look_at_containers(const std::string& name) {
    if (adapter_.target_modules.kind == ModuleChoice::Kind::kAllLinear) return;
    for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      const std::string container = name.substr(0, dot);
      if (!containers_.insert(container).second || wraps(container, name)) continue;
      if (targets_.verdict(container, false) == LoraTargets::Verdict::kTargeted) refuse_target(container);
    }
  }

  /// utils/other.py _set_trainable: the end of the name, in letters, of the module or of one that holds it.
  bool is_saved(const std::string& name) {
    bool saved = false;
    for (Saved& s : saved_) {
      for (std::size_t end = name.find('.'); end != std::string::npos; end = name.find('.', end + 1)) {
        if (ends_with(std::string_view{name}.substr(0, end), s.name)) saved = s.used = true;
      }
      if (ends_with(name, s.name)) saved = s.used = true;
      for (const std::string& list : lists_) {
        if (s.used && ends_with(list, s.name)) refuse_list(s.name, list);
      }
    }
    return saved;
  }

  static bool ends_with(std::string_view name, std::string_view end) {
    return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
  }

  /// tuners_utils.py _mark_only_adapters_as_trainable
  bool trains_bias(const Module& module, const Treatment& how, const std::string& name,
                   std::string_view parameter) const {
    if (adapter_.bias == TrainedBiases::kAll) {
      return (name + "." + std::string{parameter}).find("bias") != std::string::npos;
    }
    return adapter_.bias == TrainedBiases::kLoraOnly && how.rank > 0 && module.kind != ModuleKind::kEmbedding &&
           parameter == "bias";
  }

  /// tuners_utils.py _inject_parameters: the whole name, or its end behind a dot.
  void adapt_parameters(const Module& module, const std::string& name, Treatment& how) {
    if (adapter_.target_parameters.empty()) return;
    for (const std::string_view parameter : module.parameters) {
      const std::string key = "." + name + "." + std::string{parameter};
      bool adapted = false;
      for (const std::string& target : adapter_.target_parameters) {
        if (!ends_with(key, "." + target)) continue;
        adapted = true;
        used_parameters_.insert(target);
      }
      const std::string full = name + "." + std::string{parameter};
      // Routers are nn.Linear in some families: the adapter of its weight is as large as one of the module.
      const bool linear = module.kind == ModuleKind::kLinear && parameter == "weight";
      if (adapted && linear) how.rank = targets_.rank(full);
      const bool matrix = module.kind == ModuleKind::kOther && module.in_features > 0 && parameter == "weight";
      if (adapted && !module.is_expert && !linear && !matrix) refuse_parameter(full);
      how.adapted.push_back(adapted && !linear ? targets_.rank(full) : 0);
    }
  }

  void refuse_parameter(const std::string& name) {
    if (std::exchange(refused_target_, true)) return;
    add_error(
        issues_, "UNSUPPORTED_VALUE", "/adapter/target_parameters",
        "Adapters on parameters are modelled for the weights of experts and routers alone, not for " + name + ".");
  }

  void refuse_target(const std::string& name) {
    if (std::exchange(refused_target_, true)) return;
    add_error(issues_, "INVALID_VALUE", "/adapter/target_modules",
              "The targets include " + name + ", which is " +
                  (adapter_.kind == AdapterKind::kLora ? "no Linear, Conv1D or Embedding"
                   : takes_conv1d(adapter_.kind)       ? "no Linear or Conv1D"
                                                       : "no Linear") +
                  ": PEFT raises a ValueError. The linear layers are " + linear_layers() + ".");
  }

  void refuse_convolution(const std::string& name) {
    if (std::exchange(refused_target_, true)) return;
    add_error(issues_, "UNSUPPORTED_OPTION", "/adapter/target_modules",
              "The targets include " + name + ", a convolution: adapters on those are not modelled yet.");
  }

  void refuse_saved(const std::string& name, bool adapted) {
    if (std::exchange(refused_saved_, true)) return;
    add_error(issues_, "INVALID_VALUE", "/adapter/modules_to_save",
              "modules_to_save (to which a classifier's task adds its head) fits " + name +
                  (adapted ? ", which gets an adapter: PEFT raises a TypeError. Name the targets, or exclude it."
                           : ", which is quantised: torch refuses to train packed weights. Take it out, or leave the "
                             "adapter's task_type out."));
  }

  void refuse_list(const std::string& name, const std::string& list) {
    if (std::exchange(refused_saved_, true)) return;
    add_error(issues_, "INVALID_VALUE", "/adapter/modules_to_save",
              "\"" + name + "\" fits the list of layers, " + list + ": PEFT raises a TypeError for a ModuleList.");
  }

  std::string linear_layers() const {
    std::string text;
    for (const std::string& name : linear_names_) text += (text.empty() ? "" : ", ") + name;
    return text;
  }

  std::string suggestion() const {
    const ModuleChoice& chosen = adapter_.target_modules;
    const std::string& wanted = chosen.names.empty() ? chosen.expression : chosen.names.front();
    std::vector<std::string_view> candidates(linear_names_.begin(), linear_names_.end());
    candidates.push_back("all-linear");
    return nearest(last_part(wanted), candidates);
  }

  const Architecture& architecture_;
  const TrainingJob& job_;
  const Adapter adapter_;
  const bool takes_convolutions_;   // sd-scripts' layers do
  std::vector<std::string> lists_;  // of layers
  TaskModules task_;
  LoraTargets targets_;
  FeedforwardModules feedforward_;
  Issues& issues_;
  NamePatterns trained_;  // `trainable`: in place, beside the adapters
  std::vector<Saved> saved_;
  std::set<std::string> used_parameters_;  // of target_parameters
  std::set<std::string> containers_;       // that have been looked at
  std::set<std::string> linear_names_;     // last parts, for messages
  bool refused_target_ = false;
  bool refused_saved_ = false;
};

/// Asks the rules about every module of the model.
class Planner {
 public:
  Planner(const Architecture& architecture, const LayerCensus& census, Rules& rules, ModulePlan& plan)
      : architecture_(architecture), census_(census), rules_(rules), plan_(plan) {}

  /// False, with an error among the issues, when there are more names and patterns than can be compared in time.
  bool run() {
    const bool apart = rules_.tells_layers_apart();
    if (is_too_much(apart)) {
      add_error(plan_.issues, "TOO_LARGE", rules_.path(),
                "There are too many patterns, or too long ones, to compare them with each module of this model.");
      return false;
    }
    plan_.treatments.set_outside(treat(census_.modules.outside, ""));
    for (const LayerPlan::Stack& stack : census_.stacks) treat_stack(stack, apart);
    plan_.adapted = tally_.adapted;
    plan_.saved = tally_.saved;
    return true;
  }

  /// Whether any parameter gets a gradient.
  bool anything_trained() const { return tally_.trained > 0; }

  /// Whether a layer, or all that lies around them, is trained in part.
  bool mixes() const { return mixes_; }

 private:
  struct Tally {
    Count adapted = 0;  // modules
    Count saved = 0;    // modules
    Count trained = 0;  // parameters of the model, and modules of the other two kinds
    Tally operator+(const Tally& o) const { return {adapted + o.adapted, saved + o.saved, trained + o.trained}; }
    Tally operator-(const Tally& o) const { return {adapted - o.adapted, saved - o.saved, trained - o.trained}; }
  };
  struct Known {
    bool done = false;
    Treatments::Variant variant;
    Tally tally;
  };

  void treat_stack(const LayerPlan::Stack& stack, bool apart) {
    const std::string list = full_name(architecture_, stack.path) + ".";
    std::map<std::pair<std::size_t, std::size_t>, Known> known;
    for (std::size_t layer = 0; layer < static_cast<std::size_t>(stack.layers); ++layer) {
      const std::size_t kind = census_.kind_of_layer[static_cast<std::size_t>(stack.first) + layer];
      const std::string number = std::to_string(layer);
      // Patterns that do not tell digits apart see no more of a layer's number than its length.
      Known& like = known[{kind, apart ? layer : number.size()}];
      if (!like.done) {
        const Tally before = tally_;
        like.variant = treat(census_.modules.layers[kind], list + number + ".");
        like.tally = tally_ - before;
        like.done = true;
      } else {
        tally_ = tally_ + like.tally;
      }
      plan_.treatments.add_layer(like.variant);
    }
  }

  bool is_too_much(bool apart) const {
    constexpr std::size_t kLongName = 64;
    std::size_t modules = census_.modules.outside.size();
    const std::size_t layers = census_.kind_of_layer.size();
    for (const std::vector<Module>& layer : census_.modules.layers) modules += layer.size() * (apart ? layers : 4);
    return modules * kLongName > kMostWork / std::max<std::size_t>(rules_.work(), 1);
  }

  Treatments::Variant treat(const std::vector<Module>& modules, const std::string& prefix) {
    Treatments::Variant variant;
    variant.reserve(modules.size());
    for (const Module& module : modules) {
      std::string name = prefix.empty() ? full_name(architecture_, module.path) : prefix + module.path;
      if (module.path.empty() && !name.empty()) name.pop_back();  // what the layer or the model has itself
      variant.push_back(rules_.treat(module, name));
    }
    tie(modules, variant);
    mixes_ = mixes_ || is_mixed(modules, variant);
    for (const Treatment& how : variant) {
      const auto parameters =
          std::count_if(how.adapted.begin(), how.adapted.end(), [](Count rank) { return rank > 0; });
      tally_.adapted += (how.rank > 0 ? 1 : 0) + parameters;
      tally_.saved += how.copied ? 1 : 0;
      tally_.trained +=
          (how.rank > 0 || how.copied ? 1 : 0) + parameters + std::count(how.trained.begin(), how.trained.end(), 1);
    }
    return variant;
  }

  static bool is_mixed(const std::vector<Module>& modules, const Treatments::Variant& variant) {
    bool is_any[2] = {false, false};
    for (std::size_t i = 0; i < modules.size(); ++i) {
      for (const char trained : variant[i].trained) {
        if (!modules[i].is_tied) is_any[trained != 0 ? 1 : 0] = true;
      }
    }
    return is_any[0] && is_any[1];
  }

  /// A tied head has no weight of its own: whoever freezes the head's freezes the token table.
  static void tie(const std::vector<Module>& modules, Treatments::Variant& variant) {
    const auto at = [&](bool Module::*is) -> Treatment* {
      const auto found = std::find_if(modules.begin(), modules.end(), [is](const Module& m) { return m.*is; });
      return found == modules.end() ? nullptr : &variant[static_cast<std::size_t>(found - modules.begin())];
    };
    Treatment* const head = at(&Module::is_tied);
    Treatment* const table = at(&Module::is_token_table);
    if (head == nullptr || table == nullptr) return;
    table->trained.front() = table->trained.front() != 0 && head->trained.front() != 0 ? 1 : 0;
    head->trained.front() = 0;
  }

  const Architecture& architecture_;
  const LayerCensus& census_;
  Rules& rules_;
  ModulePlan& plan_;
  Tally tally_;
  bool mixes_ = false;
};

void plan_adapters(const Architecture& architecture, const TrainingJob& job, const LayerCensus& census,
                   ModulePlan& plan) {
  AdapterRules rules(architecture, job, census, plan.issues);
  if (has_error(plan.issues)) return;
  Planner planner(architecture, census, rules, plan);
  if (!planner.run() || has_error(plan.issues)) return;
  plan.treatments.widest_in = rules.widest_in;
  plan.treatments.widest_out = rules.widest_out;
  if (job.adapter.learns_prompt()) return;
  if (job.adapter.kind == AdapterKind::kLnTuning) plan.adapted = std::exchange(plan.saved, 0);
  if (plan.adapted == 0) {
    rules.report_nothing_adapted();
  } else {
    rules.report_unused(plan.issues);
  }
}

void plan_freezing(const Architecture& architecture, const TrainingJob& job, const LayerCensus& census,
                   ModulePlan& plan) {
  FreezeRules rules(architecture, job, plan.issues);
  if (has_error(plan.issues)) return;
  Planner planner(architecture, census, rules, plan);
  if (!planner.run()) return;
  rules.report_unused(plan.issues);
  if (!planner.anything_trained()) {
    add_error(plan.issues, "NOTHING_TRAINED", "/freeze",
              "Every parameter is frozen: no loss has a gradient, and torch raises an error in backward. Leave "
              "something to train.");
  }
  const DataParallel& gpus = job.data_parallel;
  if (planner.mixes() && gpus.is_used() && gpus.sharding == Sharding::kFsdp1 && !gpus.fsdp.use_orig_params &&
      !gpus.fsdp.trained_leaves) {
    add_error(plan.issues, "UNSUPPORTED_VALUE", "/parallelism/fsdp_options/use_orig_params",
              std::string{kOneFlatTensor}, "true");
  }
}

}  // namespace

ModulePlan plan_modules(const Architecture& architecture, const TrainingJob& job) {
  ModulePlan plan;
  plan.trains_everything = !has_adapters(job) && !job.freezes_by_name() && !freezes_parts(job);
  if (plan.trains_everything) return plan;
  const LayerCensus census = take_census(architecture, job.framework);
  if (has_adapters(job)) {
    plan_adapters(architecture, job, census, plan);
  } else {
    plan_freezing(architecture, job, census, plan);
  }
  return plan;
}

}  // namespace tidemark
