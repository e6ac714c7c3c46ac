#pragma once

#include "core/tape/ops.hpp"

namespace tidemark {

/// x * w^T by an LLM.int8 weight (a byte an element and an fp32 scale a row): bitsandbytes 0.50
/// autograd/_functions.py MatMul8bitLt. Its ctx holds the input, out of checkpointing's sight. A bias is
/// added in place.
Tensor int8_linear(Tensor x, Dim out_features);

/// The weight in fp32: bitsandbytes 0.50 backends/default/ops.py int8_vectorwise_dequant.
Tensor dequantised_int8_weight(Tape& tape, Dim out_features, Dim in_features);

}  // namespace tidemark
