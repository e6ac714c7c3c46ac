#include "tests/truth/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace tidemark::truth {
double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  const auto i = static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size()))) - 1;
  return values[std::min(i, values.size() - 1)];
}

Summary summarise(const std::vector<Row>& rows) {
  Summary s;
  std::vector<double> errors, widths;
  for (const Row& r : rows) {
    if (!r.answered) {
      ++s.unanswered;
      continue;
    }
    ++s.n;
    errors.push_back(std::fabs(r.error));
    widths.push_back((r.high - r.low) / 2);
    s.phases_right += r.phase == r.true_phase;
    s.contained += r.low <= 1e-9 && r.high >= -1e-9;
  }
  s.median = quantile(errors, 0.5);
  s.p95 = quantile(errors, 0.95);
  s.worst = quantile(errors, 1.0);
  s.width = quantile(widths, 0.5);
  return s;
}

double share(std::size_t part, std::size_t whole) {
  return whole == 0 ? 100.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::map<std::string, std::vector<Row>> grouped(const std::vector<Row>& rows, bool by_family) {
  std::map<std::string, std::vector<Row>> groups;
  for (const Row& r : rows) groups[by_family ? r.family : r.regime].push_back(r);
  return groups;
}

}  // namespace tidemark::truth
