#include "core/exchange/own_launch.hpp"

#include <algorithm>

#include "core/exchange/fields.hpp"

namespace tidemark::exchange {
namespace {

/// Blank, a comment, or of an import, whose names may stand in lines of their own: TRL's ppo scripts have their
/// commands behind these.
bool stands_before_docstring(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos || line[0] == '#' || line[0] == ' ' ||
         line[0] == ')' || line.starts_with("import ") || line.starts_with("from ");
}

/// Where the text between a module's first three quotes and the next ones begins and ends.
struct Docstring {
  std::size_t begin = 0, end = 0;
};

Docstring docstring_of(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const std::string_view quotes = line.substr(0, 3);
    if (quotes == "\"\"\"" || quotes == "'''") {
      const std::size_t close = text.find(quotes, at + quotes.size());
      return {at + quotes.size(), std::min(close, text.size())};
    }
    if (!stands_before_docstring(line)) break;
    at = end + 1;
  }
  return {};
}

bool launches(std::string_view line) {
  constexpr std::string_view kLaunchers[] = {"python ", "python3 ", "accelerate launch ", "torchrun ", "deepspeed "};
  return std::any_of(std::begin(kLaunchers), std::end(kLaunchers), [&](auto word) { return line.starts_with(word); });
}

bool names(std::string_view line, std::string_view script) {
  const std::size_t at = line.find(script), after = at + script.size();
  return at != std::string_view::npos && (at == 0 || line[at - 1] == '/' || line[at - 1] == ' ') &&
         (after == line.size() || line[after] == ' ');
}

/// Without what stands in front of a command, and with one backslash at its end where the docstring escapes it.
std::string_view trimmed(std::string_view line) {
  const auto skip = [&line](std::size_t from) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t$", from), line.size()));
  };
  skip(0);
  line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
  if (line.ends_with("\\\\")) line.remove_suffix(1);
  while (!line.empty() && line[0] >= 'A' && line[0] <= 'Z' && line.find('=') < line.find(' ') &&
         line.find(' ') != std::string_view::npos)
    skip(line.find(' '));  // CUDA_VISIBLE_DEVICES=0,1 in front of the command
  return line;
}

}  // namespace

std::optional<Source> own_launch(const Source& script) {
  const std::string_view text = script.bytes, name = base_name(script.name);
  const auto [begin, end] = docstring_of(text);
  std::string command;  // of the lines since one that launches something
  std::string before;   // a line's end for each line in front of it
  bool starts_this = false;
  for (std::size_t at = 0; at < end;) {
    const std::size_t stop = std::min(text.find('\n', at), end);
    const std::string_view line = at < begin ? std::string_view{} : trimmed(text.substr(at, stop - at));
    at = stop + 1;
    if (command.empty() && !launches(line)) {
      before += '\n';
      continue;
    }
    command.append(line).push_back('\n');
    starts_this = starts_this || names(line, name);
    if (line.ends_with('\\')) continue;
    if (starts_this) return Source{script.name + " (docstring)", before + command, 0};
    before.append(static_cast<std::size_t>(std::count(command.begin(), command.end(), '\n')), '\n');
    command.clear();
  }
  return std::nullopt;
}

}  // namespace tidemark::exchange
