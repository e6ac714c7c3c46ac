// Nemotron-4 and Minitron: LayerNorm around the weight plus one, half of each head rotates, squared ReLU without a
// gate, and attention code of its own that repeats keys and values before either kernel.
#include "core/families/family.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/nemotron/configuration_nemotron.py: NemotronConfig (Nemotron-4, Minitron). Norms with
// bias, an ungated feed-forward with squared ReLU, half of each head rotates.
void read_nemotron_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  read_rotary_factor(fields, architecture, 0.5);
  architecture.activation = read_activation(fields, {"hidden_act"}, "relu2");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.norm_bias = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

constexpr const char* kLayer = "transformers 5.12 models/nemotron/modeling_nemotron.py: NemotronDecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/nemotron/modeling_nemotron.py: NemotronSdpaAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/nemotron/modeling_nemotron.py: NemotronMLP.forward";
constexpr const char* kHead = "transformers 5.12 models/nemotron/modeling_nemotron.py: NemotronForCausalLM.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  // Each attention module has a table of frequencies that it never uses.
  net.tape.buffer("self_attn.rotary_emb.inv_freq", net.arch.rotary_dim / 2 * 4);
  net.tape.buffer("self_attn.rotary_emb.original_inv_freq", net.arch.rotary_dim / 2 * 4);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.Kv, net.hd);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  turn_leading(net, q, k);
  const Count times = net.A.n() / net.Kv.n();
  k = repeat_kv(std::move(k), times);
  v = repeat_kv(std::move(v), times);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  options.has_groups = false;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor mlp(Net& net, Tensor hidden) {
  return ungated_mlp(net, std::move(hidden), kMlp);
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, mlp, nemotron_norm);
}

Tensor norm(Net& net, Tensor hidden) {
  return nemotron_norm(net, "model.norm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

}  // namespace

Tensor ungated_mlp(Net& net, Tensor hidden, const char* source) {
  Scope in(net.tape, "mlp", source);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.mlp_bias;
  Tensor h = net.linear("mlp.up_proj", x, net.F, bias);
  {
    Scope act(net.tape, "mlp.act_fn", source);
    h = activate(net.arch.activation, std::move(h));
  }
  return net.linear("mlp.down_proj", std::move(h), net.H, bias);
}

// NEMOTRON_ATTENTION_CLASSES names no flash_attention_3.
const Program kNemotronProgram = {
    .forward = one_stack<llama_embed, layer, norm>, .lm_head = head, .attention = {.flash_attention_3 = false}};

const Family kRows[] = {
    {"nemotron", "Nemotron", "NemotronForCausalLM", kFourHeads, read_nemotron_config, &kNemotronProgram, kModelLayers,
     kNoFlex},
};

extern const FamilyRows nemotron_rows;
const FamilyRows nemotron_rows = kRows;

}  // namespace tidemark
