#pragma once

#include "core/tape/guards.hpp"
#include "core/units/bytes.hpp"

namespace tidemark {

/// Bytes that a kernel which sums `times` · `unit` rows of `outputs` neighbours takes for the partial sums of its
/// blocks, on a card of that compute capability (90 = 9.0); 0 where one block per output does. PyTorch 2.11
/// ATen/native/cuda/Reduce.cuh setReduceConfig and ReduceConfig::global_memory_size; seen on an H200
/// (tests/measured/own.jsonl): the gradient of a bias of 3072 over 3168 rows takes 75 MiB beside it.
Bytes reduction_buffer(Guards& guards, Count unit, Count times, Count outputs, int compute_capability);

}  // namespace tidemark
