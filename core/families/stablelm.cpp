// StableLM: LayerNorm, a quarter of each head rotates, gated feed-forward; some models run both branches in parallel.
#include "core/families/family.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/stablelm/configuration_stablelm.py: StableLmConfig. A quarter of each head rotates; with
// parallel residuals one of the two norms goes (modeling_stablelm.py: StableLmDecoderLayer).
void read_stablelm_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096);
  read_kv_heads(fields, architecture, 32);
  derive_head_dim(fields, architecture);
  read_rotary_factor(fields, architecture, 0.25);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"use_qkv_bias"}, false);
  architecture.norm_bias = true;
  architecture.qk_norm = fields.flag({"qk_layernorm"}, false);
  architecture.parallel_residual = fields.flag({"use_parallel_residual"}, false);
  architecture.num_layer_norms = architecture.parallel_residual ? 1 : 2;
  architecture.residual_dropout = fields.probability({"hidden_dropout"}, 0.0);
  // Without a dropout of its own the token classifier takes this one.
  architecture.classifier_dropout = fields.probability({"classifier_dropout"}, architecture.residual_dropout);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

constexpr const char* kLayer = "transformers 5.12 models/stablelm/modeling_stablelm.py: StableLmDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/stablelm/modeling_stablelm.py: StableLmAttention.forward";
constexpr const char* kHeadNorm =
    "transformers 5.12 models/stablelm/modeling_stablelm.py: StableLmLayerNormPerHead.forward";
constexpr const char* kModel = "transformers 5.12 models/stablelm/modeling_stablelm.py: StableLmModel.forward";
constexpr const char* kHead = "transformers 5.12 models/stablelm/modeling_stablelm.py: StableLmForCausalLM.forward";

// One small LayerNorm per head, then a cat. All heads are taken together: the same bytes in fewer, larger pieces.
Tensor norm_per_head(Net& net, const char* name, Tensor x_in) {
  Scope in(net.tape, name, kHeadNorm);
  Tensor x = std::move(x_in);
  Tensor weight = net.parameter(name, "weight", Shape{x.dim(1), x.dim(-1)});
  x = layer_norm(std::move(x), std::move(weight), {});
  return clone(std::move(x));
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.Kv, net.hd);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  if (net.arch.qk_norm) {
    q = norm_per_head(net, "self_attn.q_layernorm.norms", std::move(q));
    k = norm_per_head(net, "self_attn.k_layernorm.norms", std::move(k));
  }
  const Parts parts = rotate_parts(net, q, k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm("input_layernorm", residual);
  const Tensor attended = self_attention(net, h);
  if (net.arch.parallel_residual) {
    const Tensor fed = llama_mlp(net, h);  // with the dropout that follows it
    Tensor sum = add(residual, attended);
    h = add(std::move(sum), fed);
    return h;
  }
  // The first norm's output keeps its name, and so its storage, until the sum takes it over.
  residual = add(residual, attended);
  Tensor normed = net.layer_norm("post_attention_layernorm", residual);
  const Tensor fed = llama_mlp(net, std::move(normed));
  h = add(residual, fed);
  return h;
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("model.norm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

}  // namespace

const Program kStableLmProgram = {one_stack<llama_embed, layer, norm>, head, kDecoderForwards, OwnLoss::kModelDtype};

const Family kRows[] = {
    {"stablelm", "StableLm", "StableLmForCausalLM", kSequenceAndToken, read_stablelm_config, &kStableLmProgram,
     kModelLayers, kNoFlex},
};

extern const FamilyRows stablelm_rows;
const FamilyRows stablelm_rows = kRows;

}  // namespace tidemark
