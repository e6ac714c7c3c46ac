#include "core/exchange/notebook_files.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/exchange/args.hpp"
#include "core/exchange/fields.hpp"

namespace tidemark::exchange {
namespace {

constexpr std::string_view kWrites = "%%writefile ";

bool is_name(std::string_view word) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  return !word.empty() && (word[0] < '0' || word[0] > '9') &&
         word.find_first_not_of(kLetters) == std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string_view::npos ? std::string_view{}
                                         : text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

/// `name = "text"` or `name = 3` of Python as the shell would have it; empty for any other line.
std::string assignment(std::string_view line, std::vector<std::string>& names) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return {};
  const std::string_view name = trimmed(line.substr(0, equals));
  std::string_view value = trimmed(line.substr(equals + 1));
  if (!is_name(name) || value.empty() || line[0] == ' ') return {};
  const char quote = value[0];
  if (quote == '"' || quote == '\'') {
    const std::size_t close = value.find(quote, 1);
    if (close == std::string_view::npos || close == 1) return {};
    value = value.substr(0, close + 1);
  } else {
    value = value.substr(0, value.find_first_not_of("0123456789.e-"));
    if (value.empty() || value[0] < '0' || value[0] > '9') return {};
  }
  names.emplace_back(name);
  return std::string{name} + "=" + std::string{value};
}

/// IPython puts variables of Python into a command by `{name}` as by `$name`.
std::string interpolated(std::string_view line, const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const std::size_t close = line[at] == '{' ? line.find('}', at) : std::string_view::npos;
    if (close != std::string_view::npos && (at == 0 || line[at - 1] != '$') &&
        std::find(names.begin(), names.end(), line.substr(at + 1, close - at - 1)) != names.end())
      text += '$';
    text += line[at];
  }
  return text;
}

struct Commands {
  std::string text;
  std::vector<NotebookFiles::Place> lines;
  std::vector<std::string> names;  ///< variables of Python
  bool any = false;

  void add(std::string line, int cell, int number) {
    text += std::move(line);
    text += '\n';
    lines.push_back({cell, number});
  }
};

/// A cell line by line: what the shell is handed, and what a variable is given; blank for all else.
void take_cell(std::string_view text, int cell, Commands& commands) {
  const bool shell = text.starts_with("%%bash") || text.starts_with("%%sh");
  bool goes_on = false;
  int number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    const bool starts = trimmed(line).starts_with('!');
    if (shell ? number > 0 : goes_on || starts) {
      if (starts && !goes_on) line = trimmed(line).substr(1);
      commands.any = true;
      commands.add(shell ? std::string{line} : interpolated(line, commands.names), cell, number + 1);
      goes_on = !shell && trimmed(line).ends_with('\\');
    } else {
      commands.add(shell ? std::string{} : assignment(line, commands.names), cell, number + 1);
    }
  }
}

/// `%%writefile configs/train.yaml`, its lines where they stand in the cell.
void take_written(std::string_view text, int cell, const std::string& notebook, NotebookFiles& files) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return;
  const std::string_view path = trimmed(text.substr(kWrites.size(), end - kWrites.size()));
  if (path.starts_with("-")) return;  // -a: more of a file
  files.sources.push_back({notebook + " (cell " + std::to_string(cell) + ")/" + std::string{base_name(path)},
                           std::string{text.substr(end)}, 0});
}

/// `python -m pip` starts none.
bool starts_a_program(std::string_view commands) {
  const std::vector<Launch> launches = launches_of(read_shell(commands));
  return std::any_of(launches.begin(), launches.end(), [](const Launch& one) { return one.program != "pip"; });
}

}  // namespace

NotebookFiles files_of_notebook(const Source& notebook) {
  NotebookFiles files;
  const Look look = look_at(notebook);
  const Node* cells = look.find("cells");
  if (cells == nullptr) return files;
  Commands commands;
  for (std::size_t at = 0; at < cells->items.size(); ++at) {
    const std::string text = code_of(cells->items[at]);
    if (text.starts_with(kWrites))
      take_written(text, static_cast<int>(at), notebook.name, files);
    else
      take_cell(text, static_cast<int>(at), commands);
  }
  if (!commands.any || !starts_a_program(commands.text)) return files;
  files.commands = notebook.name + " (commands).sh";
  files.lines = std::move(commands.lines);
  files.sources.insert(files.sources.begin(), Source{files.commands, std::move(commands.text), 0});
  return files;
}

}  // namespace tidemark::exchange
