#pragma once

#include "core/layers/net.hpp"

/// What files of transformers 5.24 with latent attention share: Kimi Linear's, Hy4's, MiniCPM3's (kimi_linear.cpp).
namespace tidemark {

/// [B, A, S, D], both.
struct KeysAndValues {
  Tensor k, v;
};
/// KimiLinearAttention.expand_kv: what each head has of its own is made of `latent` [B, S, rank]; in the keys it is
/// copied beside `turned` [B, 1, S, rope], which all heads share.
KeysAndValues expand_kv(Net& net, const Tensor& latent, const Tensor& turned);

}  // namespace tidemark
