// Persimmon: one matrix for q, k and v of each head, LayerNorms on heads of q and k, half of each head rotates.
#include "core/families/family.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/persimmon/configuration_persimmon.py: PersimmonConfig. Every projection has a bias
// (modeling_persimmon.py).
void read_persimmon_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 16384);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  read_rotary_factor(fields, architecture, 0.5);
  architecture.activation = read_activation(fields, {"hidden_act"}, "relu2");
  architecture.attention_bias = true;
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.norm_bias = true;
  architecture.qk_norm = fields.flag({"qk_layernorm"}, true);
  architecture.residual_dropout = fields.probability({"hidden_dropout"}, 0.0);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

constexpr const char* kModel = "transformers 5.12 models/persimmon/modeling_persimmon.py: PersimmonModel.forward";
constexpr const char* kLayer =
    "transformers 5.12 models/persimmon/modeling_persimmon.py: PersimmonDecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/persimmon/modeling_persimmon.py: PersimmonAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/persimmon/modeling_persimmon.py: PersimmonMLP.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const Tensor fused = net.linear("self_attn.query_key_value", x, Dim(3 * net.H.n()), true);
  Tensor heads = view(fused, Shape{net.B, net.S, net.A, Dim(3), net.hd});
  Tensor q = select(heads, 3);
  Tensor k = select(heads, 3);
  Tensor v = select(std::move(heads), 3);
  if (net.arch.qk_norm) {
    q = net.layer_norm("self_attn.q_layernorm", std::move(q));
    k = net.layer_norm("self_attn.k_layernorm", std::move(k));
  }
  q = transpose(std::move(q), 1, 2);
  v = transpose(std::move(v), 1, 2);
  k = transpose(std::move(k), 1, 2);
  // The turned and the unturned parts are names of the method: they live until it returns.
  const Parts parts = rotate_parts(net, q, k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  options.has_groups = false;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.dense", std::move(out), net.H, true);
}

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);  // the layer has a name for it until the module returns
  Tensor h = net.linear("mlp.dense_h_to_4h", x, net.F, true);
  h = activate(net.arch.activation, std::move(h));
  return net.linear("mlp.dense_4h_to_h", std::move(h), net.H, true);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm("input_layernorm", residual);
  h = self_attention(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = net.layer_norm("post_attention_layernorm", std::move(h));
  h = mlp(net, std::move(h));
  h = dropout(std::move(h), net.arch.residual_dropout);
  return add(std::move(h), std::move(residual));
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("model.final_layernorm", std::move(hidden));
}

}  // namespace

const Program kPersimmonProgram = {one_stack<llama_embed, layer, norm>, llama_head};

const Family kRows[] = {
    {"persimmon", "Persimmon", "PersimmonForCausalLM", kSequenceAndToken, read_persimmon_config, &kPersimmonProgram,
     kModelLayers, kNoFlex},
};

extern const FamilyRows persimmon_rows;
const FamilyRows persimmon_rows = kRows;

}  // namespace tidemark
