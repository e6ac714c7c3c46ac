#pragma once

#include <cstdint>
#include <span>

#include "core/step/coverage.hpp"

namespace tidemark {

/// A trait that records have, and those that they have it together with.
struct RecordedTrait {
  Trait trait;
  std::span<const std::uint64_t> with;  ///< bit i: some record has this trait and the i-th of the table

  bool together_with(std::size_t i) const { return (with[i / 64] >> (i % 64) & 1U) != 0; }
};

/// All traits of the records in tests/oracle, sorted by option and value. The table is written by
/// `tidemark_truth --coverage core/step/coverage_table.cpp`; `--check` fails when it is not that of the records.
std::span<const RecordedTrait> recorded_traits();

}  // namespace tidemark
