#pragma once

#include <vector>

#include "core/layers/net.hpp"

namespace tidemark {

/// What generation keeps of one attention.
struct CachedAttention {
  std::int16_t instance = -1;  ///< the layer on the tape that it is of
  Tensor keys, values;         ///< [B, KV heads, length, hd]
  bool grows = true;           ///< with each token; false: of what an encoder has made, once and for all
  Count query_heads = 0;       ///< of the attention that reads them; 0: it has its own code, and is left out of a step
  AttentionOptions options;    ///< how it reads them, without a mask
};

/// transformers' DynamicCache or EncoderDecoderCache: one entry for each attention of the tape's layers.
using KvCache = std::vector<CachedAttention>;

/// `past_key_values.update(key_states, value_states, layer_idx)` of a forward that generation begins with: what it
/// returns are copies, because they are joined to an empty tensor. Nothing happens where the forward keeps no cache.
/// Source: transformers 5.12 cache_utils.py: DynamicLayer.lazy_initialization, update.
void keep_keys(Net& net, Tensor& keys, Tensor& values, bool grows);

/// The cache grows to `length` tokens of each row in one forward of a single token.
void decode_until(Net& net, KvCache& cache, Count length);

/// The cache goes, each entry in a stretch of its layer.
void let_cache_go(Net& net, KvCache& cache);

}  // namespace tidemark
