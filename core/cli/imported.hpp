#pragma once

#include <string>
#include <vector>

#include "core/exchange/import.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// Reads files of other tools and those that they name.
exchange::Import import_files(const std::vector<std::string>& files, Issues& issues);

}  // namespace tidemark
