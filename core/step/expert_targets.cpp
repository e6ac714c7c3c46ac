// peft 0.19 to 0.21 utils/transformers_weight_conversion.py: _convert_peft_config_moe, _resolve_string_target_modules.
#include "core/step/expert_targets.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "core/job/expert_lists.hpp"
#include "core/job/regex.hpp"
#include "core/layers/full_name.hpp"
#include "core/layers/program.hpp"

namespace tidemark {
namespace {

/// What a module of an expert was called, and the parameter that has it now.
struct Moved {
  std::string_view module, parameter;
};
constexpr Moved kMixtral[] = {
    {"gate", "gate.weight"}, {"w1", "gate_up_proj"}, {"w3", "gate_up_proj"}, {"w2", "down_proj"}};
constexpr Moved kQwen[] = {
    {"gate", "gate.weight"}, {"gate_proj", "gate_up_proj"}, {"up_proj", "gate_up_proj"}, {"down_proj", "down_proj"}};
constexpr std::string_view kFused = "gate_up_proj";

// transformers 5.12 conversion_mapping.py: _MODEL_TO_CONVERSION_PATTERN; Qwen2-MoE itself is none of them.
constexpr std::string_view kLikeMixtral[] = {"minimax", "minimax_m2", "mixtral"};
constexpr std::string_view kLikeQwen[] = {"afmoe",        "cohere2_moe",    "deepseek_v2",
                                          "deepseek_v3",  "deepseek_v32",   "dots1",
                                          "ernie4_5_moe", "exaone_moe",     "flex_olmo",
                                          "glm4_moe",     "glm4_moe_lite",  "glm4v_moe",
                                          "glm_moe_dsa",  "hunyuan_v1_moe", "longcat_flash",
                                          "mellum",       "olmoe",          "qwen3_moe",
                                          "qwen3_next",   "qwen3_omni_moe", "qwen3_omni_moe_thinker",
                                          "solar_open"};

std::span<const Moved> moved_in(std::string_view model_type) {
  const auto among = [model_type](const auto& list) {
    return std::find(std::begin(list), std::end(list), model_type) != std::end(list);
  };
  if (among(kLikeMixtral)) return kMixtral;
  return among(kLikeQwen) ? std::span<const Moved>(kQwen) : std::span<const Moved>();
}

std::string_view leaf_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

/// Full names of the model's modules, of one layer of each stack and kind.
template <typename Visit>
void for_each_module(const Architecture& architecture, const LayerCensus& census, Visit visit) {
  for (const Module& module : census.modules.outside) visit(module, full_name(architecture, module.path));
  for (const LayerPlan::Stack& stack : census.stacks) {
    std::set<std::size_t> seen;
    for (Count layer = 0; layer < stack.layers; ++layer) {
      const std::size_t kind = census.kind_of_layer[static_cast<std::size_t>(stack.first + layer)];
      if (!seen.insert(kind).second) continue;
      const std::string before = full_name(architecture, stack.path) + "." + std::to_string(layer) + ".";
      for (const Module& module : census.modules.layers[kind]) visit(module, before + module.path);
    }
  }
}

bool is_linear(const Module& module) {
  return (module.kind == ModuleKind::kLinear || module.kind == ModuleKind::kConv1d) && !module.is_output_head;
}

/// axolotl loaders/adapter.py find_all_linear_names and the like: a list of what is linear in the model, in place of
/// PEFT's word.
bool lists_linear_layers(const Framework& framework) {
  return framework.name == "axolotl" || framework.name == "llama_factory" || framework.name == "ms_swift";
}

/// Names as the list that PEFT comes to; nothing where what is stated cannot be read.
std::set<std::string> listed_targets(const Architecture& architecture, const TrainingJob& job,
                                     const LayerCensus& census, std::span<const Moved> all) {
  const ModuleChoice& choice = job.adapter.target_modules;
  std::set<std::string> names;
  if (choice.kind == ModuleChoice::Kind::kNames) return {choice.names.begin(), choice.names.end()};
  if (choice.kind == ModuleChoice::Kind::kAllLinear) {
    for_each_module(architecture, census, [&](const Module& module, const std::string& name) {
      if (is_linear(module)) names.emplace(leaf_of(name));
    });
    for (const Moved& moved : all) {
      if (!lists_linear_layers(job.framework)) names.emplace(moved.module);
    }
    return names;
  }
  std::string error;
  const std::optional<Regex> regex = Regex::compile(choice.expression, error);
  if (!regex) return names;
  for_each_module(architecture, census, [&](const Module& module, const std::string& name) {
    if (regex->matches(name)) names.emplace(leaf_of(name));
    for (const Moved& moved : all) {
      if (module.is_expert && regex->matches(name + "." + std::string{moved.module})) names.emplace(moved.module);
    }
  });
  return names;
}

void add_error(Issues& issues, std::string message, std::string suggestion = "") {
  issues.push_back(
      {"INVALID_VALUE", Severity::kError, "/adapter/target_modules", std::move(message), std::move(suggestion)});
}

bool is_refused(const Adapter& adapter, const std::set<std::string_view>& fused, Issues& issues) {
  if (fused.size() == 1) {
    add_error(issues, "PEFT adapts the experts' gate and up projections together, which are one parameter, and \"" +
                          std::string{*fused.begin()} +
                          "\" alone is targeted: it raises a ValueError. Name both of them, or neither.");
  } else if (adapter.lora_dropout > 0.0 || adapter.use_dora) {
    add_error(issues,
              "These targets reach the experts, whose weights are parameters: PEFT puts neither dropout nor DoRA on "
              "their adapters and raises a ValueError. Set lora_dropout to 0 and use_dora to false, or name modules of "
              "the attention alone.",
              "attention");
  } else {
    return false;
  }
  return true;
}

}  // namespace

Adapter with_expert_targets(const Architecture& architecture, const TrainingJob& job, const LayerCensus& census,
                            Issues& issues) {
  Adapter adapter = job.adapter;
  const ModuleChoice::Kind kind = adapter.target_modules.kind;
  const std::span<const Moved> all = moved_in(architecture.model_type);
  const bool converts = job.framework.peft >= kPeftOfExperts && job.framework.at_least(5, 0) &&
                        adapter.kind == AdapterKind::kLora && kind != ModuleChoice::Kind::kAttention &&
                        !job.is_megatron() && job.framework.name != "unsloth" && !lists_experts(architecture, job) &&
                        !job.has_experts_on_host();
  if (all.empty() || !converts) return adapter;
  const bool by_string = kind == ModuleChoice::Kind::kExpression ||
                         (kind == ModuleChoice::Kind::kAllLinear && !lists_linear_layers(job.framework));
  if (by_string && job.framework.peft < kPeftOfExpertStrings) {
    add_error(issues,
              "PEFT 0.19 takes a string of targets for a set of its letters on this model type, and finds nothing to "
              "adapt. Name the modules in a list, or use 0.20 or later.");
    return adapter;
  }
  std::set<std::string_view> parameters, fused;
  std::vector<std::string> others;
  for (const std::string& name : listed_targets(architecture, job, census, all)) {
    const auto moved = std::find_if(all.begin(), all.end(), [&](const Moved& m) { return leaf_of(name) == m.module; });
    if (moved == all.end()) {
      others.push_back(name);
      continue;
    }
    parameters.insert(moved->parameter);
    if (moved->parameter == kFused) fused.insert(moved->module);
  }
  if (parameters.empty() || is_refused(adapter, fused, issues)) return adapter;
  adapter.target_modules = {ModuleChoice::Kind::kNames, std::move(others), {}};
  for (const std::string_view parameter : parameters) adapter.target_parameters.emplace_back(parameter);
  if (!fused.empty()) adapter.rank_pattern.push_back({".*\\.gate_up_proj", 2 * adapter.r});
  issues.push_back(
      {"CONVERTED_TARGETS", Severity::kNote, "/adapter/target_modules",
       "With transformers 5 PEFT takes these targets for the experts' weights, too, which are parameters: "
       "each layer makes their sums with the adapters and keeps them for backward. PEFT until 0.18 adapted "
       "no experts (framework.peft).",
       ""});
  return adapter;
}

}  // namespace tidemark
