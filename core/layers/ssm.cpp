#include "core/layers/ssm.hpp"

#include "core/layers/losses.hpp"
#include "core/layers/program.hpp"
#include "core/tape/ops/convolution.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {

Tensor heads_first(Tensor x) {
  Tensor y = contiguous(transpose(std::move(x), 1, 2));
  return to(std::move(y), Dtype::kFp32);
}

Tensor l2norm(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tensor r = mul(x, x);
  r = sum_over(std::move(r), -1, true);
  r = add_scalar(std::move(r));
  r = rsqrt(std::move(r));
  return mul(x, std::move(r));
}

Tensor solved_rows(Tensor attn_in) {
  Tensor attn = std::move(attn_in);
  const Dim outer = attn.dim(0), chunks = attn.dim(1);
  Tensor row, sub;
  for (Count i = 1; i < kDeltaChunk; ++i) {
    const Dim n(i);
    row = clone(narrow(select(attn, 2), 2, 0, n));
    sub = clone(narrow(narrow(attn, 2, 0, n), 3, 0, n));
    Tensor sum = mul(unsqueeze(row, -1), sub);
    sum = sum_over(std::move(sum), -2, false);
    sum = add(row, std::move(sum));
    attn = copy_into(std::move(attn), Shape{outer, chunks, n}, std::move(sum));
  }
  return attn;
}

namespace {

constexpr const char* kDeltaRule =
    "transformers 5.12 models/qwen3_next/modeling_qwen3_next.py: torch_chunk_gated_delta_rule";
constexpr const char* kFla = "flash-linear-attention 0.4 ops/gated_delta_rule/chunk.py: ChunkGatedDeltaRuleFunction";
constexpr const char* kGatedNorm =
    "transformers 5.12 models/qwen3_next/modeling_qwen3_next.py: Qwen3NextRMSNormGated.forward";
constexpr const char* kPadding = "transformers 5.12 models/mamba2/modeling_mamba2.py: apply_mask_to_padding_states";

// Batch and heads as one dimension, the tokens cut into chunks.
Tensor in_chunks(Tensor x) {
  const Shape s = x.shape();
  const Dim outer(s.size(0) * s.size(1)), chunks(s.size(2) / kDeltaChunk);
  if (s.rank == 3) return view(std::move(x), Shape{outer, chunks, Dim(kDeltaChunk)});
  return view(std::move(x), Shape{outer, chunks, Dim(kDeltaChunk), s.dim(3)});
}

/// The chunks of torch_chunk_gated_delta_rule.
struct Chunks {
  Tensor query, key, value, decay, decay_mask, cumulative;
};

// for i in range(0, total_sequence_length // chunk_size)
Tensor scan_chunks(const Chunks& c, Dtype dtype) {
  Tape& t = c.query.tape();
  const Dim outer = c.query.dim(0), dk = c.key.dim(3), dv = c.value.dim(3), size(kDeltaChunk);
  Tensor state = zeros(t, Shape{outer, dk, dv}, dtype);
  Tensor out = zeros(t, c.value.shape(), c.value.dtype(), "zeros_like");
  Tensor mask = t.allocate(Shape{size, size}, Dtype::kBool, "ones");
  mask = t.allocate(Shape{size, size}, Dtype::kBool, "triu");
  Tensor q, k, v, attn, v_prime, v_new, inter;
  for (Count i = 0; i < c.query.size(1); ++i) {
    q = select(c.query, 1);
    k = select(c.key, 1);
    v = select(c.value, 1);
    const Tensor g = select(c.decay, 1);
    attn = matmul(q, transpose(k, -1, -2));
    attn = mul(std::move(attn), select(c.decay_mask, 1));
    v_prime = matmul(select(c.cumulative, 1), state);
    v_new = sub(v, v_prime);
    Tensor scale = exp(unsqueeze(g, -1));
    inter = mul(q, std::move(scale));
    inter = matmul(std::move(inter), state);
    Tensor part = matmul(attn, v_new);
    part = add(inter, std::move(part));
    out = copy_into(std::move(out), Shape{outer, size, dv}, std::move(part));
    Tensor last = exp(unsqueeze(unsqueeze(select(g, 1), -1), -1));
    Tensor kept = mul(state, std::move(last));
    Tensor rest = sub(unsqueeze(select(g, 1), -1), g);
    rest = unsqueeze(exp(std::move(rest)), -1);
    rest = mul(k, std::move(rest));
    rest = matmul(transpose(std::move(rest), -1, -2), v_new);
    state = add(std::move(kept), std::move(rest));
  }
  return out;
}

// torch_chunk_gated_delta_rule: q, k, v [B, S, heads, D], g and beta [B, S, heads].
Tensor torch_delta_rule(Net& net, Tensor q_in, Tensor k_in, Tensor v_in, Tensor g_in, Tensor beta_in) {
  Scope in(net.tape, "linear_attn", kDeltaRule);
  Tape& t = net.tape;
  const Tensor q_arg = std::move(q_in), k_arg = std::move(k_in), v_arg = std::move(v_in), g_arg = std::move(g_in),
               beta_arg = std::move(beta_in);
  const Dtype initial = q_arg.dtype();
  Tensor query = l2norm(q_arg), key = l2norm(k_arg), value = v_arg, beta = beta_arg, g = g_arg;
  {
    Tensor q = heads_first(query), k = heads_first(key), v = heads_first(value), b = heads_first(beta),
           decay = heads_first(g);
    query = std::move(q);
    key = std::move(k);
    value = std::move(v);
    beta = std::move(b);
    g = std::move(decay);
  }
  const Count extra = t.round_up(net.S.n(), kDeltaChunk) - net.S.n();
  for (Tensor* x : {&query, &key, &value, &beta, &g}) *x = pad(std::move(*x), 2, extra);
  query = mul_scalar(std::move(query));
  Tensor v_beta = mul(value, unsqueeze(beta, -1));
  Tensor k_beta = mul(key, unsqueeze(beta, -1));
  for (Tensor* x : {&query, &key, &value, &k_beta, &v_beta, &g}) *x = in_chunks(std::move(*x));
  const Dim size(kDeltaChunk);
  Tensor mask = t.allocate(Shape{size, size}, Dtype::kBool, "ones");
  mask = t.allocate(Shape{size, size}, Dtype::kBool, "triu");
  g = cumsum(std::move(g));
  Tensor decay_mask = sub(unsqueeze(g, -1), unsqueeze(g, -2));
  decay_mask = tril(std::move(decay_mask));
  decay_mask = exp(std::move(decay_mask));
  decay_mask = tril(std::move(decay_mask));
  Tensor attn = matmul(k_beta, transpose(key, -1, -2));
  attn = mul(std::move(attn), decay_mask);
  attn = masked_fill(std::move(attn), mask);
  attn = neg(std::move(attn));
  attn = solved_rows(std::move(attn));
  {
    const Tensor eye = t.allocate(Shape{size, size}, attn.dtype(), "eye");
    attn = add(std::move(attn), eye);
  }
  value = matmul(attn, v_beta);
  Tensor scale = exp(g);
  scale = mul(k_beta, unsqueeze(std::move(scale), -1));
  Tensor cumulative = matmul(attn, std::move(scale));
  Tensor out = scan_chunks({query, key, value, g, decay_mask, cumulative}, value.dtype());
  out = view(std::move(out), Shape{net.B, q_arg.dim(2), Dim(net.S.n() + extra), v_arg.dim(3)});
  out = narrow(std::move(out), 2, 0, net.S);
  out = contiguous(transpose(std::move(out), 1, 2));
  return to(std::move(out), initial);
}

}  // namespace

