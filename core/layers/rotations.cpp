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
  return net.tape.allocate(Shape{Dim(1), Dim(1), table.dim(1), table.dim(2)}, table.dtype(), "repeat_interleave");
}

}  // namespace

Tensor turn_pairs(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  Tensor straight = mul(x, cos);
  Tensor turned = rotate_half_pairs(x);
  turned = mul(std::move(turned), sin);
  return add(std::move(straight), std::move(turned));
}

Rotated rotate_pairs_by_fp32(Net& net, Tensor q_in, Tensor k_in) {
  const Tensor q = std::move(q_in), k = std::move(k_in);
  const Tensor cos = repeat_in_pairs(net, net.shared.cos);
  const Tensor sin = repeat_in_pairs(net, net.shared.sin);
  const Tensor q_embed = turn_in_fp32(q, cos, sin);
  const Tensor k_embed = turn_in_fp32(k, cos, sin);
  Rotated out;
  out.q = to(q_embed, q.dtype());
  out.k = to(k_embed, k.dtype());
  return out;
}

Tensor rotate_leading(Net& net, Tensor x_in) {
  const Tensor x = std::move(x_in);
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

}  // namespace tidemark
