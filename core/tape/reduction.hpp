#pragma once

#include "core/units/bytes.hpp"

namespace tidemark {

/// How a kernel that sums rows of neighbours divides them among its blocks. PyTorch 2.11 ATen/native/cuda/Reduce.cuh
/// setReduceConfig; seen on an H200 (tests/measured/own.jsonl): the gradient of a bias of 3072 over 3168 rows takes
/// 75 MiB beside it.
struct Reduction {
  Count height = 1;      ///< rows that a block takes at a time
  Count filling = 0;     ///< blocks for each sum that fill the card; 0: the sums fill it, and rows are never divided
  Bytes partial = 0;     ///< bytes of one block's sums, of all outputs (ReduceConfig::global_memory_size)
  Bytes semaphores = 0;  ///< bytes beside them (ReduceConfig::semaphore_size)
};

/// Up to so many rows are never divided: even where a block takes one at a time, its threads have too few.
inline constexpr Count kFewRows = 255;
/// Values of one thread from which on blocks divide them, and at most as many (max_values_per_thread).
inline constexpr Count kMostValues = 256;

/// Of `outputs` sums on a card of that compute capability (90 = 9.0).
Reduction reduction_of(Count outputs, int compute_capability);

/// Among how many blocks so many rows are divided; 0: one block has them all.
Count blocks_of(Count rows, const Reduction& reduction);

}  // namespace tidemark
