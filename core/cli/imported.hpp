#pragma once

#include <string>
#include <vector>

#include "core/exchange/import.hpp"
#include "core/units/issue.hpp"
#include "core/units/value.hpp"

namespace tidemark {

/// Reads files of other tools and those that they name.
exchange::Import import_files(const std::vector<std::string>& files, Issues& issues);

/// The request that they spell. Keys that the engine has no option for are told, not handed on.
Value job_of(const exchange::Import& import, Issues& issues);

}  // namespace tidemark
