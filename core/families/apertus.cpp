// Apertus: a norm over each head of q and k, and xIELU without a gate, whose two slopes are trained.
#include "core/families/family.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/apertus/configuration_apertus.py: ApertusConfig. An ungated feed-forward with xIELU, whose
// two parameters are trained in each layer (activations.py: XIELUActivation), and norms of head width on q and k.
void read_apertus_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 65536);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "xielu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.qk_norm = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  fields.accept({"qk_norm", "post_norm", "mlp_bias"});  // in the published files, not in the class
}

constexpr const char* kLayer = "transformers 5.12 models/apertus/modeling_apertus.py: ApertusDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/apertus/modeling_apertus.py: ApertusAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/apertus/modeling_apertus.py: ApertusMLP.forward";
constexpr const char* kXielu = "transformers 5.12 activations.py: XIELUActivation._xielu_python";

Tensor self_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, [](Net& n, Tensor& q, Tensor& k) {
    q = rms_norm(n, "self_attn.q_norm", std::move(q));
    k = rms_norm(n, "self_attn.k_norm", std::move(k));
    rotate_both(n, q, k);
  });
}

Tensor act_fn(Net& net, Tensor x) {
  if (net.arch.activation != Activation::kXielu) {
    Scope in(net.tape, "mlp.act_fn", kMlp);
    return activate(net.arch.activation, std::move(x));
  }
  Scope in(net.tape, "mlp.act_fn", kXielu);
  Tensor alpha_p = net.parameter("mlp.act_fn", "alpha_p", Shape{Dim(1)});
  Tensor alpha_n = net.parameter("mlp.act_fn", "alpha_n", Shape{Dim(1)});
  net.tape.buffer("mlp.act_fn.beta", size_of(net.job.recipe.weights));
  net.tape.buffer("mlp.act_fn.eps", size_of(net.job.recipe.weights));
  return xielu(std::move(x), std::move(alpha_p), std::move(alpha_n));
}

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  Tensor h = net.linear("mlp.up_proj", x, net.F);
  h = act_fn(net, std::move(h));
  return net.linear("mlp.down_proj", std::move(h), net.H);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "attention_layernorm", residual);
  h = self_attention(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = rms_norm(net, "feedforward_layernorm", std::move(h));
  h = mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

}  // namespace

const Program kApertusProgram = {
    .forward = one_stack<llama_embed, layer, llama_norm>, .lm_head = llama_head, .has_tp_plan = true};

const Family kRows[] = {
    {"apertus", "Apertus", "ApertusForCausalLM", kTokenOnly, read_apertus_config, &kApertusProgram},
};

extern const FamilyRows apertus_rows;
const FamilyRows apertus_rows = kRows;

}  // namespace tidemark
