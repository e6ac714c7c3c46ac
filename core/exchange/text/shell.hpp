#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::exchange {

/// Text that knows the line of each of its letters: a flag may come out of a variable that was set far above.
struct Lined {
  std::string text;
  std::vector<int> lines;  ///< beside text

  void add(char letter, int line) {
    text += letter;
    lines.push_back(line);
  }
  void add(const Lined& other);
};

/// A word of a command after all expansions. Where a variable is not set in the file its `$NAME` stays in the text.
struct ShellWord {
  Lined text;
  std::vector<int> uses;   ///< lines of the variables' uses
  bool tentative = false;  ///< the script's own default of an argument that may override it

  const std::string& word() const { return text.text; }
  /// First the lines that it was written in, then those where it was used.
  std::vector<int> lines() const;
};

/// One simple command: its words, and the assignments in front of it.
struct ShellCommand {
  std::vector<ShellWord> words;
  std::map<std::string, ShellWord> environment;
};

/// A document that a script writes itself: `cat <<EOT > ds_config.json`.
struct HereDocument {
  std::string file;
  std::string text;
  int line = 0;
};

/// What a shell script would start, read without starting anything: assignments, arrays, defaults, integer arithmetic
/// and tests of known values are followed; of a branch that nobody can decide both sides are read, the later one
/// counts.
struct ShellScript {
  std::vector<ShellCommand> commands;
  std::vector<HereDocument> documents;
  std::map<std::string, ShellWord> variables;  ///< as they are at the end
  std::vector<std::string> twice;              ///< set to different values on the way
};
ShellScript read_shell(std::string_view text);

}  // namespace tidemark::exchange
