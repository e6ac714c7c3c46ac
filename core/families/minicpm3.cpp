// MiniCPM3: DeepSeek's latent attention with Llama's rotation, in Llama's layer with three factors.
#include <algorithm>

#include "core/families/family.hpp"
#include "core/families/latent.hpp"
#include "core/model/config_experts.hpp"

namespace tidemark {
namespace {

// transformers 5.24 models/minicpm3/configuration_minicpm3.py: MiniCPM3Config.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 32768);
  read_kv_heads(fields, architecture, 40);
  const Count heads = std::max<Count>(architecture.num_heads, 1);
  read_latent_attention(fields, architecture, 768, 64, architecture.hidden_size / heads, 256);
  LatentAttention& a = architecture.latent;
  a.rope_dim = architecture.rotary_dim = fields.count({"qk_rope_head_dim"}, 32);
  architecture.head_dim = a.plain_dim + a.rope_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"scale_emb", "dim_model_base", "scale_depth"});
}

constexpr const char* kModel = "transformers 5.24 models/minicpm3/modeling_minicpm3.py: MiniCPM3Model.forward";
constexpr const char* kLayer = "transformers 5.24 models/minicpm3/modeling_minicpm3.py: MiniCPM3DecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.24 models/minicpm3/modeling_minicpm3.py: MiniCPM3Attention.forward";
constexpr const char* kHead = "transformers 5.24 models/minicpm3/modeling_minicpm3.py: MiniCPM3ForCausalLM.forward";

// MiniCPM3ScaledWordEmbedding: embed_scale.to(weight.dtype), a number on the device.
Tensor scaled(Net& net, Tensor embeds) {
  net.tape.buffer("model.embed_tokens.embed_scale", 4);
  Tensor scale = net.tape.allocate(Shape{}, embeds.dtype(), "to");
  return mul(std::move(embeds), std::move(scale));
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H, scaled);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const LatentAttention& a = net.arch.latent;
  const Dim rope(a.rope_dim), plain(a.plain_dim);
  const bool bias = net.arch.attention_bias;
  Tensor q;
  if (a.query_rank == 0) {
    q = net.linear("self_attn.q_proj", x, net.Q);
  } else {
    q = net.linear("self_attn.q_a_proj", x, Dim(a.query_rank), bias);
    q = rms_norm(net, "self_attn.q_a_layernorm", q);  // what it is handed lives until it returns
    q = net.linear("self_attn.q_b_proj", std::move(q), net.Q);
  }
  q = split_heads(net, std::move(q), net.A, net.hd);
  const Pieces q_parts = split(q, -1, {plain, rope});
  const Tensor compressed = net.linear("self_attn.kv_a_proj_with_mqa", x, Dim(a.rank + a.rope_dim), bias);
  const Pieces parts = split(compressed, -1, {Dim(a.rank), rope});
  const Tensor narrow_kv = rms_norm(net, "self_attn.kv_a_layernorm", parts.part[0]);
  Tensor q_turned = q_parts.part[1], k_turned = view(parts.part[1], Shape{net.B, Dim(1), net.S, rope});
  rotate_both(net, q_turned, k_turned);
  q = cat({&q_parts.part[0], &q_turned}, -1);
  const KeysAndValues kv = expand_kv(net, narrow_kv, k_turned);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, kv.k, kv.v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, bias);
}

Tensor layer(Net& net, Tensor hidden) {
  return scaled_layer(net, std::move(hidden), kLayer, rms_norm, self_attention);
}

// The hidden states are divided before the head sees them.
Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  hidden = mul_scalar(std::move(hidden));
  net.model_locals.push_back(hidden);  // `hidden_states`, beside the outputs' last_hidden_state
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

const Program kProgram = {one_stack<embed, layer, held_norm>, head};

}  // namespace

const Family kRows[] = {
    {"minicpm3", "MiniCPM3", "MiniCPM3ForCausalLM", kSequenceOnly, read_config, &kProgram},
};

extern const FamilyRows minicpm3_rows;
const FamilyRows minicpm3_rows = kRows;

}  // namespace tidemark
