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
  const std::string value = placeholder(option);
  out += "  " + strong(wrap(names, style.width - value.size(), 2), style) + value + "\n";
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

/// An example with what it is about, on a line of its own where both are too wide for one.
std::string usage_line(const std::string& line, const TextStyle& style) {
  constexpr std::size_t kIndent = 6;
  if (2 + columns_of(line) <= style.width) return "  " + line + "\n";
  const std::size_t about = line.find("  (");
  std::string out = "  " + wrap(line.substr(0, line.find_last_not_of(' ', about) + 1), style.width, kIndent) + "\n";
  if (about != std::string::npos) {
    const std::string words = line.substr(line.find_first_not_of(' ', about));
    out += std::string(kIndent, ' ') + wrap(words, style.width, kIndent) + "\n";
  }
  return out;
}

/// The examples of a command.
std::string usage_of(const Command& command, const TextStyle& style) {
  std::string out = strong("Usage", style) + "\n";
  std::string_view lines = command.usage.empty() ? command.name : command.usage;
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    std::string line{lines.substr(0, end)};
    // What is indented is no command of ours: what to do with what it wrote.
    const std::size_t indent = line.find_first_not_of(' ');
    line = indent == 0 ? "tidemark " + line : line.substr(std::min(indent, line.size()));
    if (command.usage.empty() && !command.word.empty()) line += " [" + std::string{command.word} + "]";
    out += usage_line(line, style);
    lines = end == std::string_view::npos ? std::string_view{} : lines.substr(end + 1);
  }
  return out;
}

/// What a command has besides the options of a job and its verb's keys.
void own_flags(const Command& command, const TextStyle& style, std::string& out) {
  for (const CommandFlag* flag : flags_of(command)) {
    std::string name = "--" + std::string{flag->name};
    if (!flag->argument.empty()) name += " " + std::string{flag->argument};
    flag_lines(name, flag->help, style, out);
  }
}

}  // namespace

std::string general_help(const TextStyle& style) {
  std::string out = wrap(
      "tidemark estimates the peak GPU memory of a training job: what is needed, in which moment of the step, and why.",
      style.width, 0);
  out += "\n\n" + strong("Usage", style) + "\n";
  out += "  tidemark llama-3.1-8b with lora on 4090 at 4096\n";
  out += "  tidemark estimate --model llama-3.1-8b --method lora --seq-len 4096 --gpu 4090\n";
  out += "  tidemark estimate train.py --gpu 4090           (a script, a configuration)\n";
  out += "  tidemark estimate --config config.json --json\n";
  out += "  tidemark estimate --request job.json\n";
  out += "\n" + strong("Commands", style) + "\n";
  for (const Command& command : commands()) command_line(command.name, command.summary(), style, out);
  out += "\n" +
         wrap(
             "`tidemark estimate --help` lists the usual options, `--help-all` all of them. Exit status: 0 answered "
             "(and fits, if --gpu is given), 1 does not fit (more is expected than the card gives), 2 bad usage or "
             "input, 3 internal error.",
             style.width, 0) +
         "\n";
  return finished(std::move(out), style);
}

std::string options_help(const Command& command, bool all, const TextStyle& style) {
  std::string out = usage_of(command, style);
  for (const OptionGroup& group : option_groups()) {
    std::string lines;
    for (const Option& option : options()) {
      if (option.group != group.name || (!all && (option.advanced || !option.missing.empty()))) continue;
      option_lines(option, true, style, lines);
    }
    if (!lines.empty()) out += "\n" + strong(group.title, style) + "\n" + lines;
  }
  out += "\n" + strong("Flags", style) + "\n";
  own_flags(command, style, out);
  if (!all) out += "\n" + wrap("`tidemark estimate --help-all` lists the remaining options.", style.width, 0) + "\n";
  return finished(std::move(out), style);
}

std::string command_help(const Command& command, const TextStyle& style) {
  std::string out = usage_of(command, style);
  if (!command.about.empty()) out += "\n" + wrap(command.about, style.width, 0) + "\n";
  out += "\n" + strong("Flags", style) + "\n";
  if (command.of_job()) {
    flag_lines("--gpu CARD", "A card by name, or 24GiB as torch sees it; repeatable.", style, out);
    for (const VerbKey& key : command.verb()->keys) {
      if (!key.has_flag()) continue;
      std::string names;
      for (const std::string& flag : flags_of(key)) names += (names.empty() ? "" : " | ") + flag;
      flag_lines(names + std::string{placeholder(key)}, key.help, style, out);
    }
  }
  own_flags(command, style, out);
  if (command.of_job()) {
    out += "\n" +
           wrap(
               "All options of a job (`tidemark estimate --help-all`) are understood as well. docs/advice.md "
               "tells how harm is weighed.",
               style.width, 0) +
           "\n";
  }
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
    if (option == nullptr) {
      // "parallelism" is no option, but has some.
      for (const Option& candidate : options()) {
        const bool below = candidate.name.size() > option_name.size() && candidate.name[option_name.size()] == '.' &&
                           candidate.name.starts_with(option_name);
        if (below || candidate.group == option_name) option_lines(candidate, true, style, out);
      }
      return finished(std::move(out), style);
    }
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

}  // namespace tidemark
