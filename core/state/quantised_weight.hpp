#pragma once

#include "core/job/training_job.hpp"
#include "core/tape/ops.hpp"

namespace tidemark {

/// A packed weight and the constants that unpack it. Bytes.
struct QuantisedWeight {
  /// One constant tensor of the packed weight.
  struct Part {
    const char* name = "";
    Bytes bytes = 0;
  };
  Bytes packed = 0;           ///< the codes
  Part state[5];              ///< block scales, their scales, code books; zero-sized ones do not exist
  Count block_count = 0;      ///< blocks that share a scale
  bool double_quant = false;  ///< scales are quantised: dequantising makes them fp32 first
  bool eight_bit = false;     ///< LLM.int8
};

/// Sizes for a weight of `elements` numbers. bitsandbytes 0.50 functional.py quantize_4bit, nn/modules.py Params4bit.
QuantisedWeight quantised_weight(const Quantization& quantization, Count elements);

/// y = x · dequantise(w)ᵀ + b, as bitsandbytes autograd/_functions.py MatMul4Bit: the 16-bit copy of the weight lives
/// while the product runs, in forward and again in backward; nothing of it is kept.
Tensor dequantised_linear(Tensor x, Dim out_features, const QuantisedWeight& weight, Tensor bias);

}  // namespace tidemark
