#pragma once

#include <string>
#include <string_view>

namespace tidemark {

/// A completion script for bash, zsh or fish, made from the tables of commands, verbs and options; empty for another
/// shell.
std::string completion_script(std::string_view shell);

}  // namespace tidemark
