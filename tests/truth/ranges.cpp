#include "tests/truth/ranges.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/step/coverage.hpp"
#include "core/wire/json.hpp"
#include "tests/truth/statistics.hpp"

namespace tidemark::truth {
namespace {

// What a range promises, of jobs that no record was made of.
constexpr double kPromised = 0.995;

/// How far the records reach to a job: they hold it, they lack this family with an option, they lack an option or a
/// pair.
/// Apart are jobs whose activations go to the host: when another stream frees them decides on their peak; and models
/// that generate answers where GPUs divide them.
enum Reach { kRecorded, kOtherFamilies, kSourceOnly, kApart, kRollout, kReaches };
using Residuals = std::array<std::vector<double>, kReaches>;
using Counts = std::map<std::pair<Word, Word>, int>;

Counts count_pairs(const std::vector<Recorded>& records) {
  Counts counts;
  for (const Recorded& record : records) {
    for (const Word& a : record.words) {
      for (const Word& b : record.words) ++counts[{a, b}];
    }
  }
  return counts;
}

// Had this record not been made: the pair of a word with itself is the word alone.
Reach reach_without(const Recorded& record, const Counts& counts) {
  Reach reach = kRecorded;
  for (const Word& a : record.words) {
    if (a.first == kActivationOffloading) return kApart;
    if (a.first == kDividedRollout) return kRollout;
  }
  for (const Word& a : record.words) {
    for (const Word& b : record.words) {
      if (counts.at({a, b}) > 1) continue;
      const bool of_family = a != b && (a.first == "model_type" || b.first == "model_type");
      if (!of_family) return kSourceOnly;
      reach = kOtherFamilies;
    }
  }
  return reach;
}

void add_records(Residuals& residuals, const std::vector<Recorded>& records, const std::vector<Row>& rows) {
  std::map<std::string, double> errors;
  for (const Row& row : rows) errors[row.id] = row.error;
  const Counts counts = count_pairs(records);
  for (const Recorded& record : records) {
    const auto error = errors.find(record.id);
    if (error == errors.end()) continue;  // it awaits its recording
    residuals[reach_without(record, counts)].push_back(std::fabs(error->second));
  }
}

// Measured on real GPUs, everything that moves memory stated; the allocator's figure.
void add_measured(Residuals& residuals, const std::vector<Row>& measured) {
  for (const Row& row : measured) {
    if (row.answered && row.metric == "allocated" && row.completeness == "A") {
      residuals[kRecorded].push_back(std::fabs(row.error));
    }
  }
}

// {id, reach, error}: what the engine said before anyone had looked at the record.
void add_first_sight(Residuals& residuals, const std::string& path) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    Issues issues;
    const Value v = parse_json(line, "", issues);
    residuals[static_cast<std::size_t>(v.find("reach")->integer)].push_back(std::fabs(v.find("error")->real));
  }
}

// In thousandths, upwards. Never less than one in a hundred: the records leave cuBLAS's workspaces out of the
// allocator, and where those lie among a small job's blocks moves its peak by as much.
int thousandths(const std::vector<double>& residuals) {
  return std::max(10, static_cast<int>(std::ceil(quantile(residuals, kPromised) * 10.0)));
}

std::string constant(const char* name, const char* about, const std::vector<double>& residuals, int spread) {
  char text[400];
  std::snprintf(text, sizeof text, "/// %s.\n/// %zu jobs, median %.3f %%, 99.5 %% within %.2f %%, worst %.2f %%.\n",
                about, residuals.size(), quantile(residuals, 0.5), quantile(residuals, kPromised),
                quantile(residuals, 1.0));
  return text + ("constexpr Bytes " + std::string{name} + " = " + std::to_string(spread) + ";\n");
}

}  // namespace

std::string range_table(const std::vector<Recorded>& records, const std::vector<Row>& rows,
                        const std::vector<Row>& measured, const std::string& first_sight) {
  Residuals residuals;
  add_records(residuals, records, rows);
  add_measured(residuals, measured);
  add_first_sight(residuals, first_sight);
  std::array<int, kReaches> spreads{};
  for (std::size_t i = 0; i < kReaches; ++i) {
    // A job that less is known of is not known better.
    spreads[i] = std::max(thousandths(residuals[i]), i == 0 || i >= kApart ? 0 : spreads[i - 1]);
  }
  return "// Written by `tidemark_truth --ranges core/step/range_table.hpp`: the 99.5 % quantile of |error|, in "
         "thousandths,\n"
         "// of the records in tests/oracle, each as if it alone were missing there, of tests/measured (allocated, "
         "complete)\n"
         "// and of tests/oracle/first-sight.jsonl, what was said of records before anyone had looked at them.\n"
         "#pragma once\n\n#include \"core/units/bytes.hpp\"\n\nnamespace tidemark {\n\n" +
         constant("kRecordedSpread", "Each pair of options, and each option with the family, stands in another record",
                  residuals[kRecorded], spreads[kRecorded]) +
         constant("kOtherFamiliesSpread", "Each pair of options does, an option with this family does not",
                  residuals[kOtherFamilies], spreads[kOtherFamilies]) +
         constant("kFromSourceOnlySpread", "An option or a pair of options stands in no other record",
                  residuals[kSourceOnly], spreads[kSourceOnly]) +
         constant("kOffloadedActivationsSpread", "Activations go to the host (tests/oracle/records-offloaded.jsonl)",
                  residuals[kApart], spreads[kApart]) +
         constant("kDividedRolloutSpread",
                  "GPUs divide a model that generates (tests/oracle/records-multi.jsonl, grpo-*)", residuals[kRollout],
                  spreads[kRollout]) +
         "\n}  // namespace tidemark\n";
}

}  // namespace tidemark::truth
