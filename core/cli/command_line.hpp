#pragma once

#include <deque>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/cli/command_table.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// The table of commands as CLI11 knows it, and what was typed.
class CommandLine {
 public:
  CommandLine();

  /// An error among the issues when it makes no sense, in our words and with the nearest flag or command.
  Issues parse(int argc, char** argv);

  /// The command that was typed, or null.
  const Command* command() const;
  /// A command as it was typed.
  Invocation invocation(const Command& command, const Engine& engine, const TextStyle& style) const;
  /// How to print, by the flags.
  TextStyle style() const;

  bool help = false;
  bool help_all = false;
  bool version = false;

 private:
  struct Row {
    const Command* command = nullptr;
    CLI::App* app = nullptr;
    JobFlags job;
    VerbFlags keys;
  };
  void add(const Command& command);
  void add_flags(Row& row);
  bool* switch_of(std::string_view flag);
  const Row* chosen() const;

  CLI::App app_;
  std::deque<Row> rows_;  // CLI11 keeps addresses of what is in them
  std::string request_path_;
  std::string word_;
  std::vector<std::string> files_;
  bool json_ = false;
  bool markdown_ = false;
  bool names_ = false;
  bool sarif_ = false;
  bool strict_ = false;
  bool manual_ = false;
  bool bytes_ = false;
  bool explain_ = false;
  bool no_colour_ = false;
  bool ascii_ = false;
};

}  // namespace tidemark
