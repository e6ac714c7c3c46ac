#pragma once

#include "core/tape/tape.hpp"

namespace tidemark {

/// What a sum over `rows` rows, [of], takes beside it: where blocks divide the rows, their sums and what they wait by
/// (ATen/native/cuda/Reduce.cuh gpu_reduce_kernel). Allocated and freed at once.
void partial_sums(Tape& t, Count rows, const Shape& of);

}  // namespace tidemark
