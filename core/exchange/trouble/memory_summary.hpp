#pragma once

#include <optional>

#include "core/exchange/trouble/log_text.hpp"
#include "core/units/bytes.hpp"

namespace tidemark::exchange {

/// What torch.cuda.memory_summary() prints (torch 2.9.0 torch/cuda/memory.py: memory_summary). Figures are floored to
/// the unit of their cell.
struct MemorySummary {
  struct Row {
    Bytes current = 0;
    Bytes peak = 0;
  };
  std::int64_t device = 0;
  std::optional<std::int64_t> ooms;
  std::optional<std::int64_t> retries;  ///< of cudaMalloc, after the cache was emptied
  std::optional<Row> allocated, active, requested, reserved;
  int line = 0;  ///< where the table begins
};

std::optional<MemorySummary> find_memory_summary(const LogText& log);

}  // namespace tidemark::exchange
