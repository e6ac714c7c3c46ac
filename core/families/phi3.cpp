// Phi-3, Phi-3.5, phi-4: q, k, v in one matrix, gate and up in another; the rotation ends in a cat.
#include "core/families/family.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/phi3/configuration_phi3.py: Phi3Config (Phi-3, Phi-3.5, phi-4, phi-4-mini). The class has
// `embd_pdrop`, but its model never applies it.
void read_phi3_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  read_rotary_factor(fields, architecture, 1.0);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.residual_dropout = fields.probability({"resid_pdrop"}, 0.0);
  fields.accept({"embd_pdrop", "original_max_position_embeddings"});
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.sliding_window = fields.nullable({"sliding_window"}, std::nullopt).value_or(0);
  if (architecture.sliding_window > 0) {
    architecture.sliding_layers.assign(static_cast<std::size_t>(architecture.num_layers), true);
  }
}

constexpr const char* kLayer = "transformers 5.12 models/phi3/modeling_phi3.py: Phi3DecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/phi3/modeling_phi3.py: Phi3Attention.forward";
constexpr const char* kMlp = "transformers 5.12 models/phi3/modeling_phi3.py: Phi3MLP.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const Tensor qkv = net.linear("self_attn.qkv_proj", x, Dim(net.Q.n() + 2 * net.K.n()));
  Tensor q = narrow(qkv, -1, 0, net.Q);
  Tensor k = narrow(qkv, -1, net.Q.n(), net.K);
  Tensor v = narrow(qkv, -1, net.Q.n() + net.K.n(), net.K);
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.Kv, net.hd);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  Tensor q_embed = rotate_leading(net, q);
  Tensor k_embed = rotate_leading(net, k);
  q = std::move(q_embed);
  k = std::move(k_embed);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "input_layernorm", residual);
  h = self_attention(net, std::move(h));
  Tensor dropped = dropout(h, net.arch.residual_dropout);
  h = add(residual, std::move(dropped));
  residual = h;
  h = rms_norm(net, "post_attention_layernorm", std::move(h));
  h = fused_gate_mlp(net, std::move(h), kMlp);
  dropped = dropout(h, net.arch.residual_dropout);
  return add(std::move(residual), std::move(dropped));
}

}  // namespace

Tensor fused_gate_mlp(Net& net, Tensor hidden, const char* source) {
  Scope in(net.tape, "mlp", source);
  const Tensor x = std::move(hidden);
  Tensor both = net.linear("mlp.gate_up_proj", x, Dim(2 * net.F.n()));
  Pieces pieces = split(std::move(both), -1, {net.F, net.F});
  const Tensor gate = std::move(pieces.part[0]);
  Tensor up = std::move(pieces.part[1]);
  if (net.job.liger_swiglu) {  // LigerPhi3SwiGLUMLP: ensure_contiguous copies both halves
    up = contiguous(std::move(up));
    up = liger_swiglu(contiguous(gate), std::move(up));
  } else {
    Tensor activated = activate(net.arch.activation, gate);
    up = mul(std::move(up), std::move(activated));
  }
  return net.linear("mlp.down_proj", std::move(up), net.H);
}

const Program kPhi3Program = {one_stack<llama_embed, layer, llama_norm>, llama_head};

constexpr ClassFacts kFacts = {.layer_first = "self_attn.o_proj"};

const Family kRows[] = {
    {"phi3", "Phi3", "Phi3ForCausalLM", kSequenceAndToken, read_phi3_config, &kPhi3Program, kModelLayers, kFacts},
};

extern const FamilyRows phi3_rows;
const FamilyRows phi3_rows = kRows;

}  // namespace tidemark
