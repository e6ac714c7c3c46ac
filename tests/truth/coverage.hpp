#pragma once

#include <string>
#include <vector>

#include "core/wire/engine.hpp"
#include "tests/truth/accuracy_page.hpp"

namespace tidemark::truth {

/// core/step/coverage_table.cpp as the records of those files make it, but for those that we do not follow.
std::string coverage_table(const Engine& engine, const std::vector<std::string>& record_files,
                           const std::vector<Deviation>& deviations);

}  // namespace tidemark::truth
