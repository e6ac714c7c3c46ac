#include "core/cli/completion.hpp"

#include <vector>

#include "core/cli/command_table.hpp"
#include "core/options/options.hpp"

namespace tidemark {
namespace {

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : std::string{separator}) + word;
  return text;
}

std::string spaced(std::string_view list) {
  std::string text{list};
  for (char& c : text) {
    if (c == ',') c = ' ';
  }
  return text;
}

/// Words for a shell: choices of an option, separated by spaces.
std::string shell_values(const Option& option) {
  std::string text;
  if (option.type == OptionType::kBool) return "true false";
  for (const Choice& choice : option.choices) {
    if (choice.modelled && choice.alias_of.empty()) text += (text.empty() ? "" : " ") + std::string{choice.name};
  }
  return text;
}

/// The command by which a shell asks for the names of a list of the catalog: "$(tidemark models --names)".
std::string names_in_catalog(const Option& option) {
  return "$(tidemark " + std::string{option.catalog} + " --names)";
}

/// Names of the commands about a job, or of all.
std::string command_names(bool of_job, std::string_view separator) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (!of_job || command.of_job()) names.emplace_back(command.name);
  }
  return joined(names, separator);
}

/// Whether a word stands behind the flag of a key.
bool takes_value(const VerbKey& key) {
  return key.has_flag() && key.type != "boolean";
}

// --- bash

/// `quote`: '"' where the words hold something to expand.
std::string bash_reply(std::string_view words, char quote = '\'') {
  return "COMPREPLY=($(compgen -W " + (quote + std::string{words} + quote) + " -- \"$word\"))";
}

/// What stands behind a flag of an option.
std::string bash_values(const Option& option) {
  if (!option.catalog.empty()) return bash_reply(names_in_catalog(option), '"') + "; ";
  if (option.type == OptionType::kDocument) return "COMPREPLY=($(compgen -f -- \"$word\")); ";
  return option.choices.empty() ? std::string{} : bash_reply(shell_values(option)) + "; ";
}

/// The words behind each flag that has some.
std::string bash_cases() {
  std::string out;
  const auto add = [&](const std::string& flags, const std::string& action) {
    out += "    " + flags + ") " + action + "return ;;\n";
  };
  for (const Option& option : options()) {
    if (option.type != OptionType::kBool) add(joined(flags_of(option), "|"), bash_values(option));
  }
  for (const Verb& verb : verbs()) {
    for (const VerbKey& key : verb.keys) {
      if (verb.of_job && takes_value(key)) add(joined(flags_of(key), "|"), "");
    }
  }
  for (const CommandFlag& flag : command_flags()) {
    const bool file = flag.argument == "FILE";
    if (!flag.argument.empty()) {
      add("--" + std::string{flag.name}, file ? "COMPREPLY=($(compgen -f -- \"$word\")); " : "");
    }
  }
  return out;
}

/// What may stand behind a command that is no flag.
std::string words_behind(const Command& command) {
  if (command.name != "describe") return spaced(command.words);
  std::vector<std::string> names;
  for (const Option& option : options()) names.emplace_back(option.name);
  return joined(names, " ");
}

std::string bash_script() {
  std::string out =
      "# tidemark completion for bash: source <(tidemark completion bash)\n"
      "_tidemark() {\n"
      "  local word=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\" command=\"${COMP_WORDS[1]}\"\n"
      "  local options='" +
      joined(option_flags(), " ") +
      "'\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    " +
      bash_reply(command_names(false, " ")) +
      "\n"
      "    return\n"
      "  fi\n"
      "  case \"$before\" in\n" +
      bash_cases() +
      "  esac\n"
      "  case \"$command\" in\n";
  for (const Command& command : commands()) {
    const std::string words = words_behind(command);
    out += "    " + std::string{command.name} + ") " +
           bash_reply((command.of_job() ? "$options " : "") + joined(further_flags_of(command), " ") +
                          (words.empty() ? "" : " ") + words,
                      '"') +
           " ;;\n";
  }
  return out +
         "  esac\n"
         "}\n"
         "complete -F _tidemark tidemark\n";
}

// --- zsh

std::string quoted_for_zsh(std::string_view text) {
  std::string safe;
  for (char c : text) {
    if (c == '\'')
      safe += "'\\''";
    else if (c == '[' || c == ']' || c == ':')
      safe += std::string{"\\"} + c;
    else
      safe += c;
  }
  return safe;
}

std::string zsh_action(const Option& option) {
  if (!option.catalog.empty()) return ":name:(" + names_in_catalog(option) + ")";
  if (option.type == OptionType::kDocument) return ":file:_files";
  if (option.type == OptionType::kBool) return "";
  return option.choices.empty() ? ":value:" : ":value:(" + shell_values(option) + ")";
}