Outputs wide_causal_lm(Net& net, const Program& program, Tensor hidden) {
  if (net.job.loss != Loss::kDefault) return causal_lm(net, program, std::move(hidden));
  Tensor logits = to(program.lm_head(net, kept_tokens(net, std::move(hidden))), Dtype::kFp32);
  Outputs out;
  out.loss = causal_lm_loss(net, logits, OwnLoss::kFp32);
  out.rest = {std::move(logits)};
  return out;
}

Tensor mask_padding(Net& net, Tensor hidden_in) {
  const bool any_batch = net.job.framework.at_least(5, 15);
  if (!net.attention_mask.defined() || !(any_batch || net.tape.above(net.B.n(), 1))) return hidden_in;
  Scope in(net.tape, "", kPadding);
  const Tensor hidden = std::move(hidden_in);
  Tensor masked = mul(hidden, unsqueeze(net.attention_mask, -1));
  return to(std::move(masked), hidden.dtype());
}

Tensor causal_convolution(Net& net, const char* name, Tensor x_in, bool has_bias, bool activated, bool by_function) {
  const char* source = net.source();
  const Tensor x = std::move(x_in);
  const Dim channels = x.dim(1);
  const Count kernel = net.arch.ssm.kernel;
  Tensor weight = net.parameter(name, "weight", Shape{channels, Dim(1), Dim(kernel)});
  Tensor bias = has_bias ? net.parameter(name, "bias", Shape{channels}) : Tensor();
  if (!net.job.torch_scan) return causal_conv1d(x, view(std::move(weight), Shape{channels, Dim(kernel)}), bias);
  const bool casts = by_function && net.job.framework.at_least(5, 15);
  Tensor out;
  {
    const Tensor cast = casts ? to(x, weight.dtype()) : x;  // an argument until the call returns
    Scope in(net.tape, name, source);
    out = convolution(cast, std::move(weight), std::move(bias), {Dim(net.S.n() + kernel - 1)});
  }
  out = narrow(std::move(out), 2, 0, net.S);
  if (activated) out = silu(std::move(out));
  return casts ? to(std::move(out), x.dtype()) : out;
}

