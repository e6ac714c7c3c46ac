#pragma once

#include "core/layers/net.hpp"

namespace tidemark {

/// Qwen3NextGatedDeltaNet.forward of hidden states [B, S, H].
Tensor joined_delta_net(Net& net, Tensor hidden);

}  // namespace tidemark
