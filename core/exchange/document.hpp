#pragma once

#include "core/exchange/import.hpp"
#include "core/units/issue.hpp"
#include "core/units/value.hpp"

namespace tidemark::exchange {

/// What `tidemark import --json` prints and the page shows: docs/imports.md describes it.
Value document_of(const Import& import);

/// The job that the engine is asked for. Keys that it has no option for are told among the issues, not handed on.
Value job_of(const Import& import, Issues& issues);

}  // namespace tidemark::exchange
