#pragma once

#include "core/layers/net.hpp"

namespace tidemark {

/// What attention with a bias on its scores takes (position_bias): no gradient or one comes to it.
struct BiasedAttention {
  Tensor q, k, v;       ///< [B, A, S, hd]
  Tensor bias;          ///< [1 or B, A, S, K]
  Tensor mask;          ///< additive where it runs eagerly, else boolean; or undefined
  bool causal = false;  ///< module.is_causal, where there is no mask
};
/// transformers 5.15 integrations/sdpa_attention.py: sdpa_attention_forward with create_position_bias_mask, or the
/// eager_attention_forward of T5's file and others, whose probabilities `net.attention_weights` then is; [B, A, S, hd].
Tensor biased_attention(Net& net, const BiasedAttention& of);

}  // namespace tidemark
