// Fused kernels of state-space layers, read in the libraries' Python: only what that allocates and saves shows.
#include <algorithm>
#include <iterator>
#include <vector>

#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

Tensor like(const Tensor& x) {
  return x.tape().allocate(elementwise_shape({&x}), x.dtype(), "empty_like");
}

Tensor empty(const Tensor& x, const Shape& shape, Dtype dtype) {
  return x.tape().allocate(shape, dtype, "empty");
}

// Kernels add up a weight's gradient in fp32; it is cast where the weight is narrower.
Tensor summed_in_fp32(Tape& t, const Tensor& weight) {
  Tensor wide = t.allocate(elementwise_shape({&weight}), Dtype::kFp32, "atomic sum");
  Tensor grad = to(std::move(wide), weight.dtype());
  t.set_category(grad, Category::kGradients);
  return grad;
}

void causal_conv1d_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Shape& s = g[0].shape();
  const Tensor dout = s.strides[1] != 1 && s.strides[2] != 1 ? contiguous(g[0]) : g[0];
  Tensor dw = summed_in_fp32(t, n.saved_tensor(1));
  r[0] = like(n.saved_tensor(0));
  r[1] = std::move(dw);
  if (n.input_count > 2) r[2] = summed_in_fp32(t, n.saved_tensor(2));
}

void gated_rms_norm_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  for (int i = 0; i < 3; ++i) r[i] = like(n.saved_tensor(i));
  t.set_category(r[2], Category::kGradients);
}

constexpr Count kScanChunk = 2048;  // mamba-ssm 2 csrc/selective_scan/selective_scan.cpp: tokens of a block
// fla's chunks of a gated delta rule.
constexpr Count kChunk = 64;

// A head of keys may serve several of values: what is made of both has the values' heads.
Shape for_values(const Tensor& k, const Tensor& v) {
  return Shape{k.dim(0), k.dim(1), v.dim(2), k.dim(3)};
}

/// recompute_w_u_fwd, then chunk_gated_delta_rule_fwd_h.
struct States {
  Tensor w, u, h, v_new;
};
States states_of(Tape& t, const Tensor& k, const Tensor& v) {
  States s;
  s.w = empty(k, for_values(k, v), k.dtype());
  s.u = like(v);
  const Dim chunks(t.quotient_up(k.size(1), kChunk));
  s.h = empty(k, Shape{Dim(k.size(0) * chunks.n()), v.dim(2), k.dim(3), v.dim(3)}, k.dtype());
  s.v_new = like(s.u);
  return s;
}

// chunk_gated_delta_rule_bwd, kernel by kernel, then l2norm_bwd.
void delta_rule_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor& q = n.saved_tensor(0);
  const Tensor& k = n.saved_tensor(2);
  const Tensor& v = n.saved_tensor(4);
  const Tensor& decay = n.saved_tensor(5);
  const Tensor dout = contiguous(g[0]);
  States s = states_of(t, k, v);
  Tensor dv = like(dout);
  Tensor dh = like(s.h);
  dv = like(dv);
  const bool grouped = k.size(2) != v.size(2);
  const auto of_keys = [&](Tensor grad) { return grouped ? like(k) : std::move(grad); };  // .sum(3)
  Tensor dq = empty(q, for_values(k, v), q.dtype()), dk = empty(k, for_values(k, v), k.dtype()), dw = like(s.w);
  Tensor dg = empty(decay, decay.shape(), Dtype::kFp32);
  dq = of_keys(std::move(dq));
  dk = of_keys(std::move(dk));
  Tensor dk2 = empty(k, for_values(k, v), k.dtype());
  dv = like(v);
  Tensor db = like(n.saved_tensor(6));
  Tensor dg2 = empty(decay, decay.shape(), Dtype::kFp32);
  dk2 = of_keys(std::move(dk2));
  s = {};
  dh.reset();
  dw.reset();
  dg2.reset();
  dk2.reset();
  dg = like(dg);
  dq = like(dq);
  dk = like(dk);
  r[0] = std::move(dq);
  r[1] = std::move(dk);
  r[2] = std::move(dv);
  r[3] = std::move(dg);
  r[4] = std::move(db);
}

}  // namespace

