#pragma once

#include <bit>
#include <cstdint>

#include "core/units/bytes.hpp"

namespace tidemark {

/// What one process keeps in its host's memory, in bytes.
struct HostMemory {
  Bytes bytes = 0;     ///< of the tensors
  Bytes rounding = 0;  ///< that their blocks take beyond, where they are pinned

  void add(Bytes tensor, Count times = 1) { bytes += tensor * times; }
  /// torch 2.14 ATen/core/CachingHostAllocator.h: allocate rounds a pinned block up to a power of two
  /// (PYTORCH_CUDA_ALLOC_CONF has pinned_max_round_threshold_mb against it), and keeps it for the process's life.
  void pin(Bytes tensor, Count times = 1) {
    add(tensor, times);
    if (tensor > 0)
      rounding += (static_cast<Bytes>(std::bit_ceil(static_cast<std::uint64_t>(tensor))) - tensor) * times;
  }
  void keep(Bytes tensor, bool pinned, Count times = 1) { pinned ? pin(tensor, times) : add(tensor, times); }
  /// As many processes' in one node.
  void add(const HostMemory& other, Count processes) {
    bytes += other.bytes * processes;
    rounding += other.rounding * processes;
  }
};

}  // namespace tidemark
