#pragma once

#include <optional>

#include "core/exchange/reading.hpp"

namespace tidemark::exchange {

/// The first command in a script's docstring that starts this script, as a source of its own whose lines are the
/// script's: how whoever wrote it launches it, where nobody hands over a command.
std::optional<Source> own_launch(const Source& script);

}  // namespace tidemark::exchange
