// The gated delta rule on torch alone as transformers 5.17 wrote it anew: each chunk's system is solved as a triangular
// one, and all decays are applied before the scan over chunks.
#include "core/layers/ssm.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kDeltaRule =
    "transformers 5.17 models/qwen3_next/modeling_qwen3_next.py: torch_chunk_gated_delta_rule";

/// What the scan over chunks reads: [outer, chunks, 64, columns], `chunk_decay` [outer, chunks, 1, 1].
struct Scanned {
  Tensor query, key, new_values, k_cumdecay, intra_chunk_attn, chunk_decay;
};

Tensor scan(const Scanned& s, Tensor state_in, Tensor out_in) {
  Tensor state = std::move(state_in), out = std::move(out_in);
  const Shape part{out.dim(0), Dim(kDeltaChunk), out.dim(3)};
  Tensor v_new, inter;
  for (Count i = 0; i < s.query.size(1); ++i) {
    Tensor read = matmul(select(s.k_cumdecay, 1), state);
    v_new = sub(select(s.new_values, 1), read);
    read.reset();
    inter = matmul(select(s.query, 1), state);
    Tensor within = matmul(select(s.intra_chunk_attn, 1), v_new);
    within = add(inter, std::move(within));
    out = copy_into(std::move(out), part, std::move(within));
    Tensor kept = mul(state, select(s.chunk_decay, 1));
    Tensor update = matmul(transpose(select(s.key, 1), -1, -2), v_new);
    state = add(std::move(kept), std::move(update));
  }
  return out;
}

}  // namespace

Tensor solved_delta_rule(Net& net, Tensor q_in, Tensor k_in, Tensor v_in, Tensor g_in, Tensor beta_in) {
  Scope in(net.tape, "linear_attn", kDeltaRule);
  Tape& t = net.tape;
  // Names of the caller.
  const Tensor q_arg = std::move(q_in), k_arg = std::move(k_in), v_arg = std::move(v_in), g_arg = std::move(g_in),
               beta_arg = std::move(beta_in);
  const Count repeats = v_arg.size(2) / q_arg.size(2);
  Tensor query = repeat_heads(q_arg, repeats), key = repeat_heads(k_arg, repeats), value = v_arg, beta = beta_arg,
         decay = g_arg;
  for (Tensor* x : {&query, &key, &value, &beta, &decay}) {
    *x = to_contiguous(transpose(std::move(*x), 1, 2), Dtype::kFp32);
  }
  query = l2norm(std::move(query));
  key = l2norm(std::move(key));
  query = mul_scalar(std::move(query));
  const Count extra = t.round_up(net.S.n(), kDeltaChunk) - net.S.n();
  {
    Tensor q = pad(query, 2, extra), k = pad(key, 2, extra), v = pad(value, 2, extra);
    query = std::move(q);
    key = std::move(k);
    value = std::move(v);
  }
  {
    Tensor b = pad(beta, 2, extra), d = pad(decay, 2, extra);
    beta = std::move(b);
    decay = std::move(d);
  }
  Tensor v_beta = mul(value, unsqueeze(beta, -1));
  Tensor k_beta = mul(key, unsqueeze(beta, -1));
  for (Tensor* x : {&query, &key, &k_beta, &v_beta, &decay}) *x = in_chunks(std::move(*x));
  const Dim size(kDeltaChunk);
  Tensor mask = t.allocate(Shape{size, size}, Dtype::kBool, "ones");
  mask = t.allocate(Shape{size, size}, Dtype::kBool, "triu");
  const Tensor cumulative = cumsum(decay);
  Tensor pairwise = sub(unsqueeze(cumulative, -1), unsqueeze(cumulative, -2));
  pairwise = masked_fill(std::move(pairwise), mask);
  pairwise = exp(std::move(pairwise));
  Tensor system = matmul(k_beta, transpose(key, -1, -2));
  system = mul(std::move(system), pairwise);
  Tensor within = matmul(query, transpose(key, -1, -2));
  within = mul(std::move(within), pairwise);
  Tensor scale = exp(cumulative);
  const Tensor decayed = mul(k_beta, unsqueeze(std::move(scale), -1));
  Tensor new_values = solve_triangular(system, v_beta);
  Tensor k_cumdecay = solve_triangular(system, decayed);
  Tensor state = zeros(t, Shape{query.dim(0), query.dim(3), value.dim(3)}, new_values.dtype());
  Tensor out = zeros(t, new_values.shape(), new_values.dtype(), "zeros_like");
  scale = exp(cumulative);
  query = mul(query, unsqueeze(std::move(scale), -1));
  scale = sub(narrow(cumulative, 2, kDeltaChunk - 1, Dim(1)), cumulative);
  scale = exp(std::move(scale));
  key = mul(key, unsqueeze(std::move(scale), -1));
  const Tensor last = exp(select(cumulative, 2));
  out = scan({query, key, new_values, k_cumdecay, within, unsqueeze(unsqueeze(last, -1), -1)}, std::move(state),
             std::move(out));
  out = reshape(std::move(out), Shape{net.B, v_arg.dim(2), Dim(net.S.n() + extra), v_arg.dim(3)});
  out = narrow(std::move(out), 2, 0, net.S);
  return to_contiguous(transpose(std::move(out), 1, 2), q_arg.dtype());
}

}  // namespace tidemark