Tensor causal_conv1d(Tensor x_in, Tensor weight_in, Tensor bias_in) {
  Tensor x = std::move(x_in);
  const Tensor weight = std::move(weight_in), bias = std::move(bias_in);
  Tape& t = x.tape();
  Node* n = bias.defined() ? t.record("causal_conv1d", causal_conv1d_backward, {&x, &weight, &bias})
                           : t.record("causal_conv1d", causal_conv1d_backward, {&x, &weight});
  const Shape& s = x.shape();
  if (s.strides[1] != 1 && s.strides[2] != 1) x = contiguous(detach(x));
  t.save(n, x);
  t.save(n, weight);
  if (bias.defined()) t.save(n, bias);
  Tensor out = like(x);
  t.attach(n, out);
  return out;
}

Tensor gated_rms_norm(Tensor x_in, Tensor gate_in, Tensor weight_in) {
  const Tensor x_arg = std::move(x_in), gate_arg = std::move(gate_in), weight = std::move(weight_in);
  Tape& t = x_arg.tape();
  Node* n = t.record("gated_rms_norm", gated_rms_norm_backward, {&x_arg, &gate_arg, &weight});
  const Tensor x = contiguous(detach(x_arg)), gate = contiguous(detach(gate_arg));
  const Tensor rstd = empty(x, Shape{x.dim(0)}, Dtype::kFp32);
  for (const Tensor* saved : {&x, &gate, &weight, &rstd}) t.save(n, *saved);
  Tensor out = like(x);
  t.attach(n, out);
  return out;
}

Tensor chunk_gated_delta_rule(Tensor q_in, Tensor k_in, Tensor v_in, Tensor g_in, Tensor beta_in, bool solves_at_once) {
  const Tensor args[] = {std::move(q_in), std::move(k_in), std::move(v_in), std::move(g_in), std::move(beta_in)};
  Tape& t = args[0].tape();
  Node* n = t.record("chunk_gated_delta_rule", delta_rule_backward, {&args[0], &args[1], &args[2], &args[3], &args[4]});
  Tensor q = contiguous(detach(args[0])), k = contiguous(detach(args[1]));
  const Tensor v = contiguous(detach(args[2])), beta = contiguous(detach(args[4]));
  Tensor g = contiguous(detach(args[3]));
  const Shape rows{k.dim(0), k.dim(1), k.dim(2)}, square{k.dim(0), k.dim(1), v.dim(2), Dim(kChunk)};
  Tensor normal = like(q);
  const Tensor q_rstd = empty(q, rows, Dtype::kFp32);
  q = std::move(normal);
  normal = like(k);
  const Tensor k_rstd = empty(k, rows, Dtype::kFp32);
  k = std::move(normal);
  g = like(g);
  Tensor raw;
  if (!solves_at_once) raw = empty(k, square, Dtype::kFp32);
  const Tensor solved = empty(k, square, k.dtype());
  raw.reset();
  States states = states_of(t, k, v);
  Tensor out = like(v);
  states = {};
  for (const Tensor& saved : {q, q_rstd, k, k_rstd, v, g, beta, solved}) t.save(n, saved);
  t.attach(n, out);
  return out;
}