Tensor norm_then_gate(Net& net, const char* name, Tensor x_in, Tensor gate_in, bool by_fla) {
  Scope in(net.tape, name, kGatedNorm);
  const Tensor x = std::move(x_in), gate = std::move(gate_in);
  const Tensor weight = net.parameter(name, "weight", Shape{x.dim(-1)});
  if (!net.job.torch_scan && by_fla) return gated_rms_norm(x, gate, weight);
  Tensor h = to(x, Dtype::kFp32);
  MeanSquare square = mean_square(h);
  h = mul(std::move(h), std::move(square.root));
  h = to(std::move(h), x.dtype());
  h = mul(weight, std::move(h));
  Tensor open = to(gate, Dtype::kFp32);
  open = silu(std::move(open));
  h = mul(std::move(h), std::move(open));
  return to(std::move(h), x.dtype());
}

Tensor delta_decay(Net& net, const Tensor& a, bool wide) {
  const Shape heads{Dim(net.arch.ssm.heads)};
  const Tensor dt_bias = net.parameter("linear_attn", "dt_bias", heads);
  Tensor rate = wide ? net.fp32_parameter("linear_attn", "A_log", heads, true)
                     : to(net.parameter("linear_attn", "A_log", heads), Dtype::kFp32);
  return delta_decay(std::move(rate), a, dt_bias);
}

Tensor delta_decay(Tensor rate, const Tensor& a, const Tensor& dt_bias) {
  rate = exp(std::move(rate));
  rate = neg(std::move(rate));
  Tensor step = to(a, Dtype::kFp32);
  step = add(std::move(step), dt_bias);
  step = softplus(std::move(step));
  return mul(std::move(rate), std::move(step));
}

namespace {
// modeling_qwen3_5.py from 5.23 on: the kernel is given heads of keys as they are, and repeats them itself.
bool shares_keys(const Net& net) {
  return net.job.framework.at_least(5, 23);
}
}  // namespace

Tensor gated_delta_rule(Net& net, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g,
                        const Tensor& beta) {
  if (net.job.torch_scan && net.job.framework.at_least(5, 17)) return solved_delta_rule(net, q, k, v, g, beta);
  if (net.job.torch_scan) return torch_delta_rule(net, q, k, v, g, beta);
  Scope in(net.tape, "linear_attn", kFla);
  return chunk_gated_delta_rule(q, k, v, g, beta, shares_keys(net));
}

Tensor gated_delta_net(Net& net, const char* source, DeltaInputs inputs) {
  const StateSpace& s = net.arch.ssm;
  const Dim heads(s.heads), groups(s.groups), dk(s.state), dv(s.head_dim);
  const Dim key_width(groups.n() * dk.n()), value_width(heads.n() * dv.n());
  Tensor mixed = causal_convolution(net, "linear_attn.conv1d", std::move(inputs.mixed), false);
  mixed = transpose(std::move(mixed), 1, 2);
  const Pieces parts = split(mixed, -1, {key_width, key_width, value_width});
  inputs.apart.clear();
  Tensor query = reshape(parts.part[0], Shape{net.B, net.S, groups, dk});
  Tensor key = reshape(parts.part[1], Shape{net.B, net.S, groups, dk});
  const Tensor value = reshape(parts.part[2], Shape{net.B, net.S, heads, dv});
  const Tensor beta = sigmoid(inputs.b);
  const Tensor g = delta_decay(net, inputs.a, false);
  if (!shares_keys(net)) {
    query = repeat_heads(std::move(query), heads.n() / groups.n());
    key = repeat_heads(std::move(key), heads.n() / groups.n());
  }
  Tensor out = gated_delta_rule(net, query, key, value, g, beta);
  const Dim rows(net.T.n() * heads.n());
  out = reshape(std::move(out), Shape{rows, dv});
  inputs.z = reshape(std::move(inputs.z), Shape{rows, dv});
  // From 5.15 on fla's norm is no longer taken where it is installed.
  out = norm_then_gate(net, "linear_attn.norm", std::move(out), inputs.z, !net.job.framework.at_least(5, 15));
  out = reshape(std::move(out), Shape{net.B, net.S, value_width});
  Scope in(net.tape, "linear_attn", source);
  return net.linear("linear_attn.out_proj", std::move(out), net.H);
}

}  // namespace tidemark
