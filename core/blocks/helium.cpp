// Helium: Llama with the norm's product in fp32 and neighbouring elements rotating as pairs.
#include "core/blocks/norms.hpp"
#include "core/blocks/program.hpp"
#include "core/blocks/rotations.hpp"

namespace tidemark {
namespace {

constexpr const char* kLayer = "transformers 5.12 models/helium/modeling_helium.py: HeliumDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/helium/modeling_helium.py: HeliumAttention.forward";
constexpr const char* kHead = "transformers 5.12 models/helium/modeling_helium.py: HeliumForCausalLM.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = split_heads(net, std::move(q), net.A, net.hd);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = split_heads(net, std::move(k), net.Kv, net.hd);
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  {
    Rotated turned = rotate_pairs(net, q, k, false);
    q = std::move(turned.q);
    k = std::move(turned.k);
  }
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = helium_norm(net, "input_layernorm", residual);
  h = self_attention(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = helium_norm(net, "post_attention_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor h = helium_norm(net, "model.norm", std::move(hidden));
  return net.lm_head("lm_head", std::move(h), net.V);
}

}  // namespace

const Program kHeliumProgram = {llama_embed, layer, head};

}  // namespace tidemark
