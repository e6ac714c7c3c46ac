#include <algorithm>
#include <string>
#include <utility>

#include "core/optimizers/optimizer.hpp"
#include "core/options/builders.hpp"
#include "core/options/module_choice.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr int kByFramework = -1;

/// What people and other tools write for a row.
constexpr std::string_view kSpellings[][2] = {{"adamw", "adamw_torch"},
                                              {"adam", "adamw_torch"},
                                              {"ao_adamw_8bit", "adamw_torch_8bit"},
                                              {"ao_adamw_4bit", "adamw_torch_4bit"},
                                              {"torch.optim.AdamW", "adamw_torch"},
                                              {"torch.optim.SGD", "sgd"},
                                              {"bitsandbytes.optim.AdamW8bit", "adamw_8bit"},
                                              {"bitsandbytes.optim.PagedAdamW8bit", "paged_adamw_8bit"},
                                              {"bitsandbytes.optim.PagedAdamW", "paged_adamw_32bit"}};

/// A word for each row of core/optimizers, its further spellings after it.
std::vector<Choice> all_words() {
  std::vector<Choice> words = {
      {"auto", kByFramework,
       "the framework's: fused AdamW since transformers 4.54, AdamW before and in a loop of one's own"}};
  const std::span<const Optimizer* const> rows = all_optimizers();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Optimizer& row = *rows[i];
    const int index = static_cast<int>(i);
    words.push_back({row.name, index, row.help, row.create != nullptr});
    if (!row.alias.empty()) words.push_back({row.alias, index, "", true, row.name});
    for (const auto& [spelling, name] : kSpellings) {
      if (name == row.name) words.push_back({spelling, index, "", true, row.name});
    }
  }
  return words;
}

const std::vector<Choice> kWords = all_words();

void set_optimizer(Request& request, const OptionValue& value) {
  request.open.optimizer = value.choice == kByFramework;
  if (request.open.optimizer) return;
  request.job.optimizer = all_optimizers()[static_cast<std::size_t>(value.choice)]->name;
}

/// "rank=64, update_proj_gap=100": transformers 5.12 trainer_optimizer.py _parse_optim_args. Visits each pair; false
/// where one has no "=".
template <class Visit>
bool for_each_argument(const std::string& text, Visit visit) {
  std::string plain;
  for (const char letter : text) {
    if (letter != ' ') plain += letter;
  }
  for (std::size_t at = 0; at < plain.size();) {
    const std::size_t end = std::min(plain.find(',', at), plain.size());
    const std::string pair = plain.substr(at, end - at);
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) return false;
    visit(pair.substr(0, equals), pair.substr(equals + 1));
    at = end + 1;
  }
  return true;
}

/// The whole number of a rank; 0 where it is none.
Count rank_in(const std::string& text) {
  constexpr std::size_t kMostDigits = 6;
  if (text.empty() || text.size() > kMostDigits || text.find_first_not_of("0123456789") != std::string::npos) return 0;
  return std::stoll(text);
}

void check_arguments(const OptionValue& v, const ReadSoFar&, Issues& issues) {
  const auto refuse = [&](std::string why) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/optim_args", std::move(why), "rank=128"});
  };
  const bool read = for_each_argument(v.text, [&](const std::string& key, const std::string& value) {
    if (key == "rank" && rank_in(value) == 0) refuse("rank is a whole number from 1 on: \"rank=128\".");
    if (key == "proj" && value != "random" && value != "svd") refuse("proj is random or svd.");
    if (key == "proj_type" && value != "std") refuse("Of projections proj_type=std is modelled, the usual one.");
    if (key == "momentum")
      refuse("SGD with momentum is an optimizer of its own here: \"optimizer\": \"sgd_momentum\".");
    if (key == "centered" || key == "block_size") refuse(key + " is not modelled: leave it out for the usual one.");
  });
  if (!read) refuse("optim_args is a list of key=value: \"rank=64, update_proj_gap=100\".");
}

// The other arguments move no memory.
void set_arguments(Request& request, const OptionValue& v) {
  for_each_argument(v.text, [&](const std::string& key, const std::string& value) {
    if (key == "rank") request.job.low_rank.rank = rank_in(value);
    if (key == "proj") request.job.low_rank.by_svd = value == "svd";
  });
}

// "attention" is PEFT's shorthand in our own words; the Trainer reads it as part of a name, like any other.
void set_targets(Request& request, const OptionValue& v) {
  ModuleChoice choice = module_choice(v);
  if (choice.kind == ModuleChoice::Kind::kAttention) choice = {ModuleChoice::Kind::kNames, {"attention"}, {}};
  request.job.low_rank.targets = std::move(choice);
}

const Option kOptions[] = {
    choice("optimizer", "\"auto\"", kWords, "Optimizer", "Hugging Face's `optim`.")
        .known_as("optim")
        .spelled("-o")
        .sets(set_optimizer),
    text("optim_args", "null", "Optimizer's settings",
         "Hugging Face's `optim_args`: of GaLore and APOLLO \"rank=128\" counts, and \"proj=svd\".")
        .further()
        .checked(check_arguments)
        .sets(set_arguments),
    texts("optim_target_modules", "\"all-linear\"", "Projected modules",
          "Linear layers whose gradients GaLore and APOLLO project: all-linear, a list of parts of their names "
          "(attn,mlp), or as a string a regular expression for the whole name.")
        .further()
        .sets(set_targets),
    real("max_grad_norm", "1.0", "Gradient clipping", "Gradient clipping; 0 for none.")
        .within(0, 1e9)
        .further()
        .known_as("gradient_clipping")
        .into<&TrainingJob::max_grad_norm>(),
    flag("optimizer_in_backward", false, "Optimizer steps in backward",
         "Each parameter is updated, and its gradient freed, as soon as the gradient exists.")
        .further()
        .into<&TrainingJob::optimizer_in_backward>(),
};

}  // namespace

// Made when the program starts: the rows are read from their files (options() is asked later).
const Topic kOptimizerTopic{{"optimizer", "Optimizer", true}, kOptions};

}  // namespace tidemark
