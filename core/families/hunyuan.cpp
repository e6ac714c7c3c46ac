// Hunyuan (dense): Llama's layer with a norm over each head of q and k behind the rotation.
#include "core/families/family.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/hunyuan_v1_dense/configuration_hunyuan_v1_dense.py: HunYuanDenseV1Config. One switch for
// the biases of all four projections, none in the feed-forward (modeling_hunyuan_v1_dense.py).
void read_hunyuan_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.qk_norm = true;
}

constexpr const char* kLayer =
    "transformers 5.12 models/hunyuan_v1_dense/modeling_hunyuan_v1_dense.py: HunYuanDenseV1DecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/hunyuan_v1_dense/modeling_hunyuan_v1_dense.py: HunYuanDenseV1Attention.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, [](Net& n, Tensor& q, Tensor& k) {
    rotate_both(n, q, k);
    q = rms_norm(n, "self_attn.query_layernorm", std::move(q));
    k = rms_norm(n, "self_attn.key_layernorm", std::move(k));
  });
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, llama_mlp);
}

}  // namespace

const Program kHunyuanProgram = {one_stack<llama_embed, layer, llama_norm>, llama_head};

const Family kRows[] = {
    {"hunyuan_v1_dense", "HunYuanDenseV1", "HunYuanDenseV1ForCausalLM", kSequenceOnly, read_hunyuan_config,
     &kHunyuanProgram},
};

extern const FamilyRows hunyuan_rows;
const FamilyRows hunyuan_rows = kRows;

}  // namespace tidemark
