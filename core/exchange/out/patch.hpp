#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/exchange/import.hpp"
#include "core/units/issue.hpp"
#include "core/units/value.hpp"

namespace tidemark::exchange {

/// A field of the request and what it shall be: {"adapter.r", 8}.
using Change = std::pair<std::string, Value>;

/// A file with other values in it, all other lines as they were.
struct Patched {
  std::string text;  ///< the whole file
  std::string diff;  ///< the same as a unified diff; empty where nothing changed
  Issues issues;     ///< a warning for each change that the file has no words for
};

/// Writes the changes into the first source, as `import_sources` reads all of them: an edit counts when the file, read
/// again, says the new value and everything else as before.
Patched patch(std::vector<Source> sources, const std::vector<Change>& changes);

/// Every leaf of a request by its path; lists are leaves.
std::vector<Change> leaves_of(const Value& request);

}  // namespace tidemark::exchange
