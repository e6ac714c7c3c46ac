// GLM-4 (glm) and GLM-4-0414 (glm4), whose layer has a norm after each branch too: neighbouring elements rotate as
// pairs in half of each head, gate and up are one matrix.
#include "core/families/family.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/glm/configuration_glm.py: GlmConfig; models/glm4/configuration_glm4.py: Glm4Config, which
// has the same keys and defaults (its layer adds two norms). q, k, v carry a bias, the output projection does not; half
// of each head rotates; gate and up are one matrix.
void read_glm_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 131072);
  read_kv_heads(fields, architecture, 2);
  read_head_dim(fields, architecture, 128);
  read_rotary_factor(fields, architecture, 0.5);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, true);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

constexpr const char* kLayer = "transformers 5.12 models/glm/modeling_glm.py: GlmDecoderLayer.forward";
constexpr const char* kLayer4 = "transformers 5.12 models/glm4/modeling_glm4.py: Glm4DecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/glm4/modeling_glm4.py: Glm4Attention.forward";
constexpr const char* kMlp = "transformers 5.12 models/glm4/modeling_glm4.py: Glm4MLP.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, [](Net& n, Tensor& q, Tensor& k) {
    Rotated turned = rotate_pairs(n, q, k, true);
    q = std::move(turned.q);
    k = std::move(turned.k);
  });
}

Tensor mlp(Net& net, Tensor hidden) {
  return fused_gate_mlp(net, std::move(hidden), kMlp);
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, mlp);
}

}  // namespace

Tensor glm4_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer4);
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "input_layernorm", residual);
  h = self_attention(net, std::move(h));
  h = rms_norm(net, "post_self_attn_layernorm", std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = rms_norm(net, "post_attention_layernorm", std::move(h));
  h = mlp(net, std::move(h));
  h = rms_norm(net, "post_mlp_layernorm", std::move(h));
  return add(std::move(residual), std::move(h));
}

const Program kGlmProgram = {one_stack<llama_embed, layer, llama_norm>, llama_head};
const Program kGlm4Program = {one_stack<llama_embed, glm4_layer, llama_norm>, llama_head};

const Family kRows[] = {
    {"glm", "Glm", "GlmForCausalLM", kSequenceAndToken, read_glm_config, &kGlmProgram},
    {"glm4", "Glm4", "Glm4ForCausalLM", kSequenceAndToken, read_glm_config, &kGlm4Program},
};

extern const FamilyRows glm_rows;
const FamilyRows glm_rows = kRows;

}  // namespace tidemark
