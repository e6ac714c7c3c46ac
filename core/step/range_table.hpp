// Written by `tidemark_truth --ranges core/step/range_table.hpp`: the 99.5 % quantile of |error|, in thousandths,
// of the records in tests/oracle, each as if it alone were missing there, of tests/measured (allocated, complete)
// and of tests/oracle/first-sight.jsonl, what was said of records before anyone had looked at them.
#pragma once

#include "core/units/bytes.hpp"

namespace tidemark {

/// Each pair of options, and each option with the family, stands in another record.
/// 10658 jobs, median 0.001 %, 99.5 % within 1.11 %, worst 23.59 %.
constexpr Bytes kRecordedSpread = 12;
/// Each pair of options does, an option with this family does not.
/// 3492 jobs, median 0.002 %, 99.5 % within 2.40 %, worst 20.07 %.
constexpr Bytes kOtherFamiliesSpread = 24;
/// An option or a pair of options stands in no other record.
/// 1706 jobs, median 0.003 %, 99.5 % within 7.01 %, worst 21.23 %.
constexpr Bytes kFromSourceOnlySpread = 71;
/// Activations go to the host (tests/oracle/records-offloaded.jsonl).
/// 343 jobs, median 0.008 %, 99.5 % within 1.83 %, worst 2.23 %.
constexpr Bytes kOffloadedActivationsSpread = 19;
/// GPUs divide a model that generates (tests/oracle/records-multi.jsonl, grpo-*).
/// 51 jobs, median 0.030 %, 99.5 % within 0.50 %, worst 0.50 %.
constexpr Bytes kDividedRolloutSpread = 10;

}  // namespace tidemark