namespace {

Tensor fp32(Tape& t, const Shape& shape) {
  return t.allocate(shape, Dtype::kFp32, "empty");
}

// The cast that these functions make by hand under autocast, kept in no cache.
Tensor by_hand(const Tensor& x) {
  const auto autocast = x.tape().autocast();
  return autocast ? to(detach(x), *autocast) : detach(x);
}

/// A node whose inputs are the tensors that are defined.
Node* node_of(const char* name, BackwardFn backward, std::initializer_list<const Tensor*> all) {
  std::vector<const Tensor*> inputs;
  for (const Tensor* x : all) {
    if (x->defined()) inputs.push_back(x);
  }
  return inputs.front()->tape().record(name, backward, inputs.data(), inputs.size());
}

/// What the kernels of a chunked scan work on.
struct ChunkSizes {
  Dim batch, tokens, chunks, size, heads, width, groups, state;
  Shape per_token() const { return {batch, heads, chunks, size}; }
  Shape states() const { return {Dim(batch.n() * chunks.n()), heads, width, state}; }
  Shape scores() const { return {Dim(batch.n() * chunks.n()), groups, size, size}; }
};

ChunkSizes sizes_of(Tape& t, const Tensor& projected, const Count* numbers) {
  ChunkSizes z;
  z.batch = projected.dim(0);
  z.tokens = projected.dim(1);
  z.heads = Dim(numbers[0]);
  z.width = Dim(numbers[1]);
  z.groups = Dim(numbers[2]);
  z.state = Dim(numbers[3]);
  z.size = Dim(numbers[4]);
  z.chunks = Dim(t.quotient_up(z.tokens.n(), z.size.n()));
  return z;
}

// _mamba_chunk_scan_combined_fwd: only its output outlives it.
Tensor scanned(Tape& t, const ChunkSizes& z, Dtype dtype) {
  const Tensor sums = fp32(t, z.per_token()), dt = fp32(t, z.per_token());
  Tensor states = fp32(t, z.states());
  const Tensor passed = t.allocate(z.states(), dtype, "empty");
  const Tensor last = fp32(t, Shape{z.batch, z.heads, z.width, z.state});
  states.reset();
  const Tensor scores = fp32(t, z.scores());
  return t.allocate(Shape{z.batch, z.tokens, Dim(z.heads.n() * z.width.n())}, dtype, "empty");
}

// _mamba_chunk_scan_combined_bwd, of which nothing outlives it but what its callers made.
void scanned_backward(Tape& t, const ChunkSizes& z, Dtype dtype) {
  const Tensor dt_in = t.allocate(Shape{z.batch, z.tokens, z.heads}, dtype, "empty");
  const Tensor sums = fp32(t, z.per_token()), dt = fp32(t, z.per_token()), scores = fp32(t, z.scores());
  Tensor states = fp32(t, z.states());
  {
    Tensor again = fp32(t, z.states());
    const Tensor last = fp32(t, Shape{z.batch, z.heads, z.width, z.state});
    states = std::move(again);
  }
  Tensor dstates = fp32(t, z.states());
  const Tensor low = t.allocate(z.states(), dtype, "empty"), low2 = t.allocate(z.states(), dtype, "empty");
  states.reset();
  dstates.reset();
  const Tensor ddt = fp32(t, z.per_token());
  const Shape shared{z.batch, z.tokens, z.groups, z.state};
  const Tensor db = fp32(t, shared), dc = fp32(t, shared), dscores = fp32(t, z.scores());
  const Tensor dda = fp32(t, z.per_token()), dda2 = fp32(t, z.per_token()), dda3 = fp32(t, z.per_token());
}

// Saved: projected, the convolution's weight, out_x, a, d, dt_bias, out_proj's weight, then what may be missing.
void split_scan_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor& projected = n.saved_tensor(0);
  const Tensor& out_x = n.saved_tensor(2);
  const Tensor& out_weight = n.saved_tensor(6);
  const ChunkSizes z = sizes_of(t, projected, n.attributes);
  const Dim channels = n.saved_tensor(1).dim(0);
  Tensor conv = t.allocate(Shape{z.batch, z.tokens, channels}, projected.dtype(), "empty");
  Tensor dprojected = like(projected), dconv = like(conv);
  Tensor dy = t.allocate(out_x.shape(), g[0].dtype(), "mm");
  Tensor dnorm = like(out_x), again = like(out_x);
  scanned_backward(t, z, projected.dtype());
  dnorm.reset();
  conv.reset();
  Tensor cast = to(again, g[0].dtype());
  Tensor dout = t.allocate(out_weight.shape(), g[0].dtype(), "einsum");
  cast.reset();
  again.reset();
  dy.reset();
  dconv.reset();
  r[1] = summed_in_fp32(t, n.saved_tensor(1));
  for (int i = 2; i < 5; ++i) r[i] = like(n.saved_tensor(i + 1));
  r[0] = std::move(dprojected);
  r[5] = std::move(dout);
  t.set_category(r[5], Category::kGradients);
  for (int i = 6; i < n.input_count; ++i) r[i] = t.allocate(n.input_shapes[i], n.input_dtypes[i], "empty_like");
}

}  // namespace

