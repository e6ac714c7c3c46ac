#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

/// The head's elements as two interleaved halves, the second negated, put back in pairs.
Tensor rotate_half_pairs(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tensor x1 = every_other(x, 0);
  Tensor x2 = every_other(x, 1);
  Tensor negative = neg(x2);
  Tensor pairs = stack_last(std::move(negative), x1);
  return view(std::move(pairs), x.shape());
}

Tensor turn_in_fp32(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  Tensor straight = to(x, Dtype::kFp32);
  straight = mul(std::move(straight), cos);
  Tensor turned = rotate_half_pairs(x);
  turned = to(std::move(turned), Dtype::kFp32);
  turned = mul(std::move(turned), sin);
  return add(std::move(straight), std::move(turned));
}

/// cos[..., : dim // 2].repeat_interleave(2, dim=-1): a copy of the table.
Tensor repeat_in_pairs(Net& net, const Tensor& table) {
  return net.tape.allocate(Shape{table.dim(0), Dim(1), table.dim(1), table.dim(2)}, table.dtype(), "repeat_interleave");
}

}  // namespace

Tensor turn_pairs(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  Tensor straight = mul(x, cos);
  Tensor turned = rotate_half_pairs(x);
  turned = mul(std::move(turned), sin);
  return add(std::move(straight), std::move(turned));
}

Rotated rotate_pairs_by_fp32(Net& net, Tensor q_in, Tensor k_in, bool repeated) {
  const Tensor q = std::move(q_in), k = std::move(k_in);
  const Tensor cos = repeated ? unsqueeze(net.shared.cos, 1) : repeat_in_pairs(net, net.shared.cos);
  const Tensor sin = repeated ? unsqueeze(net.shared.sin, 1) : repeat_in_pairs(net, net.shared.sin);
  const Tensor q_embed = turn_in_fp32(q, cos, sin);
  const Tensor k_embed = turn_in_fp32(k, cos, sin);
  Rotated out;
  out.q = to(q_embed, q.dtype());
  out.k = to(k_embed, k.dtype());
  return out;
}

Tensor rotate_leading(Net& net, Tensor x_in) {
  const Tensor x = std::move(x_in);
  if (net.job.liger_rope) {  // a copy, as rope_forward wants rows that lie in one piece
    return liger_rope(transpose(contiguous(transpose(x, 1, 2)), 1, 2), net.shared.cos, net.shared.sin);
  }
  const Count rotary = net.arch.rotary_dim;
  Tensor turning = narrow(x, -1, 0, Dim(rotary));
  Tensor still = narrow(x, -1, rotary, Dim(x.size(-1) - rotary));
  Tensor turned = rotate(net, std::move(turning));
  return cat({&turned, &still}, -1);
}

Rotated rotate_leading_both(Net& net, Tensor q_in, Tensor k_in) {
  const Count rotary = net.arch.rotary_dim;
  const Tensor q = narrow(q_in, -1, 0, Dim(rotary));
  const Tensor q_pass = narrow(q_in, -1, rotary, Dim(q_in.size(-1) - rotary));
  const Tensor k = narrow(k_in, -1, 0, Dim(rotary));
  const Tensor k_pass = narrow(k_in, -1, rotary, Dim(k_in.size(-1) - rotary));
  const Tensor q_embed = rotate(net, q);
  const Tensor k_embed = rotate(net, k);
  Rotated out;
  out.q = cat({&q_embed, &q_pass}, -1);
  out.k = cat({&k_embed, &k_pass}, -1);
  return out;
}

void turn_leading(Net& net, Tensor& q, Tensor& k) {
  Rotated turned = rotate_leading_both(net, q, k);
  q = std::move(turned.q);
  k = std::move(turned.k);
}

Parts rotate_parts(Net& net, Tensor& q, Tensor& k) {
  const Count rotary = net.arch.rotary_dim;
  Parts parts;
  parts.q_turned = narrow(q, -1, 0, Dim(rotary));
  parts.q_rest = narrow(q, -1, rotary, Dim(q.size(-1) - rotary));
  parts.k_turned = narrow(k, -1, 0, Dim(rotary));
  parts.k_rest = narrow(k, -1, rotary, Dim(k.size(-1) - rotary));
  Tensor q_embed = rotate(net, parts.q_turned);
  Tensor k_embed = rotate(net, parts.k_turned);
  parts.q_turned = std::move(q_embed);
  parts.k_turned = std::move(k_embed);
  q = cat({&parts.q_turned, &parts.q_rest}, -1);
  k = cat({&parts.k_turned, &parts.k_rest}, -1);
  return parts;
}

Rotated rotate_in_fp32(Net& net, Tensor q_in, Tensor k_in) {
  const Tensor q = std::move(q_in), k = std::move(k_in);
  Tensor wide = to(q, Dtype::kFp32);
  const Tensor q_embed = rotate(net, std::move(wide));
  wide = to(k, Dtype::kFp32);
  const Tensor k_embed = rotate(net, std::move(wide));
  Rotated out;
  out.q = to(q_embed, q.dtype());
  out.k = to(k_embed, k.dtype());
  return out;
}

