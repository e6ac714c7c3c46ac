#pragma once

#include "core/layers/net.hpp"

/// Norms that modelling files write out kernel by kernel, each in its own order of casts and products: what they keep
/// for backward differs.
namespace tidemark {

/// Gemma's: (x̂ · (1 + weight.float())).type_as(x), all in fp32.
/// Liger's turns the gradient of the first Gemma's in place, not of those where it takes the residual's, too.
Tensor gemma_norm(Net& net, const char* name, Tensor x, bool in_place = false);
/// OLMo 2's: (weight · x̂).to(input_dtype), the product in fp32. Liger leaves those of q and k in a model that is there.
Tensor olmo2_norm(Net& net, const char* name, Tensor x, bool by_liger = true);
/// Helium's: (weight.to(fp32) · x̂).to(input_dtype).
Tensor helium_norm(Net& net, const char* name, Tensor x);
/// OLMo's: LayerNorm without weights, in fp32.
Tensor olmo_norm(Net& net, const char* name, Tensor x);
/// Cohere's: LayerNorm without bias, written out. `weight` is the last dimension, or heads × head_dim for q and k.
Tensor cohere_norm(Net& net, const char* name, Tensor x, bool per_head = false);
/// Nemotron's LayerNorm1P: the weight plus one, and under autocast everything in the lower precision.
Tensor nemotron_norm(Net& net, const char* name, Tensor x);

/// Llama 4's: x̂.type_as(x) · weight, and over each head of q and k without a weight.
Tensor llama4_norm(Net& net, const char* name, Tensor x);
Tensor l2_norm(Net& net, const char* name, Tensor x);

}  // namespace tidemark
