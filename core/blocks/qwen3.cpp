// Qwen3 dense: Llama's layer with a norm over each head of q and k.
#include "core/blocks/program.hpp"

namespace tidemark {
namespace {

constexpr const char* kLayer = "transformers 5.12 models/qwen3/modeling_qwen3.py: Qwen3DecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/qwen3/modeling_qwen3.py: Qwen3Attention.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  // The norm sees [B, S, heads, hd], before the transposition.
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = view(std::move(q), Shape{net.B, net.S, net.A, net.hd});
  q = rms_norm(net, "self_attn.q_norm", std::move(q));
  q = transpose(std::move(q), 1, 2);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = view(std::move(k), Shape{net.B, net.S, net.Kv, net.hd});
  k = rms_norm(net, "self_attn.k_norm", std::move(k));
  k = transpose(std::move(k), 1, 2);
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  Tensor q_embed = rotate(net, q);
  Tensor k_embed = rotate(net, k);
  q = std::move(q_embed);
  k = std::move(k_embed);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "input_layernorm", residual);
  h = self_attention(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = rms_norm(net, "post_attention_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

}  // namespace

const Program kQwen3Program = {llama_embed, layer, llama_head};

}  // namespace tidemark
