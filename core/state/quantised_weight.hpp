#pragma once

#include <optional>

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
  std::int32_t storage = -1;  ///< of the codes on the tape
};

/// Sizes for a weight of so many rows and columns. bitsandbytes 0.50 functional.py quantize_4bit, nn/modules.py
/// Params4bit and Int8Params.
QuantisedWeight quantised_weight(const Quantization& quantization, Count rows, Count columns);

/// bitsandbytes functional.py dequantize_4bit
Tensor dequantised_weight(Tape& tape, Dim out_features, Dim in_features, const QuantisedWeight& weight, Dtype dtype);

/// How a release's MatMul4Bit goes about it.
struct Unpacking {
  std::optional<Dtype> through;    ///< what the weight was packed from: a copy in that dtype becomes the product's
  bool in_backward_alone = false;  ///< forward unpacks to the product's dtype at once: gemm_4bit, since 0.50
  bool keeps_input = false;        ///< ctx.tensors = (A, B), until 0.43: the node holds the input
};

/// y = x · dequantise(w)ᵀ + b, as bitsandbytes autograd/_functions.py MatMul4Bit: the 16-bit copy of the weight lives
/// while the product runs, in forward and again in backward; nothing of it is kept.
Tensor dequantised_linear(Tensor x, Dim out_features, const QuantisedWeight& weight, Tensor bias,
                          const Unpacking& unpacking = {});

}  // namespace tidemark
