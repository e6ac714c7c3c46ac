// Our own command line, as the page copies it and as people paste it: `tidemark estimate MODEL --gpu H100 --lora-r 16`.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/exchange/args.hpp"
#include "core/exchange/formats/shared.hpp"
#include "core/options/options.hpp"

namespace tidemark::exchange {
namespace {

/// The verbs whose flags state a job (cli/command_table.cpp).
constexpr std::string_view kVerbs[] = {"estimate", "scan",  "check",  "fit",    "advise",
                                       "map",      "probe", "export", "import", "calibrate"};

bool is_verb(std::string_view word) {
  return std::find(std::begin(kVerbs), std::end(kVerbs), word) != std::end(kVerbs);
}

int recognise_command(const Look& look) {
  if (look.syntax != Look::Syntax::kShell) return 0;
  for (std::string_view verb : kVerbs) {
    if (look.mentions("tidemark " + std::string{verb})) return 97;
  }
  return 0;
}

/// The words behind the first verb; false where no command is one of ours.
bool find_command(const ShellScript& script, std::vector<ShellWord>& words) {
  for (const ShellCommand& command : script.commands) {
    for (std::size_t at = 0; at + 1 < command.words.size(); ++at) {
      if (base_name(command.words[at].word()) != "tidemark" || !is_verb(command.words[at + 1].word())) continue;
      const std::ptrdiff_t past = command.words[at + 1].word() == "export" ? 3 : 2;  // the format stands behind it
      const auto first = command.words.begin() +
                         std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(at) + past, std::ssize(command.words));
      words.assign(first, command.words.end());
      return true;
    }
  }
  return false;
}

struct Flag {
  const Option* option = nullptr;
  bool off = false;  ///< --no-padding
};

Flag flag_named(const std::string& name) {
  for (const Option& option : options()) {
    for (const std::string& flag : flags_of(option)) {
      if (flag == name) return {&option};
      if (option.type == OptionType::kBool && "--no-" + flag.substr(2) == name) return {&option, true};
    }
  }
  return {};
}

/// "7B" is 7e9 where an option counts.
Value count_of(const std::string& word) {
  constexpr std::pair<char, double> kFactors[] = {{'k', 1e3}, {'m', 1e6}, {'b', 1e9}, {'t', 1e12}};
  for (const auto& [letter, factor] : kFactors) {
    const bool ends = !word.empty() && (word.back() == letter || word.back() + ('a' - 'A') == letter);
    const Node number = ends ? plain_scalar(std::string_view{word}.substr(0, word.size() - 1)) : Node{};
    if (number.is_number()) return of(number.real * factor);
  }
  return to_value(plain_scalar(word));
}

bool is_written_as_json(const std::string& word) {
  return !word.empty() && (word.front() == '{' || word.front() == '[' || word.front() == '"');
}

/// What the word behind a flag stands for, as the command takes it (cli/job_flags.cpp).
Value value_of(const Option& option, const std::string& word) {
  switch (option.type) {
    case OptionType::kBool:
    case OptionType::kInteger:
    case OptionType::kReal:
      return option.counts ? count_of(word) : to_value(plain_scalar(word));
    case OptionType::kText:
    case OptionType::kChoice:
      return of(word);
    case OptionType::kAny:
      return is_written_as_json(word) ? to_value(parse_json_lines(word).root) : to_value(plain_scalar(word));
    default:
      break;
  }
  if (is_written_as_json(word)) return to_value(parse_json_lines(word).root);
  if (word == "all-linear" || word == "attention") return of(word);  // the request's shorthands, not names
  std::vector<Value> items;
  for (std::string_view item : words_of(word)) items.push_back(of(item));
  return of(std::move(items));
}

struct Command {
  Reading& reading;
  std::string file;
  std::vector<Value> cards;
  std::vector<Origin> places_of_cards;

