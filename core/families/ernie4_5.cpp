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

// Ernie4_5RotaryEmbedding.forward leaves its tables in full precision.
Tensor embed(Net& net) {
  return decoder_embed(net, kModel, true);
}

Tensor self_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, [](Net& n, Tensor& q, Tensor& k) {
    Rotated turned = rotate_pairs_by_fp32(n, q, k);
    q = std::move(turned.q);
    k = std::move(turned.k);
  });
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, llama_mlp);
}

}  // namespace

const Program kErnie45Program = {
    .forward = one_stack<embed, layer, llama_norm>, .lm_head = llama_head, .has_tp_plan = true};

const Family kRows[] = {
    {"ernie4_5", "Ernie4_5", "Ernie4_5ForCausalLM", kLanguageModelOnly, read_ernie4_5_config, &kErnie45Program},
};

extern const FamilyRows ernie4_5_rows;
const FamilyRows ernie4_5_rows = kRows;

}  // namespace tidemark
