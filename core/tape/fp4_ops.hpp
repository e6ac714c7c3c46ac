#pragma once

#include "core/tape/ops.hpp"

namespace tidemark {

/// A format of 4-bit floats with a scale for each block of a row.
enum class Fp4 : std::uint8_t { kMx, kNv };
/// x * w^T (and a bias, which gets no gradient) as torchao's linear layers for training in that format: both are
/// narrowed in forward, kept so, and widened for backward.
Tensor fp4_linear(Tensor x, Tensor weight, Tensor bias, Fp4 format);

}  // namespace tidemark
