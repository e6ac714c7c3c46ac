#pragma once

#include "core/options/option.hpp"

namespace tidemark {

/// A list of names, or a string: a shorthand or a regular expression. On the command line all are lists.
ModuleChoice module_choice(const OptionValue& value);

}  // namespace tidemark
