#pragma once

#include "core/state/quantised_weight.hpp"

namespace tidemark {

/// How a linear layer of GPTQ, AWQ, HQQ, quanto, torchao or AQLM holds its weight, and whose code multiplies by it.
struct PackedLinear {
  QuantType type = QuantType::kGptq;
  int bits = 4;                 ///< per weight
  Count group_size = 128;       ///< elements that share a scale; -1: a whole row
  bool desc_act = false;        ///< GPTQ: each column names its group
  bool former = false;          ///< by AutoGPTQ and AutoAWQ, which transformers 5 has left for gptqmodel
  Dtype scales = Dtype::kFp16;  ///< of scales, biases and what the weight is unpacked to
};

/// What it keeps on the device, but for a bias.
QuantisedWeight packed_parts(const PackedLinear& layer, Count rows, Count columns);

/// x by its weight, and a bias, as the layer's own forward.
Tensor packed_linear(Tensor x, Dim out_features, const PackedLinear& layer, Tensor bias);

}  // namespace tidemark
