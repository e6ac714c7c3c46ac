#pragma once

#include <optional>
#include <string_view>

namespace tidemark::exchange {

/// What an integer expression of a shell comes to: + - * / % and parentheses. Nothing where it is no such expression,
/// divides by zero or becomes larger than anything that a script of training computes.
std::optional<long long> shell_arithmetic(std::string_view text);

}  // namespace tidemark::exchange