Tensor split_conv1d_scan(Tensor projected_in, const SplitScan& s) {
  const Tensor projected = std::move(projected_in);
  Tape& t = projected.tape();
  Node* n = node_of(
      "split_conv1d_scan", split_scan_backward,
      {&projected, &s.conv_weight, &s.a, &s.d, &s.dt_bias, &s.out_weight, &s.conv_bias, &s.norm_weight, &s.out_bias});
  const Count numbers[] = {s.d.size(0), s.head_dim, s.groups, s.state, s.chunk};
  if (n != nullptr && !t.stopped()) std::copy(std::begin(numbers), std::end(numbers), n->attributes);
  const ChunkSizes z = sizes_of(t, projected, numbers);
  Tensor conv = t.allocate(Shape{z.batch, z.tokens, s.conv_weight.dim(0)}, projected.dtype(), "empty");
  const Tensor out_x = scanned(t, z, projected.dtype());
  conv.reset();
  Tensor out = like(out_x), rstd;
  if (s.norm_weight.defined()) rstd = fp32(t, Shape{Dim(z.groups.n() * z.batch.n() * z.tokens.n())});
  out = by_hand(out);
  const Tensor out_weight = by_hand(s.out_weight);
  Tensor y = t.allocate(Shape{z.batch, z.tokens, out_weight.dim(0)}, out.dtype(), "mm");
  for (const Tensor* saved : {&projected, &s.conv_weight, &out_x, &s.a, &s.d, &s.dt_bias, &out_weight, &s.conv_bias,
                              &s.norm_weight, static_cast<const Tensor*>(&rstd)}) {
    if (saved->defined()) t.save(n, *saved);
  }
  t.attach(n, y);
  return y;
}

namespace {

// "(dt_w @ x_dbl[:, :rank].t())": [D, B·S]
Tensor inner_delta(Tape& t, const Dim& width, const Shape& xz, Dtype dtype) {
  return t.allocate(Shape{width, Dim(xz.size(0) * xz.size(2))}, dtype, "mm");
}

// transformers' kernel falcon_mamba_inner_fn (selective_scan_with_ln_interface.py): rows made one behind another,
// rms_norm_forward of them, and turned back.
Tensor unit_rows(Tensor x_in, Dim rows, Dim width) {
  Tensor x = std::move(x_in);
  Tape& t = x.tape();
  const Shape shape = x.shape().contiguous();
  const Shape flat{rows, width};
  x = t.allocate(flat, x.dtype(), "contiguous");
  Tensor normed = t.allocate(flat, x.dtype(), "rms_norm_forward");
  { const Tensor deviations = t.allocate(Shape{rows}, Dtype::kFp32, "rms_norm_forward"); }
  x = std::move(normed);
  return t.allocate(shape, x.dtype(), "contiguous");
}

// Saved: xz, conv_w, x_w, dt_w, out_w, a, d, dt_bias, x_dbl, B, C, steps, out, conv_b.
void mamba_inner_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor& xz = n.saved_tensor(0);
  const Shape& s = xz.shape();
  const Dtype dtype = xz.dtype();
  const Dim width(s.size(1) / 2), rows(s.size(0) * s.size(2));
  const Shape inner{s.dim(0), width, s.dim(2)};
  const Tensor dout = contiguous(g[0]);
  const Tensor conv_out = t.allocate(inner, dtype, "empty");
  Tensor delta = inner_delta(t, width, s, dtype);
  Tensor b, c;
  if (n.attributes[0] != 0) {
    delta = unit_rows(std::move(delta), rows, width);
    b = unit_rows(n.saved_tensor(9), rows, n.saved_tensor(9).dim(2));
    c = unit_rows(n.saved_tensor(10), rows, n.saved_tensor(10).dim(2));
  }
  Tensor dxz = like(xz);
  const Tensor turned = t.allocate(Shape{g[0].dim(2), rows}, dtype, "clone");
  const Tensor dout_y = inner_delta(t, width, s, dtype);
  Tensor dconv = like(conv_out), ddelta = like(delta);
  r[5] = like(n.saved_tensor(5));
  Tensor db = fp32(t, n.saved_tensor(9).shape()), dc = fp32(t, n.saved_tensor(10).shape());
  r[6] = like(n.saved_tensor(6));
  r[7] = like(n.saved_tensor(7));
  const Tensor out_z = like(n.saved_tensor(12));
  {
    const Tensor flat = t.allocate(Shape{width, rows}, dtype, "clone");
    r[4] = t.allocate(n.saved_tensor(4).shape(), dtype, "mm");
  }
  const Tensor dx_dbl = like(n.saved_tensor(8));
  db.reset();
  dc.reset();
  r[3] = t.allocate(n.saved_tensor(3).shape(), dtype, "mm");
  { const Tensor part = t.allocate(Shape{rows, n.saved_tensor(3).dim(1)}, dtype, "mm"); }
  dconv = t.allocate(Shape{width, rows}, dtype, "clone");
  {
    const Tensor flat = t.allocate(Shape{rows, width}, dtype, "clone");
    r[2] = t.allocate(n.saved_tensor(2).shape(), dtype, "mm");
  }
  r[1] = summed_in_fp32(t, n.saved_tensor(1));
  if (n.input_count > 8) r[8] = summed_in_fp32(t, n.saved_tensor(13));
  r[0] = std::move(dxz);
}

}  // namespace

