#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/cli/job_flags.hpp"
#include "core/cli/verb_flags.hpp"
#include "core/report/text.hpp"
#include "core/wire/engine.hpp"
#include "core/wire/verbs/verbs.hpp"

namespace tidemark {

/// What the process returns (CONTRACT.md).
enum ExitStatus { kAnswered = 0, kDoesNotFit = 1, kBadInput = 2, kInternalError = 3 };

struct Command;

/// A command as it was typed.
struct Invocation {
  const Command& command;
  const Engine& engine;            ///< with the catalog, where the command reads it
  const JobFlags& job;             ///< of a command about a job
  const VerbFlags& keys;           ///< of its verb
  std::string request_path;        ///< the file of --request, "-" for standard input, or empty
  std::string word;                ///< what stands behind the command: a pattern, an option, a shell
  std::vector<std::string> files;  ///< or files, "-" for standard input
  TextStyle style;
  bool json = false;
  bool markdown = false;
  bool names = false;   ///< names only, one a line
  bool sarif = false;   ///< what a guard found, as SARIF
  bool strict = false;  ///< what is not estimated is a failure
  bool manual = false;  ///< as a manual page
};

/// A flag that is neither an option of the job nor a key of a verb.
struct CommandFlag {
  std::string_view name;      ///< "json"
  std::string_view argument;  ///< what stands behind it: "FILE", or nothing
  std::string_view help;      ///< a sentence
};

/// One thing that `tidemark` does. Dispatch, help and shell completions are made from these rows.
struct Command {
  std::string_view name;                    ///< of its verb, where it asks one
  std::string_view flags;                   ///< comma-separated, of command_flags()
  int (*run)(const Invocation&) = nullptr;  ///< what it does
  std::string_view help = {};               ///< half a sentence; the verb's, where empty
  std::string_view word = {};               ///< what may stand behind it: "PATTERN"
  std::string_view words = {};              ///< where only these may: "bash,zsh,fish"
  std::string_view usage = {};              ///< what follows "tidemark " in examples, a line each
  std::string_view about = {};              ///< what its own help says
  bool catalog = true;                      ///< whether it reads the catalog
  bool files = false;                       ///< whether files of other tools may stand behind it
  std::string_view asks = {};               ///< the verb's name, where the command has another

  /// The verb that it asks, or null.
  const Verb* verb() const { return find_verb(asks.empty() ? name : asks); }
  bool of_job() const { return verb() != nullptr && verb()->of_job; }
  std::string_view summary() const { return help.empty() && verb() != nullptr ? verb()->help : help; }
};
std::span<const Command> commands();
const Command* find_command(std::string_view name);

/// Flags that commands name.
std::span<const CommandFlag> command_flags();

/// Those of one command.
std::vector<const CommandFlag*> flags_of(const Command& command);

/// Flags of all options: what every command about a job takes.
std::vector<std::string> option_flags();

/// What a command takes besides: flags of its verb's keys, and its own.
std::vector<std::string> further_flags_of(const Command& command);

}  // namespace tidemark