Rotated rotate_pairs(Net& net, Tensor q_in, Tensor k_in, bool leading) {
  const Tensor q = std::move(q_in), k = std::move(k_in);
  const Tensor cos = repeat_in_pairs(net, net.shared.cos);
  const Tensor sin = repeat_in_pairs(net, net.shared.sin);
  if (!leading) {
    Rotated out;
    out.q = turn_pairs(q, cos, sin);
    out.k = turn_pairs(k, cos, sin);
    return out;
  }
  const Count rotary = net.arch.rotary_dim;
  const Tensor q_rot = narrow(q, -1, 0, Dim(rotary));
  const Tensor q_pass = narrow(q, -1, rotary, Dim(q.size(-1) - rotary));
  const Tensor k_rot = narrow(k, -1, 0, Dim(rotary));
  const Tensor k_pass = narrow(k, -1, rotary, Dim(k.size(-1) - rotary));
  Rotated out;
  out.q = turn_pairs(q_rot, cos, sin);
  out.k = turn_pairs(k_rot, cos, sin);
  out.q = cat({&out.q, &q_pass}, -1);
  out.k = cat({&out.k, &k_pass}, -1);
  return out;
}

Rotated rotate_pairs_fp32(Net& net, Tensor q_in, Tensor k_in) {
  const Dtype dtype = q_in.dtype();
  const Tensor q = to(std::move(q_in), Dtype::kFp32);
  const Tensor k = to(std::move(k_in), Dtype::kFp32);
  const Tensor cos = unsqueeze(net.shared.cos, 1);
  const Tensor sin = unsqueeze(net.shared.sin, 1);
  const Tensor q_embed = turn_pairs(q, cos, sin);
  const Tensor k_embed = turn_pairs(k, cos, sin);
  Rotated out;
  out.q = to(q_embed, dtype);
  out.k = to(k_embed, dtype);
  return out;
}

Rotated rotate_fp32(Net& net, Tensor q_in, Tensor k_in) {
  const Tensor q = std::move(q_in), k = std::move(k_in);
  const Tensor q_embed = rotate(net, q);
  const Tensor k_embed = rotate(net, k);
  Rotated out;
  out.q = to(q_embed, q.dtype());
  out.k = to(k_embed, k.dtype());
  return out;
}

// A complex number is two of fp32.
void complex_rotary_table(Net& net, const char* source) {
  Scope in(net.tape, "rotary_emb", source);
  Tape& t = net.tape;
  const Count dim = net.arch.rotary_dim;
  t.buffer("rotary_emb.inv_freq", dim / 2 * 4);
  t.buffer("rotary_emb.original_inv_freq", dim / 2 * 4);
  const Dim rows = rows_of_positions(net);
  const Shape half{rows, net.S, Dim(dim / 2)}, table{rows, net.S, Dim(dim)};
  const Tensor positions = t.allocate(Shape{rows, Dim(1), net.S}, Dtype::kFp32, "position_ids.float()");
  const Tensor freqs = t.allocate(half, Dtype::kFp32, "bmm");
  net.shared.cos = t.allocate(half, Dtype::kFp32, "ones_like");
  net.shared.cos = t.allocate(table, Dtype::kFp32, "polar");
  net.shared.cos = t.allocate(table, Dtype::kFp32, "mul");
}

Rotated rotate_complex(Net& net, Tensor q_in, Tensor k_in, bool at_once) {
  const Tensor q = std::move(q_in), k = std::move(k_in);
  // view_as_complex and view_as_real are views; the product keeps nothing but the table.
  const Tensor wide_q = to(q, Dtype::kFp32), wide_k = to(k, Dtype::kFp32);
  const Tensor table = net.shared.cos;
  Rotated out;
  out.q = mul_scalar(wide_q);
  if (at_once) out.q = to(std::move(out.q), q.dtype());
  out.k = mul_scalar(wide_k);
  out.q = to(std::move(out.q), q.dtype());
  out.k = to(std::move(out.k), k.dtype());
  return out;
}

Tensor turn_parts(const Tensor& x1, const Tensor& x2, const Tensor& cos, const Tensor& sin) {
  Tensor left = mul(x1, cos);
  Tensor right = mul(x2, sin);
  const Tensor first = sub(std::move(left), std::move(right));
  left = mul(x2, cos);
  right = mul(x1, sin);
  const Tensor second = add(std::move(left), std::move(right));
  return cat({&first, &second}, -1);
}

HalfTables half_tables(Net& net, const char* source, Dim rows, Dim length, Dtype dtype, Count dim) {
  Scope in(net.tape, "rotary_emb", source);
  Tape& t = net.tape;
  const Shape table{rows, length, Dim(dim / 2)};
  const Tensor positions = t.allocate(Shape{rows, Dim(1), length}, Dtype::kFp32, "position_ids.float()");
  const Tensor freqs = t.allocate(table, Dtype::kFp32, "bmm");
  Tensor cos = t.allocate(table, Dtype::kFp32, "cos");
  cos = t.allocate(table, Dtype::kFp32, "mul");
  Tensor sin = t.allocate(table, Dtype::kFp32, "sin");
  sin = t.allocate(table, Dtype::kFp32, "mul");
  return {to(cos, dtype), to(sin, dtype)};
}

void half_rotary_tables(Net& net, const char* source, Dtype dtype, Count dim) {
  {
    Scope in(net.tape, "rotary_emb", source);
    net.tape.buffer("rotary_emb.inv_freq", dim / 2 * 4);
    net.tape.buffer("rotary_emb.original_inv_freq", dim / 2 * 4);
  }
  HalfTables made = half_tables(net, source, rows_of_positions(net), net.S, dtype, dim);
  net.shared.cos = std::move(made.cos);
  net.shared.sin = std::move(made.sin);
}

Tensor rotate_halves(Net& net, Tensor x_in) {
  const Tensor x = std::move(x_in);
  const Dim half(x.size(-1) / 2);
  const Pieces halves = split(x, -1, {half, half});
  return turn_parts(halves.part[0], halves.part[1], unsqueeze(net.shared.cos, 1), unsqueeze(net.shared.sin, 1));
}

}  // namespace tidemark
