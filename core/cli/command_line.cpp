#include "core/cli/command_line.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "core/cli/terminal.hpp"
#include "core/options/harmless.hpp"
#include "core/options/options.hpp"
#include "core/units/nearest.hpp"

namespace tidemark {
namespace {

/// CLI11 lists the words that it did not understand in its own order; the first that looks like a flag is what went
/// wrong.
std::string wrong_word(const std::vector<std::string>& extras) {
  const auto flag = std::find_if(extras.begin(), extras.end(),
                                 [](const std::string& word) { return word.size() > 1 && word[0] == '-'; });
  return flag == extras.end() ? extras.front() : *flag;
}

/// "--lora": a word of an option in place of its flag, "--method lora". Of several options the one that stands for the
/// whole job, then the one that more jobs state.
std::string flag_of_choice(std::string_view word) {
  const Option* best = nullptr;
  const auto rank = [](const Option& option) {
    return (option.name.find('.') == std::string_view::npos ? 0 : 1) + (option.advanced ? 2 : 0);
  };
  for (const Option& option : options()) {
    const Choice* choice = option.choices.empty() ? nullptr : find_choice(option, word);
    if (choice != nullptr && choice->modelled && (best == nullptr || rank(option) < rank(*best))) best = &option;
  }
  return best == nullptr ? "" : flag_of(*best) + " " + std::string{find_choice(*best, word)->name};
}

/// Words of other tools and habits whose flag is spelt in no way that is near.
std::string flag_of_habit(std::string_view word) {
  constexpr std::pair<std::string_view, std::string_view> kHabits[] = {
      {"--ctx", "--seq-len"},           {"--context", "--seq-len"},
      {"--deepspeed", "--zero 3"},      {"--grad-ckpt", "--gradient-checkpointing"},
      {"--gpu-count", "--num-gpus"},    {"--ngpus", "--num-gpus"},
      {"--n-gpus", "--num-gpus"},       {"--nproc-per-node", "--num-gpus"},
      {"--num-processes", "--num-gpus"}};
  word = word.substr(0, word.find('='));
  for (const auto& [typed, flag] : kHabits) {
    if (typed == word) return std::string{flag};
  }
  return {};
}

/// What was probably meant: a flag of that command, or of any; a command.
std::string nearest_word(const std::string& word, const Command* command) {
  const bool flag = word.size() > 1 && word[0] == '-';
  if (std::string habit = flag_of_habit(word); !habit.empty()) return habit;
  if (word.starts_with("--") && (command == nullptr || command->of_job())) {
    if (std::string chosen = flag_of_choice(std::string_view{word}.substr(2)); !chosen.empty()) return chosen;
  }
  std::vector<std::string> names;
  if (flag && (command == nullptr || command->of_job())) names = option_flags();
  for (const Command& row : commands()) {
    if (!flag && command == nullptr) names.emplace_back(row.name);
    if (!flag || (command != nullptr && command != &row)) continue;
    for (std::string& name : further_flags_of(row)) names.push_back(std::move(name));
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return nearest(flag ? word.substr(0, word.find('=')) : word, candidates);
}

/// Whether a first word that names no command can only be about a job: a flag, a file, a model ("llama-3.1-8b"), so
/// that it asks for the estimate. Of plain letters and alone, it is a command that nobody knows.
bool is_about_a_job(const std::string& word, bool alone) {
  constexpr std::string_view kForAll[] = {"-h", "--help", "--version"};
  if (word.empty() || std::find(std::begin(kForAll), std::end(kForAll), word) != std::end(kForAll)) return false;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (word[0] == '-') return word.size() > 1;
  return !(alone && std::all_of(word.begin(), word.end(), is_letter)) && nearest_word(word, nullptr).empty();
}

/// Scripts of transformers take "--max_seq_length" and "--max-seq-length" alike (HfArgumentParser).
std::string with_dashes(std::string word) {
  if (word.starts_with("--"))
    std::replace(word.begin(), word.begin() + std::min(word.size(), word.find('=')), '_', '-');
  return word;
}

/// A key of training scripts that no flag has, because it moves no memory.
std::string why_no_flag(const std::string& word) {
  std::string key = word.substr(0, word.find('='));
  key.erase(0, key.find_first_not_of('-'));
  std::replace(key.begin(), key.end(), '-', '_');
  if (key == "lr") key = "learning_rate";
  if (key == "epochs") key = "num_train_epochs";
  const std::string_view why = why_harmless(key);
  return why.empty() ? "" : " It moves no memory of the peak: " + std::string{why} + ".";
}

std::string is_readable(const std::string& path) {
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return "no such file";
  if (file != stdin) std::fclose(file);
  return {};
}

}  // namespace

CommandLine::CommandLine() {
  app_.set_help_flag();
  app_.add_flag("-h,--help", help);
  app_.add_flag("--version", version);
  for (const Command& command : commands()) add(command);
}

void CommandLine::add(const Command& command) {
  Row& row = rows_.emplace_back();
  row.command = &command;
  row.app = app_.add_subcommand(std::string{command.name});
  row.app->set_help_flag();
  if (!command.word.empty()) row.app->add_option(std::string{command.word}, word_);
  if (command.files) {
    // Other words stay what they are: not understood.
    row.app->validate_positionals();
    row.app->add_option("FILE", files_)->check(is_readable);
  }
  add_flags(row);
  if (!command.of_job()) return;
  row.job.add_to(*row.app);
  row.keys.add_to(*row.app, *command.verb());
}

void CommandLine::add_flags(Row& row) {
  const auto not_empty = [](const std::string& word) { return word.empty() ? "its value is empty" : std::string{}; };
  for (const CommandFlag* flag : flags_of(*row.command)) {
    std::string name = "--" + std::string{flag->name};
    if (flag->name == "request") {
      row.app->add_option(name, request_path_)->check(not_empty);
    } else if (bool* there = switch_of(flag->name); there != nullptr) {
      if (flag->name == "help") name += ",-h";
      if (flag->name == "no-color") name += ",--no-colour";
      row.app->add_flag(name, *there);
    }
  }
  CLI::Option* markdown = row.app->get_option_no_throw("--markdown");
  if (markdown != nullptr && row.command->of_job()) markdown->excludes(row.app->get_option("--json"));
}

bool* CommandLine::switch_of(std::string_view flag) {
  const std::pair<std::string_view, bool*> switches[] = {
      {"json", &json_},        {"markdown", &markdown_},  {"names", &names_},   {"bytes", &bytes_},
      {"explain", &explain_},  {"no-color", &no_colour_}, {"ascii", &ascii_},   {"help", &help},
      {"help-all", &help_all}, {"sarif", &sarif_},        {"strict", &strict_}, {"man", &manual_},
  };
  for (const auto& [name, there] : switches) {
    if (name == flag) return there;
  }
  return nullptr;
}

Issues CommandLine::parse(int argc, char** argv) {
  std::vector<std::string> typed(argv, argv + argc);
  std::transform(typed.begin(), typed.end(), typed.begin(), with_dashes);
  if (argc == 3 && typed[1] == "help" && find_command(typed[2]) != nullptr) typed = {typed[0], typed[2], "--help"};
  if (argc > 1 && find_command(typed[1]) == nullptr && is_about_a_job(typed[1], argc == 2)) {
    typed.insert(typed.begin() + 1, "estimate");
  }
  std::vector<char*> words;
  for (std::string& word : typed) words.push_back(word.data());
  try {
    app_.parse(static_cast<int>(words.size()), words.data());
    return {};
  } catch (const CLI::ParseError& error) {
    Issue issue{"BAD_USAGE", Severity::kError, "", error.what(), ""};
    const CLI::App* app = chosen() == nullptr ? &app_ : chosen()->app;
    const std::vector<std::string> extras = app->remaining(true);
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !extras.empty()) {
      const std::string word = wrong_word(extras);
      issue.message = "\"" + word + "\" is not understood here." + why_no_flag(word);
      issue.suggestion = nearest_word(word, command());
      if (command() == nullptr && issue.suggestion.empty()) {
        issue.message =
            "\"" + word + "\" is no command: `tidemark help` lists them. Of a model, say --model " + word + ".";
      }
      if (command() != nullptr && command()->name == "import") issue.message = "There is no file \"" + word + "\".";
    }
    if (!issue.message.empty() && issue.message.back() != '.') issue.message += ".";
    return {std::move(issue)};
  }
}

const CommandLine::Row* CommandLine::chosen() const {
  for (const Row& row : rows_) {
    if (row.app->parsed()) return &row;
  }
  return nullptr;
}

const Command* CommandLine::command() const {
  return chosen() == nullptr ? nullptr : chosen()->command;
}

Invocation CommandLine::invocation(const Command& command, const Engine& engine, const TextStyle& style) const {
  const Row& row = chosen() == nullptr ? rows_.back() : *chosen();
  return {command, engine, row.job,   row.keys, request_path_, word_,   files_,
          style,   json_,  markdown_, names_,   sarif_,        strict_, manual_};
}

TextStyle CommandLine::style() const {
  TextStyle style = style_for_output();
  style.bytes = bytes_;
  style.explain = explain_;
  if (no_colour_) style.colour = false;
  if (ascii_) style.unicode = false;
  return style;
}

}  // namespace tidemark
