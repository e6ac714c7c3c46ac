#include "core/step/optimizer_fits.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/job/regex.hpp"
#include "core/optimizers/low_rank.hpp"
#include "core/step/census.hpp"

namespace tidemark {
namespace {

void add_error(Issues& issues, std::string path, std::string message, std::string suggestion = "") {
  issues.push_back({"INVALID_VALUE", Severity::kError, std::move(path), std::move(message), std::move(suggestion)});
}

constexpr std::string_view kQueriesAndKeys[] = {"k_proj", "q_proj", "wq", "wk", "query", "key"};

/// Whether a linear layer of the model is meant.
bool finds_target(const LayerCensus& census, const ModuleChoice& choice) {
  const auto among = [&](const std::vector<Module>& modules, bool in_layer) {
    return std::any_of(modules.begin(), modules.end(), [&](const Module& module) {
      // A tied head goes by the token table's name among the parameters, and is passed over.
      return module.kind == ModuleKind::kLinear && !module.is_tied && is_target(choice, module.path, in_layer);
    });
  };
  return among(census.modules.outside, false) ||
         std::any_of(census.modules.layers.begin(), census.modules.layers.end(),
                     [&](const std::vector<Module>& layer) { return among(layer, true); });
}

// transformers 5.12 trainer_optimizer.py _setup_low_rank_optimizer.
void check_targets(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const ModuleChoice& choice = job.low_rank.targets;
  std::vector<std::string> texts = choice.names;
  if (choice.kind == ModuleChoice::Kind::kExpression) texts.push_back(choice.expression);
  for (const std::string& text : texts) {
    std::string error;
    const auto regex = Regex::compile(text, error);
    if (!regex && choice.kind == ModuleChoice::Kind::kExpression) {
      return add_error(issues, "/optim_target_modules",
                       "\"" + text.substr(0, 100) + "\" cannot be read as a regular expression: " + error + ".");
    }
    if (text.find_first_of("0123456789") != std::string::npos && regex && regex->tells_digits_apart()) {
      return add_error(issues, "/optim_target_modules",
                       "Projections of some layers only are not modelled: name modules without a layer's number.",
                       "all-linear");
    }
  }
  if (!finds_target(take_census(architecture, job.framework), choice)) {
    add_error(issues, "/optim_target_modules",
              "It names no linear layer of this model: the Trainer raises \"No target modules found\".", "all-linear");
  }
}

// adam-mini 1.1.1 adam_mini.py: queries and keys are viewed as heads of dim * dim / n_heads elements.
void check_heads(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const Count head =
      architecture.num_heads > 0 ? architecture.hidden_size * architecture.hidden_size / architecture.num_heads : 0;
  const auto is_whole = [head](const Module& module) {
    const bool asks = std::any_of(std::begin(kQueriesAndKeys), std::end(kQueriesAndKeys),
                                  [&](std::string_view word) { return module.path.find(word) != std::string::npos; });
    return !asks || module.kind != ModuleKind::kLinear ||
           (head > 0 && module.in_features * module.out_features % head == 0);
  };
  const LayerCensus census = take_census(architecture, job.framework);
  const bool whole = std::all_of(census.modules.layers.begin(), census.modules.layers.end(),
                                 [&](const auto& layer) { return std::all_of(layer.begin(), layer.end(), is_whole); });
  if (whole && !job.has_adapter()) return;
  add_error(
      issues, "/optimizer",
      "Adam-mini cuts weights of queries and keys into heads of hidden_size * hidden_size / heads elements, and fails "
      "where " +
          std::string{job.has_adapter() ? "adapters' matrices are none" : "this model's have another size"} + ".",
      "adamw_torch_fused");
}

/// peft 0.18 optimizers/lorafa.py step: of everything named "lora" it makes pairs.
void check_factors(const TrainingJob& job, Issues& issues) {
  const bool pairs = job.has_adapter() && job.adapter.kind == AdapterKind::kLora && !job.adapter.use_dora;
  if (!pairs) {
    add_error(issues, "/optimizer",
              "LoRA-FA steps pairs of LoRA's factors: it is for \"lora\" and \"qlora\", and what DoRA adds breaks its "
              "pairs.",
              "adamw_torch_fused");
  }
}

/// badam 1.4 block_optim.py infer_param_groups: what lies in a list called "layers".
void check_blocks(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  if (job.gpus() > 1) return add_error(issues, "/optimizer", "BAdam is modelled on one GPU.", "adamw_torch_fused");
  if (!architecture.layers_path.ends_with("layers")) {
    return add_error(issues, "/optimizer",
                     "BAdam looks for blocks in a list called \"layers\", which this model does not have: it fails.",
                     "adamw_torch_fused");
  }
  issues.push_back(
      {"ASSUMED_DEFAULT", Severity::kNote, "/optimizer",
       "BAdam trains a layer after the other; the answer is that of the first one's turn, the dearest. Its "
       "base is fused AdamW.",
       ""});
}

/// q-galore-torch 1.0 q_galore_projector.py _quantize: "assert w.nelement() % q_group_size == 0".
void check_projectors(const TrainingJob& job, Issues& issues) {
  if (!job.has_adapter()) return;
  add_error(issues, "/optimizer", "Q-GaLore beside adapters is not modelled.", "adamw_8bit");
}

}  // namespace

void settle_optimizer(const Architecture& architecture, TrainingJob& job, Issues& issues) {
  const Optimizer& row = *find_optimizer(job.optimizer);
  if (row.in_backward) job.optimizer_in_backward = true;
  if (row.in_backward && !row.one_behind && job.gradient_accumulation_steps > 1) {
    add_error(issues, "/optimizer",
              "transformers' layerwise optimizers do not accumulate gradients: gradient_accumulation_steps must be 1.");
  }
  if (row.in_backward && job.gpus() > 1) {
    add_error(issues, "/optimizer",
              row.one_behind
                  ? "LOMO steps in backward, before gradients of several GPUs are added up: it is modelled on one GPU."
                  : "transformers' layerwise optimizers do not run on several GPUs: the Trainer raises an error "
                    "(\"does not support DDP at this time\").",
              "adamw_torch_fused");
  }
  if (job.optimizer == "adamw_hf" && job.framework.at_least(5, 0)) {
    issues.push_back({"INVALID_VALUE", Severity::kWarning, "/optimizer",
                      "transformers 5 has no adamw_hf any more and raises a ValueError; adamw_torch is nearest.",
                      "adamw_torch"});
  }
  if (job.optimizer == "adam_mini") check_heads(architecture, job, issues);
  if (job.optimizer == "lorafa") check_factors(job, issues);
  if (job.optimizer == "badam") check_blocks(architecture, job, issues);
  if (job.optimizer == "q_galore_adamw8bit") check_projectors(job, issues);
  if (row.groups == ParameterGroups::kProjected) {
    check_targets(architecture, job, issues);
  } else if (job.low_rank.targets.kind != ModuleChoice::Kind::kAllLinear) {
    issues.push_back({"IGNORED_OPTION", Severity::kWarning, "/optim_target_modules",
                      "Of optimizers GaLore and APOLLO have target modules.", ""});
  }
}

}  // namespace tidemark
