#pragma once

#include "core/layers/net.hpp"

/// Linear layers as quantisation-aware training has them.
namespace tidemark {

/// nn.Linear; under `qat` torchao's FakeQuantizedLinear, or its class for MXFP4 and NVFP4.
Tensor fake_quantised_linear(Net& net, Tensor x, Tensor weight, Tensor bias);
/// A table's weight as FakeQuantizedEmbedding looks rows up in it.
Tensor fake_quantised_table(Net& net, Tensor weight);

}  // namespace tidemark