namespace {

Tensor along_tokens(const Tensor& x) {
  return x.shape().strides[2] == 1 ? detach(x) : contiguous(detach(x));
}

// csrc/selective_scan/selective_scan.cpp selective_scan_bwd. Saved: u, delta, a, b, c, d, z, bias, steps, out.
void selective_scan_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor dout = g[0].shape().strides[2] == 1 ? g[0] : contiguous(g[0]);
  r[6] = like(n.saved_tensor(6));
  r[0] = like(n.saved_tensor(0));
  r[1] = like(n.saved_tensor(1));
  r[2] = like(n.saved_tensor(2));
  const Tensor db = fp32(t, n.saved_tensor(3).shape()), dc = fp32(t, n.saved_tensor(4).shape());
  r[5] = like(n.saved_tensor(5));
  const Tensor dbias = like(n.saved_tensor(7));
  r[3] = to(db, n.saved_tensor(3).dtype());
  r[4] = to(dc, n.saved_tensor(4).dtype());
}

}  // namespace

Tensor selective_scan(const SelectiveScan& s) {
  Tape& t = s.u.tape();
  Node* n = t.record("selective_scan", selective_scan_backward, {&s.u, &s.delta, &s.a, &s.b, &s.c, &s.d, &s.z});
  const Tensor u = along_tokens(s.u), delta = along_tokens(s.delta);
  const Tensor b = along_tokens(s.b), c = along_tokens(s.c), z = along_tokens(s.z);
  const Shape& sizes = u.shape();
  const Dim blocks(t.quotient_up(sizes.size(2), kScanChunk)), pairs(2 * s.a.size(1));
  const Tensor out = like(delta);
  const Tensor steps = fp32(t, Shape{sizes.dim(0), sizes.dim(1), blocks, pairs});
  Tensor gated = like(z);
  for (const Tensor* saved : {&u, &delta, &s.a, &b, &c, &s.d, &z, &s.delta_bias, &steps, &out}) t.save(n, *saved);
  t.attach(n, gated);
  return gated;
}

