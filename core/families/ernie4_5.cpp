// ERNIE 4.5: Llama's layer with neighbouring elements rotated as pairs, by products in fp32.
#include "core/families/family.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/ernie4_5/configuration_ernie4_5.py: Ernie4_5Config. One switch for every bias; no dropout
// (modeling_ernie4_5.py: Ernie4_5Attention).
void read_ernie4_5_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 131072);
  read_kv_heads(fields, architecture, 2);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  const bool bias = fields.flag({"use_bias"}, false);
  architecture.attention_bias = bias;
  architecture.attention_out_bias = bias;
  architecture.mlp_bias = bias;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
}

constexpr const char* kModel = "transformers 5.12 models/ernie4_5/modeling_ernie4_5.py: Ernie4_5Model.forward";
constexpr const char* kLayer = "transformers 5.12 models/ernie4_5/modeling_ernie4_5.py: Ernie4_5DecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/ernie4_5/modeling_ernie4_5.py: Ernie4_5Attention.forward";

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  // Ernie4_5RotaryEmbedding.forward leaves its tables in full precision.
  rotary_tables(net, Dtype::kFp32, net.arch.rotary_dim);
  return embeds;
}

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
    Rotated turned = rotate_pairs_by_fp32(net, q, k);
    q = std::move(turned.q);
    k = std::move(turned.k);
  }
  AttentionOptions options;
  options.mask = layer_mask(net);
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, llama_mlp);
}

}  // namespace

const Program kErnie45Program = {one_stack<embed, layer, llama_norm>, llama_head};

const Family kRows[] = {
    {"ernie4_5", "Ernie4_5", "Ernie4_5ForCausalLM", kLanguageModelOnly, read_ernie4_5_config, &kErnie45Program},
};

extern const FamilyRows ernie4_5_rows;
const FamilyRows ernie4_5_rows = kRows;

}  // namespace tidemark
