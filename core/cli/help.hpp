#pragma once

#include <string>
#include <string_view>

#include "core/report/text.hpp"

namespace tidemark {

/// What `tidemark --help` prints.
std::string general_help(const TextStyle& style);

/// What `tidemark estimate --help` prints: the usual options, or all of them.
std::string estimate_help(bool all, const TextStyle& style);

/// What `tidemark fit --help`, `advise --help` and `map --help` print.
std::string card_help(std::string_view command, const TextStyle& style);

/// What `tidemark describe` prints: every option, or the one of that name; empty when there is none.
std::string describe_help(std::string_view option_name, const TextStyle& style);

/// A completion script for bash, zsh or fish, made from the option table; empty for another shell.
std::string completion_script(std::string_view shell);

}  // namespace tidemark
