// Command R, Aya (cohere) and Command R7B (cohere2): one norm feeds both branches, rotation in fp32, logits scaled. In
// cohere2 only sliding layers rotate.
#include "core/blocks/norms.hpp"
#include "core/blocks/program.hpp"
#include "core/blocks/rotations.hpp"

namespace tidemark {
namespace {

constexpr const char* kLayer = "transformers 5.12 models/cohere/modeling_cohere.py: CohereDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/cohere/modeling_cohere.py: CohereAttention.forward";
constexpr const char* kHead = "transformers 5.12 models/cohere/modeling_cohere.py: CohereForCausalLM.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = view(std::move(q), Shape{net.B, net.S, net.A, net.hd});
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = view(std::move(k), Shape{net.B, net.S, net.Kv, net.hd});
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  v = view(std::move(v), Shape{net.B, net.S, net.Kv, net.hd});
  if (net.arch.qk_norm) {
    q = cohere_norm(net, "self_attn.q_norm", std::move(q), true);
    k = cohere_norm(net, "self_attn.k_norm", std::move(k), true);
  }
  q = transpose(std::move(q), 1, 2);
  k = transpose(std::move(k), 1, 2);
  v = transpose(std::move(v), 1, 2);
  if (net.rotates(net.layer_index)) {
    Rotated turned = rotate_pairs_fp32(net, q, k);
    q = std::move(turned.q);
    k = std::move(turned.k);
  }
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor residual = std::move(hidden);
  Tensor h = cohere_norm(net, "input_layernorm", residual);
  const Tensor attended = self_attention(net, h);
  const Tensor fed = llama_mlp(net, h);
  Tensor sum = add(residual, attended);
  h = add(std::move(sum), fed);
  return h;
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor h = cohere_norm(net, "model.norm", std::move(hidden));
  Tensor logits = net.lm_head("lm_head", std::move(h), net.V);
  return mul_scalar(std::move(logits));
}

}  // namespace

const Program kCohereProgram = {llama_embed, layer, head};

}  // namespace tidemark
