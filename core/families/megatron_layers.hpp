#pragma once

#include <string_view>

#include "core/layers/net.hpp"

/// What the layers of a GPTModel share: kinds of models, divided projections, the core of attention.
namespace tidemark::megatron {

/// What a model type's layers are made of, as a GPTModel's arguments say it.
struct Form {
  std::string_view model_type;
  bool rms = true;          ///< RMSNorm, else LayerNorm with a bias
  bool gated = true;        ///< SwiGLU in one matrix, else GELU
  bool learned = false;     ///< a table of positions
  bool sigmoid = false;     ///< experts are chosen by their scores' sigmoids and a bias (moe_router_enable_expert_bias)
  bool post_norms = false;  ///< norms behind attention and feed-forward, too (mcore-bridge model/gpts/glm4.py)
  bool hybrid = false;      ///< gated delta nets between layers whose attention has a gate (attention_output_gate)
};
/// None: GPTModel has no such layers.
const Form* form_of(std::string_view model_type);

/// GPUs that divide the rows between layers.
Count shards_of_sequence(const Net& net);
bool fuses_gradients(const Net& net);

/// This GPU's part of a parameter that all tensor-parallel ones divide.
Tensor part_of(Net& net, const char* name, const char* leaf, const Shape& part);
/// ColumnParallelLinear, TELayerNormColumnParallelLinear behind its norm.
Tensor column(Net& net, const char* name, Tensor x, Dim out, bool has_bias);
/// RowParallelLinear: summed in place, or reduced and scattered.
Tensor row(Net& net, const char* name, Tensor x, bool has_bias);
Tensor norm(Net& net, const char* name, Tensor x);
/// The core of attention, of q, k, v [S, B, heads, D].
Tensor core_attention_of(Net& net, Tensor q, Tensor k, Tensor v);

/// MLASelfAttention (megatron_latent.cpp).
Tensor latent_attention(Net& net, Tensor hidden);
/// Gated delta nets of Qwen3-Next and Qwen 3.5 (megatron_delta.cpp).
Tensor delta_net(Net& net, Tensor hidden);

}  // namespace tidemark::megatron
