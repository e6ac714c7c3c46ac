#pragma once

#include "core/exchange/import.hpp"
#include "core/units/issue.hpp"
#include "core/units/value.hpp"

namespace tidemark::exchange {

/// The job that the engine is asked for. Keys that it has no option for are told among the issues, not handed on.
Value job_of(const Import& import, Issues& issues);

}  // namespace tidemark::exchange
