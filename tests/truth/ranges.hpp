#pragma once

#include <string>
#include <vector>

#include "tests/truth/coverage.hpp"
#include "tests/truth/rows.hpp"

namespace tidemark::truth {

/// core/step/range_table.hpp as residuals make it: of the records, each looked at as if it were missing from what
/// covers it; of the measurements that we follow; and of records when the engine first met them
/// (tests/oracle/first-sight.jsonl).
std::string range_table(const std::vector<Recorded>& records, const std::vector<Row>& rows,
                        const std::vector<Row>& measured, const std::string& first_sight);

}  // namespace tidemark::truth
