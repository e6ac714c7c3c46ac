#pragma once

#include "core/tape/ops.hpp"

namespace tidemark {

/// x * w^T (and a bias) as torchao's Float8Linear: 8-bit copies of both while they are multiplied, in forward and again
/// in backward; what is kept is wide. `rowwise`: a scale for each row instead of one.
Tensor float8_linear(Tensor x, Tensor weight, Tensor bias, bool rowwise);

}  // namespace tidemark
