// Falcon: 7B with one key/value head, 40B with the "new decoder architecture", RW with alibi and norms in sequence.
#include "core/blocks/program.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "transformers 5.12 models/falcon/modeling_falcon.py: FalconModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/falcon/modeling_falcon.py: FalconDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/falcon/modeling_falcon.py: FalconAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/falcon/modeling_falcon.py: FalconMLP.forward";
constexpr const char* kHead = "transformers 5.12 models/falcon/modeling_falcon.py: FalconForCausalLM.forward";

struct Heads {
  Tensor q, k, v;  ///< [B, S, heads, hd]
};

// FalconAttention._split_heads
Heads split_qkv(Net& net, const Tensor& fused) {
  Heads h;
  if (net.arch.new_decoder) {
    const Dim group(net.A.n / net.Kv.n), row(group.n + 2);
    const Tensor qkv = view(fused, Shape{net.B, net.S, net.Kv, row, net.hd});
    Tensor q = narrow(qkv, 3, 0, group);
    Tensor k = take(qkv, 3, Dim(1));
    Tensor v = take(qkv, 3, Dim(1));
    const Shape five{net.B, net.S, net.Kv, group, net.hd}, four{net.B, net.S, net.A, net.hd};
    k = expand(std::move(k), five);
    v = expand(std::move(v), five);
    h.q = reshape(std::move(q), four);
    h.k = reshape(k, four);
    h.v = reshape(v, four);
    return h;
  }
  if (!net.arch.multi_query) {
    const Tensor qkv = view(fused, Shape{net.B, net.S, net.A, Dim(3), net.hd});
    h.q = select(qkv, 3);
    h.k = select(qkv, 3);
    h.v = select(qkv, 3);
    return h;
  }
  const Tensor qkv = view(fused, Shape{net.B, net.S, Dim(net.A.n + 2), net.hd});
  h.q = narrow(qkv, 2, 0, net.A);
  // A list of one index behind an ellipsis is a slice and a copy.
  h.k = narrow(qkv, 2, net.A.n, Dim(1));
  h.k = clone(std::move(h.k));
  h.v = narrow(qkv, 2, net.A.n + 1, Dim(1));
  h.v = clone(std::move(h.v));
  return h;
}

