#pragma once

#include "core/layers/net.hpp"

namespace tidemark {

/// GraniteMoeSharedMLP.forward: gate and up in one matrix.
Tensor granite_shared_mlp(Net& net, Tensor hidden);

}  // namespace tidemark
