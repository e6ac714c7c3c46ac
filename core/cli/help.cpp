#include "core/cli/help.hpp"

#include "core/options/options.hpp"
#include "core/report/layout.hpp"

namespace tidemark {
namespace {

std::string strong(std::string_view text, const TextStyle& style) {
  return style.colour ? "\x1b[1m" + std::string{text} + "\x1b[0m" : std::string{text};
}

/// "N", "NAME", "a|b": what stands behind a flag.
std::string placeholder(const Option& option) {
  switch (option.type) {
    case OptionType::kBool:
      return {};
    case OptionType::kInteger:
      return " N";
    case OptionType::kReal:
      return " X";
    case OptionType::kText:
      return " TEXT";
    case OptionType::kTextList:
      return " A,B";
    case OptionType::kChoice:
      return " WORD";
    case OptionType::kChoiceList:
      return " A,B";
    case OptionType::kDocument:
      return " FILE";
    case OptionType::kGpu:
    case OptionType::kGpuList:
      return " CARD";
    case OptionType::kAny:
      return " JSON";
  }
  return {};
}

std::string values_of(const Option& option) {
  std::string text;
  for (const Choice& choice : option.choices) {
    if (!choice.modelled || !choice.alias_of.empty()) continue;
    text += (text.empty() ? "" : ", ") + std::string{choice.name};
  }
  return text;
}

std::string default_words(const Option& option) {
  if (option.standard == "null" || option.standard == "[]") return {};
  std::string text{option.standard};
  if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
  return text;
}

void option_lines(const Option& option, bool with_values, const TextStyle& style, std::string& out) {
  std::string names;
  for (const std::string& flag : flags_of(option)) {
    // Short spellings first, as everybody writes them.
    if (flag.size() == 2)
      names = flag + (names.empty() ? "" : ", ") + names;
    else
      names += (names.empty() ? "" : ", ") + flag;
  }
  if (option.type == OptionType::kBool && option.standard == "true") {
    // What one types is its negation.
    names.clear();
    for (const std::string& flag : flags_of(option)) names += (names.empty() ? "--no-" : ", --no-") + flag.substr(2);
  }
  constexpr std::size_t kIndent = 6;
  out += "  " + strong(names, style) + placeholder(option) + "\n";
  std::string text{option.help};
  if (with_values && !option.choices.empty()) text += " Values: " + values_of(option) + ".";
  if (const std::string standard = default_words(option); !standard.empty()) text += " [" + standard + "]";
  out += std::string(kIndent, ' ') + wrap(text, style.width, kIndent) + "\n";
}

void flag_lines(std::string_view flag, std::string_view text, const TextStyle& style, std::string& out) {
  constexpr std::size_t kIndent = 6;
  out += "  " + strong(flag, style) + "\n" + std::string(kIndent, ' ') + wrap(text, style.width, kIndent) + "\n";
}

void command_line(std::string_view command, std::string_view text, const TextStyle& style, std::string& out) {
  constexpr std::size_t kIndent = 16;
  out += "  " + strong(pad_right(command, kIndent - 2), style) + wrap(text, style.width, kIndent) + "\n";
}

std::string finished(std::string text, const TextStyle& style) {
  return style.unicode ? text : to_ascii(text);
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

std::string all_flags() {
  std::string text;
  for (const Option& option : options()) {
    for (const std::string& flag : flags_of(option)) text += flag + " ";
  }
  return text + "--vram-gb --request --json --markdown --bytes --explain --no-color --ascii --help --help-all";
}

std::string joined_flags(const Option& option, std::string_view separator) {
  std::string text;
  for (const std::string& flag : flags_of(option)) text += (text.empty() ? "" : std::string{separator}) + flag;
  return text;
}

/// The command by which a shell asks for the names of a list of the catalog: "$(tidemark models --names)".
std::string names_in_catalog(const Option& option) {
  return "$(tidemark " + std::string{option.catalog} + " --names)";
}

std::string bash_script() {
  std::string out =
      "# tidemark completion for bash: source <(tidemark completion bash)\n"
      "_tidemark() {\n"
      "  local word=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\" command=\"${COMP_WORDS[1]}\"\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W 'estimate fit advise map models gpus describe schema version completion help' -- "
      "\"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"$before\" in\n";
  for (const Option& option : options()) {
    const std::string flags = joined_flags(option, "|");
    if (!option.catalog.empty()) {
      out +=
          "    " + flags + ") COMPREPLY=($(compgen -W \"" + names_in_catalog(option) + "\" -- \"$word\")); return ;;\n";
    } else if (option.type == OptionType::kDocument) {
      out += "    " + flags + ") COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n";
    } else if (option.type != OptionType::kBool && !option.choices.empty()) {
      out += "    " + flags + ") COMPREPLY=($(compgen -W '" + shell_values(option) + "' -- \"$word\")); return ;;\n";
    } else if (option.type != OptionType::kBool) {
      out += "    " + flags + ") return ;;\n";
    }
  }
  out +=
      "    --request) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
      "  esac\n"
      "  case \"$command\" in\n"
      "    estimate|fit|advise|map) COMPREPLY=($(compgen -W '" +
      all_flags() +
      "' -- \"$word\")) ;;\n"
      "    models|gpus) COMPREPLY=($(compgen -W '--json --names' -- \"$word\")) ;;\n"
      "    describe) COMPREPLY=($(compgen -W '--json --markdown";
  for (const Option& option : options()) out += " " + std::string{option.name};
  out +=
      "' -- \"$word\")) ;;\n"
      "    schema) COMPREPLY=($(compgen -W 'request answer' -- \"$word\")) ;;\n"
      "    completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$word\")) ;;\n"
      "  esac\n"
      "}\n"
      "complete -F _tidemark tidemark\n";
  return out;
}

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

std::string zsh_script() {
  std::string out =
      "#compdef tidemark\n"
      "# tidemark completion for zsh: source <(tidemark completion zsh)\n"
      "_tidemark() {\n"
      "  local -a commands\n"
      "  commands=('estimate:memory of a training job' 'fit:cards that a job fits' 'advise:what makes it fit'\n"
      "            'map:peaks over batch and sequence' 'models:models known by name' 'gpus:cards known by name'\n"
      "            'describe:every option' 'schema:JSON Schemas' 'version:versions' 'completion:shell completion' "
      "'help:usage')\n"
      "  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
      "  case $words[2] in\n"
      "    estimate|fit|advise|map) _arguments \\\n";
  for (const Option& option : options()) {
    std::string action;
    if (!option.catalog.empty())
      action = ":name:(" + names_in_catalog(option) + ")";
    else if (option.type == OptionType::kDocument)
      action = ":file:_files";
    else if (option.type == OptionType::kBool)
      action = "";
    else if (!option.choices.empty())
      action = ":value:(" + shell_values(option) + ")";
    else
      action = ":value:";
    for (const std::string& flag : flags_of(option)) {
      out += "      '*" + flag + "[" + quoted_for_zsh(option.help) + "]" + action + "' \\\n";
    }
  }
  out +=
      "      '--request[a request, - for standard input]:file:_files' '--json[the response]' \\\n"
      "      '--markdown[Markdown]' '--bytes[exact bytes]' '--explain[every entry]' '--no-color[plain text]' ;;\n"
      "    models|gpus) _arguments '--json[JSON]' '--names[names only]' ;;\n"
      "    describe) _arguments '--json[JSON]' '--markdown[Markdown]' ;;\n"
      "    schema) _values document request answer ;;\n"
      "    completion) _values shell bash zsh fish ;;\n"
      "  esac\n"
      "}\n"
      "if [ \"$funcstack[1]\" = _tidemark ]; then _tidemark \"$@\"; else compdef _tidemark tidemark; fi\n";
  return out;
}

std::string quoted_for_fish(std::string_view text) {
  std::string safe;
  for (char c : text) {
    if (c == '\'' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe;
}

std::string fish_script() {
  std::string out =
      "# tidemark completion for fish: tidemark completion fish | source\n"
      "complete -c tidemark -f\n"
      "complete -c tidemark -n __fish_use_subcommand -a estimate -d 'memory of a training job'\n"
      "complete -c tidemark -n __fish_use_subcommand -a fit -d 'cards that a job fits'\n"
      "complete -c tidemark -n __fish_use_subcommand -a advise -d 'what makes it fit'\n"
      "complete -c tidemark -n __fish_use_subcommand -a map -d 'peaks over batch and sequence'\n"
      "complete -c tidemark -n __fish_use_subcommand -a models -d 'models known by name'\n"
      "complete -c tidemark -n __fish_use_subcommand -a gpus -d 'cards known by name'\n"
      "complete -c tidemark -n __fish_use_subcommand -a describe -d 'every option'\n"
      "complete -c tidemark -n __fish_use_subcommand -a schema -d 'JSON Schemas'\n"
      "complete -c tidemark -n __fish_use_subcommand -a version -d versions\n"
      "complete -c tidemark -n __fish_use_subcommand -a completion -d 'shell completion'\n";
  const std::string here = "complete -c tidemark -n '__fish_seen_subcommand_from estimate fit advise map'";
  for (const Option& option : options()) {
    out += here;
    for (const std::string& flag : flags_of(option)) {
      out += flag.size() == 2 ? " -s " + flag.substr(1) : " -l " + flag.substr(2);
    }
    if (!option.catalog.empty())
      out += " -x -a '" + names_in_catalog(option).substr(1) + "'";
    else if (option.type == OptionType::kDocument)
      out += " -r -F";
    else if (option.type != OptionType::kBool && !option.choices.empty())
      out += " -x -a '" + shell_values(option) + "'";
    else if (option.type != OptionType::kBool)
      out += " -x";
    out += " -d '" + quoted_for_fish(option.help) + "'\n";
  }
  out += here + " -l request -r -F -d 'a request, - for standard input'\n";
  for (const char* flag : {"json", "markdown", "bytes", "explain", "no-color"}) out += here + " -l " + flag + "\n";
  out += "complete -c tidemark -n '__fish_seen_subcommand_from schema' -a 'request answer'\n";
  out += "complete -c tidemark -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n";
  return out;
}

}  // namespace

std::string general_help(const TextStyle& style) {
  std::string out = wrap(
      "tidemark estimates the peak GPU memory of a training job: what is needed, in which moment of the step, and why.",
      style.width, 0);
  out += "\n\n" + strong("Usage", style) + "\n";
  out += "  tidemark estimate --model llama-3.1-8b --method lora --seq-len 4096 --gpu 4090\n";
  out += "  tidemark estimate --config config.json --json\n";
  out += "  tidemark estimate --request job.json\n";
  out += "\n" + strong("Commands", style) + "\n";
  command_line("estimate", "the memory of one training job, and whether it fits a card", style, out);
  command_line("fit", "which cards the job fits, smallest first: those named, or all that we know", style, out);
  command_line("advise", "what to change so that it fits a card, with what each change costs", style, out);
  command_line("map", "peaks over batch sizes and sequence lengths, against a card", style, out);
  command_line("models", "models known by name; `tidemark models qwen` keeps those that match", style, out);
  command_line("gpus", "cards known by name, with the memory that PyTorch really sees", style, out);
  command_line("describe", "every option with its default and values; `tidemark describe optimizer` for one", style,
               out);
  command_line("schema", "JSON Schemas: `tidemark schema request`, `tidemark schema answer`", style, out);
  command_line("completion", "shell completion: `source <(tidemark completion bash)`, zsh, fish", style, out);
  command_line("version", "versions of the engine, the schema and the catalog", style, out);
  out += "\n" +
         wrap(
             "`tidemark estimate --help` lists the usual options, `--help-all` all of them. Exit status: 0 answered "
             "(and fits, if --gpu is given), 1 does not fit (more is expected than the card gives), 2 bad usage or "
             "input, 3 internal error.",
             style.width, 0) +
         "\n";
  return finished(std::move(out), style);
}

std::string estimate_help(bool all, const TextStyle& style) {
  std::string out = strong("Usage", style) + "\n";
  out += "  tidemark estimate [--model NAME | --config FILE | --params N] [options] [--gpu CARD]\n";
  out += "  tidemark estimate --request FILE   (- for standard input; flags take precedence)\n";
  for (const OptionGroup& group : option_groups()) {
    std::string lines;
    for (const Option& option : options()) {
      if (option.group != group.name || (!all && (option.advanced || !option.missing.empty()))) continue;
      option_lines(option, true, style, lines);
    }
    if (!lines.empty()) out += "\n" + strong(group.title, style) + "\n" + lines;
  }
  out += "\n" + strong("Output", style) + "\n";
  flag_lines("--json", "Print the response (docs/reference.md) and nothing else.", style, out);
  flag_lines("--markdown", "Print Markdown.", style, out);
  flag_lines("--bytes", "Print exact bytes beside each figure.", style, out);
  flag_lines("--explain", "Open every entry: formula, numbers, source, how it is known.", style, out);
  flag_lines("--no-color, --ascii", "Plain text; NO_COLOR is respected as well.", style, out);
  if (!all) out += "\n" + wrap("`tidemark estimate --help-all` lists the remaining options.", style.width, 0) + "\n";
  return finished(std::move(out), style);
}

std::string card_help(std::string_view command, const TextStyle& style) {
  std::string out = strong("Usage", style) + "\n";
  const auto usage = [&](std::string_view line) { out += "  tidemark " + std::string{line} + "\n"; };
  const auto say = [&](std::string_view text) { out += "\n" + wrap(text, style.width, 0) + "\n"; };
  std::string flags;
  if (command == "fit") {
    usage("fit --model NAME [options]                     (all cards that we know)");
    usage("fit --model NAME [options] --gpu 4090 --gpu A100-80GB --vram-gb 24");
    say("The verdict on each card, smallest that fits first. Exit status 1 when a named card does not do, or none of "
        "all.");
    flag_lines("--gpu CARD", "A card by name, or 24GiB as torch sees it; repeatable.", style, flags);
    flag_lines("--vram-gb X", "A card of which only the size on the box is known; repeatable.", style, flags);
    flag_lines("--all-gpus", "All cards of the catalog, beside those named.", style, flags);
    flag_lines("--rule-of-thumb X", "Tell, too, where the peak stays below this share of the card: 0.8.", style, flags);
  } else if (command == "advise") {
    usage("advise --model NAME [options] --gpu CARD");
    say("Whether the job fits the card; if not, the combination of changes that does least harm; each change by itself "
        "with what it saves and costs; the largest batch, sequence and rank; MemScale's modes. Exit status 1 when the "
        "job as it is does not fit.");
    flag_lines("--gpu CARD, --vram-gb X", "The card: by name, as torch sees it (24GiB), or by its box.", style, flags);
  } else {
    usage("map --model NAME [options] --gpu CARD [--batches 1,2,4] [--sequences 512,1024]");
    say("Peaks over micro-batch sizes (rows) and sequence lengths (columns).");
    flag_lines("--gpu CARD, --vram-gb X", "The card: by name, as torch sees it (24GiB), or by its box.", style, flags);
    flag_lines("--batches A,B", "Micro-batch sizes; powers of two when absent.", style, flags);
    flag_lines("--sequences A,B", "Sequence lengths; powers of two when absent.", style, flags);
    flag_lines("--quick", "Quick figures, a few thousandths low.", style, flags);
  }
  flag_lines("--request FILE, --json, --markdown, --no-color, --ascii", "As with `tidemark estimate`.", style, flags);
  out += "\n" + flags;
  say("All options of a job (`tidemark estimate --help-all`) are understood as well. docs/advice.md tells how harm is "
      "weighed.");
  return finished(std::move(out), style);
}

std::string describe_help(std::string_view option_name, const TextStyle& style) {
  std::string out;
  if (!option_name.empty()) {
    const Option* option = find_option(option_name);
    if (option == nullptr) {
      // "--seq-len" and "seq-len" name an option, too.
      for (const Option& candidate : options()) {
        for (const std::string& flag : flags_of(candidate)) {
          const std::string plain = flag.substr(flag.find_first_not_of('-'));
          if (flag == option_name || plain == option_name) option = &candidate;
        }
      }
    }
    if (option == nullptr) return {};
    out += strong(option->name, style) + "\n";
    option_lines(*option, false, style, out);
    if (!option->missing.empty()) out += "      " + wrap(option->missing, style.width, 6) + "\n";
    std::size_t width = 0;
    for (const Choice& choice : option->choices) width = std::max(width, columns_of(choice.name));
    for (const Choice& choice : option->choices) {
      std::string help{choice.help};
      if (!choice.alias_of.empty()) help = "the same as " + std::string{choice.alias_of};
      if (!choice.modelled) help += help.empty() ? "not modelled yet" : " (not modelled yet)";
      out += "      " + pad_right(choice.name, width) + "  " + wrap(help, style.width, width + 8) + "\n";
    }
    return finished(std::move(out), style);
  }
  for (const OptionGroup& group : option_groups()) {
    out += (out.empty() ? "" : "\n") + strong(group.title, style) + "\n";
    for (const Option& option : options()) {
      if (option.group == group.name) option_lines(option, true, style, out);
    }
  }
  return finished(std::move(out), style);
}

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  if (shell == "fish") return fish_script();
  return {};
}

}  // namespace tidemark
