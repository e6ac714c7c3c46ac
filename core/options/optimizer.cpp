#include "core/optimizers/optimizer.hpp"
#include "core/options/builders.hpp"
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

const Option kOptions[] = {
    choice("optimizer", "\"auto\"", kWords, "Optimizer", "Hugging Face's `optim`.")
        .known_as("optim")
        .spelled("-o")
        .sets(set_optimizer),
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