Tensor mamba_inner(Tensor xz_in, const InnerScan& s) {
  const Tensor argument = std::move(xz_in);
  Tape& t = argument.tape();
  Node* n = node_of(
      "mamba_inner", mamba_inner_backward,
      {&argument, &s.conv_weight, &s.x_weight, &s.dt_weight, &s.out_weight, &s.a, &s.d, &s.dt_bias, &s.conv_bias});
  const Tensor x_weight = by_hand(s.x_weight), dt_weight = by_hand(s.dt_weight), out_weight = by_hand(s.out_weight);
  const Tensor xz = contiguous(detach(argument));
  const Shape& sizes = xz.shape();
  const Dtype dtype = xz.dtype();
  const Dim batch = sizes.dim(0), width(sizes.size(1) / 2), tokens = sizes.dim(2), rows(batch.n() * tokens.n());
  const Dim state = s.a.dim(1), numbers = x_weight.dim(0);
  const Shape inner{batch, width, tokens}, shared{batch, Dim(1), state, tokens};
  const Tensor conv_out = t.allocate(inner, dtype, "empty");
  Tensor flat = t.allocate(Shape{rows, width}, dtype, "clone");
  const Tensor x_dbl = t.allocate(Shape{rows, numbers}, dtype, "mm");
  flat.reset();
  Tensor delta = inner_delta(t, width, sizes, dtype);
  Tensor own_b = t.allocate(shared, dtype, "clone"), own_c = t.allocate(shared, dtype, "clone");
  if (s.unit) {
    own_b = unit_rows(std::move(own_b), rows, state);
    own_c = unit_rows(std::move(own_c), rows, state);
    delta = unit_rows(std::move(delta), rows, width);
  }
  const Tensor b = std::move(own_b), c = std::move(own_c);
  if (n != nullptr) n->attributes[0] = s.unit ? 1 : 0;
  const Tensor out = t.allocate(inner, dtype, "empty_like");
  const Tensor steps = fp32(t, Shape{batch, width, Dim(t.quotient_up(tokens.n(), kScanChunk)), Dim(2 * state.n())});
  const Tensor out_z = t.allocate(inner, dtype, "empty");
  flat = t.allocate(Shape{rows, width}, dtype, "clone");  // F.linear of a transposed input
  Tensor y = t.allocate(Shape{batch, tokens, out_weight.dim(0)}, dtype, "mm");
  flat.reset();
  for (const Tensor* saved : {&xz, &s.conv_weight, &x_weight, &dt_weight, &out_weight, &s.a, &s.d, &s.dt_bias, &x_dbl,
                              &b, &c, &steps, &out, &s.conv_bias}) {
    if (saved->defined()) t.save(n, *saved);
  }
  t.attach(n, y);
  return y;
}

namespace {

// Saved: decay, first, key, value, output. What was fp16 is computed in fp32.
void wkv_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor dout = n.saved_tensor(2).dtype() == Dtype::kFp32 ? to(g[0], Dtype::kFp32) : g[0];
  const Dtype dtype = n.input_dtypes[2];
  Tensor decay = t.allocate(n.saved_tensor(0).shape(), dtype == Dtype::kBf16 ? dtype : Dtype::kFp32, "empty_like");
  Tensor grads[3];
  for (int i = 0; i < 3; ++i) grads[i] = like(n.saved_tensor(i + 1));
  r[0] = to(std::move(decay), dtype);
  for (int i = 0; i < 3; ++i) r[i + 1] = to(std::move(grads[i]), dtype);
}

}  // namespace

Tensor wkv(Tensor decay_in, Tensor first_in, Tensor key_in, Tensor value_in) {
  const Tensor decay_arg = std::move(decay_in), first_arg = std::move(first_in), key_arg = std::move(key_in),
               value_arg = std::move(value_in);
  Tape& t = key_arg.tape();
  Node* n = t.record("wkv", wkv_backward, {&decay_arg, &first_arg, &key_arg, &value_arg});
  Tensor decay = to(detach(decay_arg), Dtype::kFp32);
  decay = like(decay);
  decay = like(decay);
  const bool wide = key_arg.dtype() == Dtype::kFp16;
  const auto argument = [wide](const Tensor& x) { return wide ? to(detach(x), Dtype::kFp32) : detach(x); };
  const Tensor first = argument(first_arg), key = argument(key_arg), value = argument(value_arg);
  const Tensor out = like(key);
  for (const Tensor& saved : {decay, first, key, value, out}) t.save(n, saved);
  Tensor result = to(out, key_arg.dtype());
  t.attach(n, result);
  return result;
}

}  // namespace tidemark
