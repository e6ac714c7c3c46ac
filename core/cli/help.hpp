#pragma once

#include <string>
#include <string_view>

#include "core/cli/command_table.hpp"
#include "core/report/text.hpp"

namespace tidemark {

/// What `tidemark --help` prints.
std::string general_help(const TextStyle& style);

/// The usual options of a job, or all of them: `tidemark estimate --help`, `--help-all`.
std::string options_help(const Command& command, bool all, const TextStyle& style);

/// What `--help` behind any other command prints.
std::string command_help(const Command& command, const TextStyle& style);

/// What `tidemark describe` prints: every option, or the one of that name; empty when there is none.
std::string describe_help(std::string_view option_name, const TextStyle& style);

}  // namespace tidemark
