// Phi-1, 1.5 and 2: one LayerNorm feeds attention and feed-forward, half of each head rotates, biases everywhere.
#include "core/blocks/program.hpp"
#include "core/blocks/rotations.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "transformers 5.12 models/phi/modeling_phi.py: PhiModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/phi/modeling_phi.py: PhiDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/phi/modeling_phi.py: PhiAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/phi/modeling_phi.py: PhiMLP.forward";
constexpr const char* kHead = "transformers 5.12 models/phi/modeling_phi.py: PhiForCausalLM.forward";

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.embedding("model.embed_tokens", net.input_ids, net.V, net.H);
  net.tied_embedding = net.tape.last_parameter();
  make_position_ids(net);
  make_causal_masks(net, embeds);
  embeds = dropout(std::move(embeds), net.arch.embedding_dropout);
  net.model_locals = {embeds};
  rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, true);
  q = split_heads(net, std::move(q), net.A, net.hd);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, true);
  k = split_heads(net, std::move(k), net.Kv, net.hd);
  Tensor v = net.linear("self_attn.v_proj", x, net.K, true);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  if (net.arch.qk_norm) {
    q = net.layer_norm("self_attn.q_layernorm", std::move(q));
    k = net.layer_norm("self_attn.k_layernorm", std::move(k));
  }
  // The turned and the unturned parts are names of the method: they live until it returns.
  const Parts parts = rotate_parts(net, q, k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.dense", std::move(out), net.H, true);
}

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  Tensor h = net.linear("mlp.fc1", std::move(hidden), net.F, true);
  h = activate(net.arch.activation, std::move(h));
  return net.linear("mlp.fc2", std::move(h), net.H, true);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm("input_layernorm", residual);
  Tensor attended = self_attention(net, h);
  attended = dropout(std::move(attended), net.arch.residual_dropout);
  Tensor fed = mlp(net, h);
  fed = dropout(std::move(fed), net.arch.residual_dropout);
  Tensor sum = add(attended, fed);
  h = add(std::move(sum), residual);
  return h;
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor h = net.layer_norm("model.final_layernorm", std::move(hidden));
  return net.lm_head("lm_head", std::move(h), net.V, true);
}

}  // namespace

const Program kPhiProgram = {embed, layer, head};

}  // namespace tidemark
