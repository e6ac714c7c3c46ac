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
    Rotated turned = rotate_pairs(net, q, k, false);
    q = std::move(turned.q);
    k = std::move(turned.k);
  }
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H);
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

const Program kHeliumProgram = {one_stack<llama_embed, layer, norm>, head};

const Family kRows[] = {
    {"helium", "Helium", "HeliumForCausalLM", kSequenceAndToken, read_helium_config, &kHeliumProgram},
};

extern const FamilyRows helium_rows;
const FamilyRows helium_rows = kRows;

}  // namespace tidemark
