#pragma once

#include "core/tape/scan_ops.hpp"

/// What attention in overlapping windows uses besides. Rules as in ops.hpp.
namespace tidemark {

/// x.as_strided(shape): `shape` has its own strides; `overlaps`: elements are seen more than once.
Tensor as_strided(Tensor x, const Shape& shape, bool overlaps);
/// x[rows, columns] of x [n, m, …] by two lists of indices as long as `count`: [count, …].
Tensor index_pairs(Tensor x, Tensor indices, Dim count);

}  // namespace tidemark
