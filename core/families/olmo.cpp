// OLMo: norms without weights. OLMo 2 and 3: norms after each branch and over the whole of q and k. Rotation in fp32,
// but for OLMo 3.
#include "core/families/family.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

void read_olmo_like(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

// transformers 5.12.1 models/olmo/configuration_olmo.py: OlmoConfig. Its norms have no weights at all.
void read_olmo_config(ConfigFields& fields, Architecture& architecture) {
  read_olmo_like(fields, architecture);
  architecture.clip_qkv = fields.number({"clip_qkv"}, 0.0) != 0.0;
}

// transformers 5.12.1 models/olmo2/configuration_olmo2.py: Olmo2Config. Norms after each branch, and over the whole
// width of q and k.
void read_olmo2_config(ConfigFields& fields, Architecture& architecture) {
  read_olmo_like(fields, architecture);
  architecture.qk_norm = true;
}

// transformers 5.12.1 models/olmo3/configuration_olmo3.py: Olmo3Config. Every fourth layer attends to everything.
void read_olmo3_config(ConfigFields& fields, Architecture& architecture) {
  read_olmo2_config(fields, architecture);
  architecture.sliding_window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  const auto types = read_layer_types(fields, architecture);
  architecture.sliding_layers = types ? *types : sliding_but_every(4, architecture.num_layers);
}

constexpr const char* kModel = "transformers 5.12 models/olmo/modeling_olmo.py: OlmoModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/olmo/modeling_olmo.py: OlmoDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/olmo/modeling_olmo.py: OlmoAttention.forward";
constexpr const char* kHead = "transformers 5.12 models/olmo/modeling_olmo.py: OlmoForCausalLM.forward";
constexpr const char* kLayer2 = "transformers 5.12 models/olmo2/modeling_olmo2.py: Olmo2DecoderLayer.forward";
constexpr const char* kAttention2 = "transformers 5.12 models/olmo2/modeling_olmo2.py: Olmo2Attention.forward";
constexpr const char* kHead2 = "transformers 5.12 models/olmo2/modeling_olmo2.py: Olmo2ForCausalLM.forward";

// OlmoRotaryEmbedding.forward leaves its tables in fp32; modeling_olmo3.py casts them to the activations' dtype again.
Tensor embed(Net& net) {
  return decoder_embed(net, kModel, net.arch.model_type != "olmo3");
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

Tensor norm(Net& net, Tensor hidden) {
  return olmo_norm(net, "model.norm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

Tensor norm2(Net& net, Tensor hidden) {
  return olmo2_norm(net, "model.norm", std::move(hidden));
}

Tensor head2(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead2);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

}  // namespace

const Program kOlmoProgram = {one_stack<embed, layer, norm>, head};
const Program kOlmo2Program = {one_stack<embed, layer2, norm2>, head2};

const Family kRows[] = {
    {"olmo", "Olmo", "OlmoForCausalLM", kSequenceOnly, read_olmo_config, &kOlmoProgram},
    {"olmo2", "Olmo2", "Olmo2ForCausalLM", kSequenceOnly, read_olmo2_config, &kOlmo2Program},
    {"olmo3", "Olmo3", "Olmo3ForCausalLM", kSequenceOnly, read_olmo3_config, &kOlmo2Program},
};

extern const FamilyRows olmo_rows;
const FamilyRows olmo_rows = kRows;

}  // namespace tidemark
