// Helium: Llama with the norm's product in fp32 and neighbouring elements rotating as pairs.
#include "core/families/family.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/helium/configuration_helium.py: HeliumConfig. The output projection never has a bias
// (modeling_helium.py: HeliumAttention).
void read_helium_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096);
  read_kv_heads(fields, architecture, 20);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

constexpr const char* kLayer = "transformers 5.12 models/helium/modeling_helium.py: HeliumDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/helium/modeling_helium.py: HeliumAttention.forward";
constexpr const char* kHead = "transformers 5.12 models/helium/modeling_helium.py: HeliumForCausalLM.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, [](Net& n, Tensor& q, Tensor& k) {
    Rotated turned = rotate_pairs(n, q, k, false);
    q = std::move(turned.q);
    k = std::move(turned.k);
  });
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = helium_norm(net, "input_layernorm", residual);
  h = self_attention(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = helium_norm(net, "post_attention_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor norm(Net& net, Tensor hidden) {
  return helium_norm(net, "model.norm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

}  // namespace

const Program kHeliumProgram = {.forward = one_stack<llama_embed, layer, norm>, .lm_head = head, .has_tp_plan = true};

const Family kRows[] = {
    {"helium", "Helium", "HeliumForCausalLM", kSequenceAndToken, read_helium_config, &kHeliumProgram},
};

extern const FamilyRows helium_rows;
const FamilyRows helium_rows = kRows;

}  // namespace tidemark
