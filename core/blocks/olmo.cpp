// OLMo: norms without weights. OLMo 2 and 3: norms after each branch and over the whole of q and k. Rotation in fp32,
// but for OLMo 3.
#include "core/blocks/norms.hpp"
#include "core/blocks/program.hpp"
#include "core/blocks/rotations.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "transformers 5.12 models/olmo/modeling_olmo.py: OlmoModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/olmo/modeling_olmo.py: OlmoDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/olmo/modeling_olmo.py: OlmoAttention.forward";
constexpr const char* kHead = "transformers 5.12 models/olmo/modeling_olmo.py: OlmoForCausalLM.forward";
constexpr const char* kLayer2 = "transformers 5.12 models/olmo2/modeling_olmo2.py: Olmo2DecoderLayer.forward";
constexpr const char* kAttention2 = "transformers 5.12 models/olmo2/modeling_olmo2.py: Olmo2Attention.forward";
constexpr const char* kHead2 = "transformers 5.12 models/olmo2/modeling_olmo2.py: Olmo2ForCausalLM.forward";

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.embedding("model.embed_tokens", net.input_ids, net.V, net.H);
  net.tied_embedding = net.tape.last_parameter();
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  if (net.arch.model_type == "olmo3") {
    // modeling_olmo3.py casts the tables to the activations' dtype again.
    rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  } else {
    // OlmoRotaryEmbedding.forward leaves them in fp32.
    rotary_tables(net, Dtype::kFp32, net.arch.rotary_dim);
  }
  return embeds;
}

// From the projections on, both generations are alike.
Tensor attend(Net& net, Tensor q_in, Tensor k_in, Tensor v_in) {
  Tensor q = split_heads(net, std::move(q_in), net.A, net.hd);
  Tensor k = split_heads(net, std::move(k_in), net.Kv, net.hd);
  const Tensor v = split_heads(net, std::move(v_in), net.Kv, net.hd);
  {
    Rotated turned = rotate_fp32(net, q, k);
    q = std::move(turned.q);
    k = std::move(turned.k);
  }
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  if (net.arch.clip_qkv) {
    q = clamp_in_place(std::move(q));
    k = clamp_in_place(std::move(k));
    v = clamp_in_place(std::move(v));
  }
  return attend(net, std::move(q), std::move(k), std::move(v));
}

Tensor self_attention2(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention2);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = olmo2_norm(net, "self_attn.q_norm", std::move(q));
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = olmo2_norm(net, "self_attn.k_norm", std::move(k));
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  return attend(net, std::move(q), std::move(k), std::move(v));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = olmo_norm(net, "input_layernorm", residual);
  h = self_attention(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = olmo_norm(net, "post_attention_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor layer2(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer2);
  Tensor residual = std::move(hidden);
  Tensor h = self_attention2(net, residual);
  h = olmo2_norm(net, "post_attention_layernorm", std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = llama_mlp(net, std::move(h));
  h = olmo2_norm(net, "post_feedforward_layernorm", std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor h = olmo_norm(net, "model.norm", std::move(hidden));
  return net.lm_head("lm_head", std::move(h), net.V);
}

Tensor head2(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead2);
  Tensor h = olmo2_norm(net, "model.norm", std::move(hidden));
  return net.lm_head("lm_head", std::move(h), net.V);
}

}  // namespace

const Program kOlmoProgram = {embed, layer, head};
const Program kOlmo2Program = {embed, layer2, head2};

}  // namespace tidemark
