#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/answer/estimate.hpp"
#include "core/units/value.hpp"

namespace tidemark::exchange {

/// What was measured beside what is estimated, and what follows from it.
struct Comparison {
  struct Row {
    std::string what;  ///< "allocated at the peak"
    Bytes estimated = 0;
    Bytes measured = 0;
  };
  /// too_large, tight, fragmentation, other_processes, limited, not_this_job, agrees, differs, unknown.
  std::string_view verdict = "unknown";
  std::vector<Row> rows;
  std::vector<std::string> sentences;  ///< for a person, the most important first
};

/// What a log says of a run that went well, as far as it does.
struct Measured {
  std::optional<Bytes> allocated;  ///< at the peak
  std::optional<Bytes> reserved;
  std::optional<Bytes> device;  ///< on the card, as nvidia-smi shows it
  bool any() const { return allocated || reserved || device; }
};
Measured measured_in(std::string_view format, const Value& log);

/// `log` is a reading of core/exchange/formats/logs.cpp or of a probe; `format` its name. A mismatch is told, never
/// explained away.
Comparison compare(const Estimate& estimate, std::string_view format, const Value& log);

/// As `import --json` prints it.
Value to_value(const Comparison& comparison);

}  // namespace tidemark::exchange
