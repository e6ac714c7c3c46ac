#pragma once

#include <string>

#include "core/answer/answer.hpp"

namespace tidemark {

/// The answer as Markdown, for issues, pull requests and notes. `explain` adds every entry with formula and source.
std::string render_markdown(const Answer& answer, bool explain = false);

/// The reference of all options, made from the option table (docs/reference.md).
std::string render_reference();

}  // namespace tidemark