// The branches without SDPA: scores divided in place, softmax in the dtype of the hidden states.
Tensor eager(Net& net, const Tensor& q, const Tensor& k, const Tensor& v, Dtype dtype) {
  net.attention_kernel = "eager";
  Tensor kt = transpose(k, -1, -2);
  Tensor scores = matmul(q, std::move(kt));
  if (!net.arch.alibi) {
    scores = scale_in_place(std::move(scores));
    Tensor masked = add(scores, net.shared.causal_mask);
    scores = softmax(std::move(masked), dtype);
    net.attn_weights = scores;
    return matmul(scores, v);
  }
  if (is_half(scores.dtype())) scores = to(std::move(scores), Dtype::kFp32);
  Tensor alibi = view(net.shared.bias, Shape{net.B, net.A, Dim(1), net.S});
  Tensor logits = add(scores, std::move(alibi));
  logits = scale_in_place(std::move(logits));
  Tensor masked = add(logits, net.shared.causal_mask);
  Tensor probs = softmax(std::move(masked), dtype);
  probs = dropout(std::move(probs), net.arch.attention_dropout);
  net.attn_weights = probs;
  return matmul(probs, v);
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attention", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  const Dim kv = net.arch.new_decoder ? Dim(2 * net.K.n) : Dim(2 * net.Kv.n * net.hd.n);
  const Tensor fused = net.matmul_linear("self_attention.query_key_value", x, Dim(net.H.n + kv.n), bias);
  Heads h = split_qkv(net, fused);
  Tensor q = transpose(std::move(h.q), 1, 2);
  Tensor k = transpose(std::move(h.k), 1, 2);
  const Tensor v = transpose(std::move(h.v), 1, 2);
  if (!net.arch.alibi) {
    Tensor q_embed = rotate(net, q);
    Tensor k_embed = rotate(net, k);
    q = std::move(q_embed);
    k = std::move(k_embed);
  }
  Tensor out;
  if (net.job.attention == AttentionKernel::kEager) {
    out = eager(net, q, k, v, x.dtype());
  } else {
    out = scaled_dot_product_attention(net, q, k, v, net.shared.causal_mask,
                                       net.arch.alibi ? net.arch.attention_dropout : 0.0, false, false);
  }
  out = transpose(std::move(out), 1, 2);
  out = reshape(std::move(out), Shape{net.B, net.S, net.H});
  return net.matmul_linear("self_attention.dense", std::move(out), net.H, bias);
}

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  Tensor h = net.matmul_linear("mlp.dense_h_to_4h", x, net.F, net.arch.mlp_bias);
  {
    Scope act(net.tape, "mlp.act", kMlp);
    h = activate(net.arch.activation, std::move(h));
  }
  return net.matmul_linear("mlp.dense_4h_to_h", h, net.H, net.arch.mlp_bias);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Architecture& a = net.arch;
  const Tensor x = std::move(hidden);
  Tensor residual = x;
  Tensor attention_normed, mlp_normed;
  if (a.new_decoder && a.num_layer_norms == 2) {
    attention_normed = net.layer_norm("ln_attn", x);
    mlp_normed = net.layer_norm("ln_mlp", x);
  } else {
    attention_normed = net.layer_norm("input_layernorm", x);
  }
  const Tensor attention_output = self_attention(net, attention_normed);
  if (a.parallel_residual) {
    if (!mlp_normed.defined()) mlp_normed = attention_normed;
  } else {
    Tensor dropped = dropout(attention_output, a.attention_dropout);
    residual = add(std::move(residual), std::move(dropped));
    mlp_normed = net.layer_norm("post_attention_layernorm", residual);
  }
  Tensor mlp_output = mlp(net, mlp_normed);
  if (a.parallel_residual) mlp_output = add_in_place(std::move(mlp_output), attention_output);
  Tensor dropped = dropout(mlp_output, a.residual_dropout);
  Tensor out = add(residual, std::move(dropped));
  net.return_weights();
  return out;
}

Tensor embed(Net& net) {
  Scope in(net.tape, "transformer", kModel);
  Tape& t = net.tape;
  Tensor embeds = net.embedding("transformer.word_embeddings", net.input_ids, net.V, net.H);
  net.tied_embedding = t.last_parameter();
  const Shape square{net.B, Dim(1), net.S, net.S};
  if (net.arch.alibi) {
    Tensor alibi = t.allocate(Shape{net.B, net.A, net.S}, Dtype::kBf16, "alibi");
    alibi = view(std::move(alibi), Shape{Dim(net.B.n * net.A.n), Dim(1), net.S});
    net.shared.bias = to(std::move(alibi), embeds.dtype());
  }
  net.shared.position_ids = t.allocate(Shape{Dim(1), net.S}, Dtype::kInt64, "position_ids");
  make_causal_masks(net, embeds, {false, false, true});
  if (net.arch.alibi && net.shared.causal_mask.defined()) {
    Tensor mask = std::move(net.shared.causal_mask);
    if (mask.dtype() == Dtype::kBool) mask = t.allocate(square, embeds.dtype(), "where");
    Tensor scaled = t.allocate(Shape{net.B, net.A, Dim(1), net.S}, embeds.dtype(), "div");
    Tensor low = t.allocate(square, Dtype::kBool, "lt");
    net.shared.causal_mask = t.allocate(Shape{net.B, net.A, net.S, net.S}, embeds.dtype(), "masked_fill");
  }
  rotary_tables(net, embeds.dtype(), net.hd.n);
  net.model_locals = {embeds};
  return embeds;
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor h = net.layer_norm("transformer.ln_f", std::move(hidden));
  net.model_locals.clear();
  net.outputs_weights.reset();
  return net.lm_head("lm_head", std::move(h), net.V);
}

}  // namespace

const Program kFalconProgram = {embed, layer, head};

}  // namespace tidemark
