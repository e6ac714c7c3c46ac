#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tidemark {

/// An option's values in the records of tests/oracle. Each value has a place among those of all options.
struct RecordedOption {
  std::string_view option;
  std::uint16_t first;      ///< place of the first value
  std::string_view values;  ///< sorted, each with a line's end behind it
};

/// All options that records have, sorted. The table is written by
/// `tidemark_truth --coverage core/step/coverage_table.cpp`; `--check` fails when it is not that of the records.
std::span<const RecordedOption> recorded_options();

/// Of each place a row of as many bytes as its bits need, one for each place up to itself: some record has both.
std::span<const std::uint8_t> recorded_pairs();

}  // namespace tidemark
