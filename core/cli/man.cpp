#include "core/cli/man.hpp"

#include "core/cli/command_table.hpp"
#include "core/options/options.hpp"
#include "core/wire/engine.hpp"

namespace tidemark {
namespace {

/// Text as roff takes it: backslashes and dashes are written out, and no line begins as a request does.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
      out += c;
    }
  }
  return out;
}

void section(std::string_view title, std::string& out) {
  out += ".SH \"" + roff(title) + "\"\n";
}

void entry(std::string_view term, std::string_view text, std::string& out) {
  out += ".TP\n.B " + roff(term) + "\n" + roff(text) + "\n";
}

void command_part(const Command& command, std::string& out) {
  out += ".SS \"" + roff(command.name) + "\"\n" + roff(command.summary()) + ".\n";
  if (!command.about.empty()) out += ".PP\n" + roff(command.about) + "\n";
  if (!command.usage.empty()) {
    out += ".PP\n.nf\n";
    std::string_view lines = command.usage;
    while (!lines.empty()) {
      const std::size_t end = lines.find('\n');
      out += roff("tidemark " + std::string{lines.substr(0, end)}) + "\n";
      lines = end == std::string_view::npos ? std::string_view{} : lines.substr(end + 1);
    }
    out += ".fi\n";
  }
  if (!command.of_job()) return;
  for (const VerbKey& key : command.verb()->keys) {
    if (!key.has_flag()) continue;
    std::string names;
    for (const std::string& flag : flags_of(key)) names += (names.empty() ? "" : ", ") + flag;
    entry(names + std::string{placeholder(key)}, key.help, out);
  }
}

std::string help_of(const Option& option) {
  std::string text{option.help};
  std::string words;
  for (const Choice& choice : option.choices) {
    if (choice.modelled && choice.alias_of.empty()) words += (words.empty() ? "" : ", ") + std::string{choice.name};
  }
  if (!words.empty()) text += " One of " + words + ".";
  if (option.standard != "null" && option.standard != "[]") text += " Default: " + std::string{option.standard} + ".";
  return text;
}

void option_parts(std::string& out) {
  for (const OptionGroup& group : option_groups()) {
    out += ".SS \"" + roff(group.title) + "\"\n";
    for (const Option& option : options()) {
      if (option.group != group.name || !option.missing.empty()) continue;
      std::string names;
      for (const std::string& flag : flags_of(option)) names += (names.empty() ? "" : ", ") + flag;
      entry(names, help_of(option), out);
    }
  }
}

}  // namespace

std::string manual_page() {
  std::string out = ".TH TIDEMARK 1 \"\" \"tidemark " + std::string{engine_version()} + "\" \"User Commands\"\n";
  section("NAME", out);
  out += roff("tidemark") + " \\- " + roff("peak GPU memory of a training job, before it is launched") + "\n";
  section("SYNOPSIS", out);
  out += ".B tidemark\n.I command\n[\\fIfile\\fR ...] [\\fIoptions\\fR]\n";
  section("DESCRIPTION", out);
  out += roff(
      "Runs one training step of the model without the numbers, under PyTorch's rules for what autograd keeps and what "
      "the caching allocator hands out, and says how much memory it needs at most, in which moment and why. Needs "
      "neither a GPU nor a network.");
  out += "\n";
  section("COMMANDS", out);
  for (const Command& command : commands()) command_part(command, out);
  section("FLAGS", out);
  for (const CommandFlag& flag : command_flags()) {
    const std::string argument{flag.argument};
    entry("--" + std::string{flag.name} + (argument.empty() ? "" : " " + argument), flag.help, out);
  }
  section("OPTIONS OF A JOB", out);
  option_parts(out);
  section("EXIT STATUS", out);
  entry("0", "Answered, and all cards that are named are enough.", out);
  entry("1", "More is expected than a named card gives.", out);
  entry("2", "Bad usage or input: nothing on standard output, the reason on standard error.", out);
  entry("3", "Internal error, or the output could not be written.", out);
  section("ENVIRONMENT", out);
  entry("NO_COLOR", "No colours.", out);
  entry("COLUMNS", "Width of the text.", out);
  return out;
}

}  // namespace tidemark
