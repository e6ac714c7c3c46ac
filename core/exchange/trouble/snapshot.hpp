#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units/bytes.hpp"

namespace tidemark::exchange {

/// What torch.cuda.memory._dump_snapshot() holds (torch 2.9.0 torch/cuda/memory.py: _snapshot): the allocator's
/// segments as they are, and what was allocated and freed before, as far as the ring buffer kept it.
struct MemorySnapshot {
  struct Site {
    std::string name;  ///< "train.py:41 forward"
    Bytes bytes = 0;
  };
  Bytes reserved = 0;
  Bytes allocated = 0;
  Count segments = 0;
  Count traces = 0;
  Bytes trace_peak = 0;       ///< the most that lay there at once of what the trace saw allocated
  Bytes peak = 0;             ///< with what lay there before the trace began
  Count out_of_memories = 0;  ///< "oom" events
  std::vector<Site> at_peak;  ///< who held it, largest first
};

/// Whether the bytes begin like a pickle of protocol 2 or later.
bool looks_like_pickle(std::string_view bytes);

/// Reads it without running anything; `error` says why not.
std::optional<MemorySnapshot> read_snapshot(std::string_view bytes, std::string& error);

}  // namespace tidemark::exchange
