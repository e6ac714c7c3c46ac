#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tests/truth/rows.hpp"

namespace tidemark::truth {

/// How far off a set of rows is. Per cent, absolute values.
struct Summary {
  std::size_t n = 0;             ///< answered
  std::size_t unanswered = 0;    ///< not modelled yet
  std::size_t phases_right = 0;  ///< the peak falls in the record's phase
  std::size_t contained = 0;     ///< the stated range holds the truth
  double median = 0, p95 = 0, worst = 0;
  double width = 0;  ///< median half-width of the stated range
};

double quantile(std::vector<double> values, double q);  ///< the smallest that a share of q does not exceed
Summary summarise(const std::vector<Row>& rows);
double share(std::size_t part, std::size_t whole);  ///< per cent
std::map<std::string, std::vector<Row>> grouped(const std::vector<Row>& rows, bool by_family);

}  // namespace tidemark::truth
