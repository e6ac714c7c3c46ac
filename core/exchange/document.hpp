#pragma once

#include "core/exchange/import.hpp"
#include "core/units/value.hpp"

namespace tidemark::exchange {

/// An issue as the document has it.
Value value_of(const Issue& issue);

/// What `tidemark import --json` prints and the page shows: docs/imports.md describes it.
Value document_of(const Import& import);

}  // namespace tidemark::exchange
