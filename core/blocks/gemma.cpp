// Gemma 1, 2 and 3 (text): embeddings scaled, norms in fp32 around one plus the weight; from the second generation a
// norm after each branch too, from the third a norm over each head of q and k and two kinds of rotation.
#include "core/blocks/norms.hpp"
#include "core/blocks/program.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "transformers 5.12 models/gemma/modeling_gemma.py: GemmaModel.forward";
constexpr const char* kEmbedding =
    "transformers 5.12 models/gemma/modeling_gemma.py: GemmaTextScaledWordEmbedding.forward";
constexpr const char* kLayer = "transformers 5.12 models/gemma/modeling_gemma.py: GemmaDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/gemma/modeling_gemma.py: GemmaAttention.forward";
constexpr const char* kHead = "transformers 5.12 models/gemma/modeling_gemma.py: GemmaForCausalLM.forward";
constexpr const char* kModel3 = "transformers 5.12 models/gemma3/modeling_gemma3.py: Gemma3TextModel.forward";
constexpr const char* kLayer2 = "transformers 5.12 models/gemma2/modeling_gemma2.py: Gemma2DecoderLayer.forward";
constexpr const char* kAttention2 = "transformers 5.12 models/gemma2/modeling_gemma2.py: Gemma2Attention.forward";
constexpr const char* kHead2 = "transformers 5.12 models/gemma2/modeling_gemma2.py: Gemma2ForCausalLM.forward";
constexpr const char* kLayer3 = "transformers 5.12 models/gemma3/modeling_gemma3.py: Gemma3DecoderLayer.forward";
constexpr const char* kAttention3 = "transformers 5.12 models/gemma3/modeling_gemma3.py: Gemma3Attention.forward";

Tensor scaled_embedding(Net& net) {
  Scope in(net.tape, "model.embed_tokens", kEmbedding);
  Tensor embeds = net.embedding("model.embed_tokens", net.input_ids, net.V, net.H);
  net.tied_embedding = net.tape.last_parameter();
  net.tape.buffer("model.embed_tokens.embed_scale", 4);
  // embed_scale.to(weight.dtype()), a number on the device
  Tensor scale = net.tape.allocate(Shape{}, embeds.dtype(), "to");
  return mul(std::move(embeds), std::move(scale));
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = scaled_embedding(net);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

Tensor embed3(Net& net) {
  Scope in(net.tape, "model", kModel3);
  Tensor embeds = scaled_embedding(net);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  // One pair of tables for sliding layers, another for the rest: all stay until the forward ends.
  bool sliding = false, full = false;
  for (Count i = 0; i < net.arch.num_layers; ++i) (net.is_sliding_layer(i) ? sliding : full) = true;
  if (sliding) {
    rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
    net.shared.local_cos = std::move(net.shared.cos);
    net.shared.local_sin = std::move(net.shared.sin);
  }
  if (full) rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

Tensor self_attention(Net& net, Tensor hidden, const char* source, bool head_norms) {
  Scope in(net.tape, "self_attn", source);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = split_heads(net, std::move(q), net.A, net.hd);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = split_heads(net, std::move(k), net.Kv, net.hd);
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  if (head_norms) {
    q = gemma_norm(net, "self_attn.q_norm", std::move(q));
    k = gemma_norm(net, "self_attn.k_norm", std::move(k));
  }
  Tensor q_embed = rotate(net, q);
  Tensor k_embed = rotate(net, k);
  q = std::move(q_embed);
  k = std::move(k_embed);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  options.softcap = net.arch.attention_softcap;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = gemma_norm(net, "input_layernorm", residual);
  h = self_attention(net, std::move(h), kAttention, false);
  h = add(residual, std::move(h));
  residual = h;
  h = gemma_norm(net, "post_attention_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor sandwiched_layer(Net& net, Tensor hidden, const char* attention_source, bool head_norms) {
  Tensor residual = std::move(hidden);
  Tensor h = gemma_norm(net, "input_layernorm", residual);
  h = self_attention(net, std::move(h), attention_source, head_norms);
  h = gemma_norm(net, "post_attention_layernorm", std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = gemma_norm(net, "pre_feedforward_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  h = gemma_norm(net, "post_feedforward_layernorm", std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor layer2(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer2);
  return sandwiched_layer(net, std::move(hidden), kAttention2, false);
}

Tensor layer3(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer3);
  return sandwiched_layer(net, std::move(hidden), kAttention3, true);
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor h = gemma_norm(net, "model.norm", std::move(hidden));
  return net.lm_head("lm_head", std::move(h), net.V);
}

Tensor softcapped_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead2);
  Tensor h = gemma_norm(net, "model.norm", std::move(hidden));
  Tensor logits = net.lm_head("lm_head", std::move(h), net.V);
  if (!net.arch.logit_softcap) return logits;
  logits = mul_scalar(std::move(logits));
  logits = tanh(std::move(logits));
  return mul_scalar(std::move(logits));
}

}  // namespace

const Program kGemmaProgram = {embed, layer, head};
const Program kGemma2Program = {embed, layer2, softcapped_head};
const Program kGemma3Program = {embed3, layer3, softcapped_head};

}  // namespace tidemark
