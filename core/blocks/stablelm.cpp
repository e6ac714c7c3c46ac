// StableLM: LayerNorm, a quarter of each head rotates, gated feed-forward; some models run both branches in parallel.
#include "core/blocks/program.hpp"
#include "core/blocks/rotations.hpp"

namespace tidemark {
namespace {

constexpr const char* kLayer = "transformers 5.12 models/stablelm/modeling_stablelm.py: StableLmDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/stablelm/modeling_stablelm.py: StableLmAttention.forward";
constexpr const char* kHeadNorm =
    "transformers 5.12 models/stablelm/modeling_stablelm.py: StableLmLayerNormPerHead.forward";
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

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor h = net.layer_norm("model.norm", std::move(hidden));
  return net.lm_head("lm_head", std::move(h), net.V);
}

}  // namespace

const Program kStableLmProgram = {llama_embed, layer, head};

}  // namespace tidemark
