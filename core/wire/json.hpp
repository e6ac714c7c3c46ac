#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/units/issue.hpp"
#include "core/units/make_value.hpp"
#include "core/units/value.hpp"

namespace tidemark {

/// Limits on a document: what no honest request reaches and what keeps a hostile one from taking the process down.
inline constexpr std::size_t kMaxDocumentBytes = 16U << 20U;
inline constexpr int kMaxNesting = 64;
/// Values of every kind: a Value takes some hundred bytes where its text may take two. The catalog of all models has a
/// sixteenth of this.
inline constexpr std::size_t kMaxValues = 250'000;

/// Reads JSON text. Trouble (not JSON, too large, too deep, a key twice) is told in `issues`, at `path`; with an error
/// among it the value is null. Python's NaN and Infinity, which some config.json files hold, are read as such numbers:
/// who reads the document says whether they make sense there.
Value parse_json(std::string_view text, std::string_view path, Issues& issues);

/// Writes JSON text: keys in their order, numbers in the fewest digits that read back the same, invalid UTF-8
/// replaced. `indent` spaces per level; 0 for one line.
std::string write_json(const Value& value, int indent = 0);

}  // namespace tidemark
