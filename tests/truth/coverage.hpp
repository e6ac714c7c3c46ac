#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/wire/engine.hpp"
#include "tests/truth/accuracy_page.hpp"

namespace tidemark::truth {

using Word = std::pair<std::string, std::string>;  ///< option, value

/// A record that we follow and answer to, and the traits of its job (core/step/coverage.hpp).
struct Recorded {
  std::string id;
  std::vector<Word> words;
};

std::vector<Recorded> recorded_jobs(const Engine& engine, const std::vector<std::string>& record_files,
                                    const std::vector<Deviation>& deviations);

/// core/step/coverage_table.cpp as those records make it.
std::string coverage_table(const std::vector<Recorded>& records);

}  // namespace tidemark::truth