void zsh_flag(std::string_view flag, std::string_view help, const std::string& action, std::string& out) {
  out += " \\\n      '*" + std::string{flag} + "[" + quoted_for_zsh(help) + "]" + action + "'";
}

/// What _arguments is told of all options.
std::string zsh_options() {
  std::string out;
  for (const Option& option : options()) {
    for (const std::string& flag : flags_of(option)) zsh_flag(flag, option.help, zsh_action(option), out);
  }
  return out;
}

/// What it is told of one command.
std::string zsh_arguments(const Command& command) {
  std::string out;
  if (command.of_job()) {
    out += " $flags";
    for (const VerbKey& key : command.verb()->keys) {
      for (const std::string& flag : flags_of(key)) zsh_flag(flag, key.help, takes_value(key) ? ":value:" : "", out);
    }
  }
  for (const CommandFlag* flag : flags_of(command)) {
    const std::string action = flag->argument == "FILE" ? ":file:_files" : flag->argument.empty() ? "" : ":value:";
    zsh_flag("--" + std::string{flag->name}, flag->help, action, out);
  }
  if (const std::string words = words_behind(command); !words.empty()) out += " \\\n      ':word:(" + words + ")'";
  return out;
}

std::string zsh_script() {
  std::string out =
      "#compdef tidemark\n"
      "# tidemark completion for zsh: source <(tidemark completion zsh)\n"
      "_tidemark() {\n"
      "  local -a commands flags\n"
      "  flags=(" +
      zsh_options() +
      ")\n"
      "  commands=(";
  for (const Command& command : commands()) {
    out += "\n    '" + std::string{command.name} + ":" + quoted_for_zsh(command.summary()) + "'";
  }
  out +=
      ")\n"
      "  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
      "  case $words[2] in\n";
  for (const Command& command : commands()) {
    out += "    " + std::string{command.name} + ") _arguments" + zsh_arguments(command) + " ;;\n";
  }
  return out +
         "  esac\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _tidemark ]; then _tidemark \"$@\"; else compdef _tidemark tidemark; fi\n";
}

// --- fish

std::string quoted_for_fish(std::string_view text) {
  std::string safe;
  for (char c : text) {
    if (c == '\'' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe;
}

/// " -s m -l model": how fish is told of flags.
std::string fish_flags(const std::vector<std::string>& flags) {
  std::string out;
  for (const std::string& flag : flags) out += flag.size() == 2 ? " -s " + flag.substr(1) : " -l " + flag.substr(2);
  return out;
}

std::string fish_values(const Option& option) {
  if (!option.catalog.empty()) return " -x -a '" + names_in_catalog(option).substr(1) + "'";
  if (option.type == OptionType::kDocument) return " -r -F";
  if (option.type == OptionType::kBool) return "";
  return option.choices.empty() ? " -x" : " -x -a '" + shell_values(option) + "'";
}

/// The flags and words of one command, less the options of a job.
void fish_command(const Command& command, std::string& out) {
  const std::string here = "complete -c tidemark -n '__fish_seen_subcommand_from " + std::string{command.name} + "'";
  const auto help = [](std::string_view text) { return " -d '" + quoted_for_fish(text) + "'\n"; };
  if (command.of_job()) {
    for (const VerbKey& key : command.verb()->keys) {
      if (!key.has_flag()) continue;
      out += here + fish_flags(flags_of(key)) + (takes_value(key) ? " -x" : "") + help(key.help);
    }
  }
  for (const CommandFlag* flag : flags_of(command)) {
    const char* value = flag->argument == "FILE" ? " -r -F" : flag->argument.empty() ? "" : " -x";
    out += here + " -l " + std::string{flag->name} + value + help(flag->help);
  }
  if (const std::string words = words_behind(command); !words.empty()) out += here + " -a '" + words + "'\n";
}

std::string fish_script() {
  std::string out =
      "# tidemark completion for fish: tidemark completion fish | source\n"
      "complete -c tidemark -f\n";
  for (const Command& command : commands()) {
    out += "complete -c tidemark -n __fish_use_subcommand -a " + std::string{command.name} + " -d '" +
           quoted_for_fish(command.summary()) + "'\n";
  }
  const std::string here = "complete -c tidemark -n '__fish_seen_subcommand_from " + command_names(true, " ") + "'";
  for (const Option& option : options()) {
    out += here + fish_flags(flags_of(option)) + fish_values(option) + " -d '" + quoted_for_fish(option.help) + "'\n";
  }
  for (const Command& command : commands()) fish_command(command, out);
  return out;
}

}  // namespace

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  if (shell == "fish") return fish_script();
  return {};
}

}  // namespace tidemark
