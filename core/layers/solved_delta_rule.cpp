// The gated delta rule on torch alone as transformers 5.17 wrote it anew: each chunk's system is solved as a triangular
// one, and all decays are applied before the scan over chunks.
#include "core/layers/ssm.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kDeltaRule =
    "transformers 5.17 models/qwen3_next/modeling_qwen3_next.py: torch_chunk_gated_delta_rule";

// [B, heads, S, D] to [B, heads, chunks, 64, D], or without columns.
Tensor divided(Tensor x) {
  const Shape s = x.shape();
  const Dim chunks(s.size(2) / kDeltaChunk), size(kDeltaChunk);
  if (s.rank == 3) return reshape(std::move(x), Shape{s.dim(0), s.dim(1), chunks, size});
  return reshape(std::move(x), Shape{s.dim(0), s.dim(1), chunks, size, s.dim(3)});
}

// a @ b of all chunks: one product of [B · heads · chunks, …], a clone where strides do not allow that view.
Tensor products(const Tensor& a, const Tensor& b) {
  const Dim all(a.size(0) * a.size(1) * a.size(2));
  Tensor left = reshape(a, Shape{all, a.dim(3), a.dim(4)});
  Tensor right = reshape(b, Shape{all, b.dim(3), b.dim(4)});
  Tensor y = matmul(std::move(left), std::move(right));
  return view(std::move(y), Shape{a.dim(0), a.dim(1), a.dim(2), a.dim(3), b.dim(4)});
}

/// What the scan over chunks reads: [B, heads, chunks, 64, columns], `chunk_decay` [B, heads, chunks, 1, 1].
struct Scanned {
  Tensor query, key, new_values, k_cumdecay, intra_chunk_attn, chunk_decay;
};

Tensor scan(const Scanned& s, Tensor state_in, Tensor out_in) {
  Tensor state = std::move(state_in), out = std::move(out_in);
  const Shape part{out.dim(0), out.dim(1), Dim(kDeltaChunk), out.dim(4)};
  Tensor v_new, inter;
  for (Count i = 0; i < s.query.size(2); ++i) {
    Tensor read = matmul(select(s.k_cumdecay, 2), state);
    v_new = sub(select(s.new_values, 2), read);
    read.reset();
    inter = matmul(select(s.query, 2), state);
    Tensor within = matmul(select(s.intra_chunk_attn, 2), v_new);
    within = add(inter, std::move(within));
    out = copy_into(std::move(out), part, std::move(within));
    Tensor kept = mul(state, select(s.chunk_decay, 2));
    Tensor update = matmul(transpose(select(s.key, 2), -1, -2), v_new);
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
  for (Tensor* x : {&query, &key, &k_beta, &v_beta, &decay}) *x = divided(std::move(*x));
  const Dim size(kDeltaChunk);
  Tensor mask = t.allocate(Shape{size, size}, Dtype::kBool, "ones");
  mask = t.allocate(Shape{size, size}, Dtype::kBool, "triu");
  const Tensor cumulative = cumsum(decay);
  Tensor pairwise = sub(unsqueeze(cumulative, -1), unsqueeze(cumulative, -2));
  pairwise = masked_fill(std::move(pairwise), mask);
  pairwise = exp(std::move(pairwise));
  Tensor system = products(k_beta, transpose(key, -1, -2));
  system = mul(std::move(system), pairwise);
  Tensor within = products(query, transpose(key, -1, -2));
  within = mul(std::move(within), pairwise);
  Tensor scale = exp(cumulative);
  const Tensor decayed = mul(k_beta, unsqueeze(std::move(scale), -1));
  Tensor new_values = solve_triangular(system, v_beta);
  Tensor k_cumdecay = solve_triangular(system, decayed);
  Tensor state = zeros(t, Shape{query.dim(0), query.dim(1), query.dim(4), value.dim(3)}, new_values.dtype());
  Tensor out = zeros(t, new_values.shape(), new_values.dtype(), "zeros_like");
  scale = exp(cumulative);
  query = mul(query, unsqueeze(std::move(scale), -1));
  scale = sub(narrow(cumulative, 3, kDeltaChunk - 1, Dim(1)), cumulative);
  scale = exp(std::move(scale));
  key = mul(key, unsqueeze(std::move(scale), -1));
  const Tensor last = exp(select(cumulative, 3));
  out = scan({query, key, new_values, k_cumdecay, within, unsqueeze(unsqueeze(last, -1), -1)}, std::move(state),
             std::move(out));
  out = reshape(std::move(out), Shape{net.B, v_arg.dim(2), Dim(net.S.n() + extra), v_arg.dim(3)});
  out = narrow(std::move(out), 2, 0, net.S);
  return to_contiguous(transpose(std::move(out), 1, 2), q_arg.dtype());
}

}  // namespace tidemark
