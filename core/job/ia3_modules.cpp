#include "core/job/ia3_modules.hpp"

#include <algorithm>
#include <string>

#include "core/units/word_list.hpp"

namespace tidemark {
namespace {

struct Listed {
  std::string_view models;   // comma-separated
  std::string_view modules;  // the same
};

// peft 0.18 utils/constants.py TRANSFORMERS_MODELS_TO_IA3_FEEDFORWARD_MODULES_MAPPING
constexpr Listed kListed[] = {
    {"llama,llama4,mistral,gemma,gemma2,gemma3_text,qwen2,qwen3", "down_proj"},
    {"t5", "wo"},
    {"mt5", ""},
    {"gpt2,gpt_bigcode", "mlp.c_proj"},
    {"bloom", "mlp.dense_4h_to_h"},
    {"bert,roberta,deberta,deberta-v2", "output.dense"},
    {"opt,bart,phi", "fc2"},
    {"gptj", "fc_out"},
    {"gpt_neox,falcon", "dense_4h_to_h"},
    {"gpt_neo", "c_proj"},
    {"mixtral", "w2"},
};

bool ends_with(std::string_view name, std::string_view end) {
  return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
}

}  // namespace

FeedforwardModules::FeedforwardModules(const Adapter& adapter, std::string_view model_type, Issues& issues)
    : adapter_(adapter) {
  constexpr std::string_view kPath = "/adapter/feedforward_modules";
  if (adapter.kind != AdapterKind::kIa3) return;
  if (!adapter.knows_feedforward) {
    const auto* row = std::find_if(std::begin(kListed), std::end(kListed),
                                   [model_type](const Listed& l) { return has_word(l.models, model_type); });
    if (row != std::end(kListed)) {
      listed_ = row->modules;
      return;
    }
    issues.push_back({"INVALID_VALUE", Severity::kError, std::string{kPath},
                      "PEFT knows no feed-forward modules of " + std::string{model_type} +
                          ": it raises a ValueError. Name those of the targets whose inputs are scaled.",
                      "down_proj"});
    return;
  }
  if (adapter.feedforward_modules.kind != ModuleChoice::Kind::kExpression) return;
  std::string error;
  expression_ = Regex::compile(adapter.feedforward_modules.expression, error);
  if (!expression_) {
    issues.push_back({"INVALID_VALUE", Severity::kError, std::string{kPath},
                      "This cannot be read as a regular expression: " + error + ".", ""});
  }
}

bool FeedforwardModules::names(std::string_view module) const {
  if (!adapter_.knows_feedforward) return !listed_.empty() && ends_with(module, listed_);
  if (expression_) return expression_->matches(module);
  const std::vector<std::string>& names = adapter_.feedforward_modules.names;
  return std::any_of(names.begin(), names.end(), [module](const std::string& end) { return ends_with(module, end); });
}

}  // namespace tidemark