  std::vector<Origin> places(const ShellWord& word) const {
    std::vector<Origin> origins;
    for (int line : word.lines()) origins.push_back({file, line, line, -1});
    return origins;
  }

  void add_card(Value card, const ShellWord& word) {
    if (card.is_array()) {
      for (Value& one : card.items) cards.push_back(std::move(one));
    } else {
      cards.push_back(std::move(card));
    }
    for (Origin& origin : places(word)) places_of_cards.push_back(std::move(origin));
  }

  void take(const Flag& flag, const ShellWord& at, const std::optional<std::string>& word) {
    const Option& option = *flag.option;
    const bool is_switch = option.type == OptionType::kBool;
    Value value = word ? value_of(option, *word) : of(true);
    if (is_switch && flag.off && value.is_bool()) value = of(!value.boolean);
    if (option.type == OptionType::kDocument) {
      reading.companions.push_back(word.value_or(""));
      reading.unknowns.push_back("the file " + word.value_or(""));
    } else if (option.type == OptionType::kGpu || option.type == OptionType::kGpuList) {
      add_card(std::move(value), at);
    } else {
      state(reading, option.name, std::move(value), places(at));
    }
  }

  void take_plain(const ShellWord& word) {
    const std::string& text = word.word();
    const std::string_view name = base_name(text);
    const bool is_file = text == "-" || contains(name, ".json") || contains(name, ".y") || contains(name, ".py") ||
                         contains(name, ".toml") || contains(name, ".sh") || contains(name, ".ipynb");
    if (is_file) {
      reading.companions.push_back(text);
    } else {
      state(reading, "model", of(text), places(word));
    }
  }
};

/// Flags that say how the answer is printed.
bool is_of_output(std::string_view name) {
  constexpr std::string_view kOutput[] = {"--json",    "--markdown", "--sarif", "--strict",  "--bytes",
                                          "--explain", "--no-color", "--ascii", "--help-all"};
  return std::find(std::begin(kOutput), std::end(kOutput), name) != std::end(kOutput);
}

void read_command(const Look& look, Sources, Reading& reading) {
  std::vector<ShellWord> words;
  if (!find_command(read_shell(look.head), words)) return tell_no_launch(reading, look);
  Command command{reading, look.source.name, {}, {}};
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& text = words[at].word();
    if (text.rfind("--", 0) != 0) {
      command.take_plain(words[at]);
      continue;
    }
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const Flag flag = flag_named(name);
    std::optional<std::string> word;
    if (equals != std::string::npos) word = text.substr(equals + 1);
    const bool alone = is_of_output(name) || (flag.option != nullptr && flag.option->type == OptionType::kBool);
    const std::size_t flag_at = at;
    if (!word && !alone && at + 1 < words.size() && words[at + 1].word().rfind("--", 0) != 0) word = words[++at].word();
    if (flag.option != nullptr) {
      command.take(flag, words[flag_at], word);
    } else if (name == "--vram-gb" && word) {
      command.add_card(object({{"vram_gb", to_value(plain_scalar(*word))}}), words[flag_at]);
    } else if (name == "--request" && word) {
      reading.companions.push_back(*word);
      reading.unknowns.push_back("the request in " + *word);
    } else {
      const std::vector<Origin> places = command.places(words[flag_at]);
      reading.unread.push_back({name, places.empty() ? Origin{} : places[0], is_of_output(name)});
    }
  }
  if (command.cards.size() == 1) {
    state(reading, "gpu", std::move(command.cards[0]), std::move(command.places_of_cards));
  } else if (!command.cards.empty()) {
    state(reading, "gpus", of(std::move(command.cards)), std::move(command.places_of_cards));
  } else {
    reading.unknowns.emplace_back("gpu");
  }
}

const Format kRows[] = {
    {"tidemark", "tidemark command", recognise_command, read_command, 85},
};

}  // namespace

extern const FormatRows tidemark_rows;
const FormatRows tidemark_rows = kRows;

}  // namespace tidemark::exchange
