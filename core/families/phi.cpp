// Phi-1, 1.5 and 2: one LayerNorm feeds attention and feed-forward, half of each head rotates, biases everywhere.
#include "core/families/family.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/phi/configuration_phi.py: PhiConfig (phi-1, 1.5, 2). All projections and the head carry a
// bias in the code (modeling_phi.py), half of each head rotates.
void read_phi_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  read_rotary_factor(fields, architecture, 0.5);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu_new");
  architecture.attention_bias = true;
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.head_bias = true;
  architecture.norm_bias = true;
  architecture.qk_norm = fields.flag({"qk_layernorm"}, false);
  architecture.parallel_residual = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.residual_dropout = fields.probability({"resid_pdrop"}, 0.0);
  architecture.embedding_dropout = fields.probability({"embd_pdrop"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

constexpr const char* kModel = "transformers 5.12 models/phi/modeling_phi.py: PhiModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/phi/modeling_phi.py: PhiDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/phi/modeling_phi.py: PhiAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/phi/modeling_phi.py: PhiMLP.forward";
constexpr const char* kHead = "transformers 5.12 models/phi/modeling_phi.py: PhiForCausalLM.forward";

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
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

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("model.final_layernorm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V, true);
}

}  // namespace

const Program kPhiProgram = {.forward = one_stack<embed, layer, norm>, .lm_head = head, .has_tp_plan = true};

const Family kRows[] = {
    {"phi", "Phi", "PhiForCausalLM", kSequenceAndToken, read_phi_config, &kPhiProgram},
};

extern const FamilyRows phi_rows;
const FamilyRows phi_rows = kRows;

}  // namespace tidemark
