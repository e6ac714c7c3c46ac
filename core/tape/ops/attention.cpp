// scaled_dot_product_attention's kernels: pytorch v2.6.0 aten/src/ATen/native/transformers/attention.cpp and
// cuda/{attention.cu, attention_backward.cu, flash_attn/flash_api.cpp}.
#include "core/tape/ops.hpp"

namespace tidemark {
namespace {

Shape like(const Tensor& x) {
  return elementwise_shape({&x});
}

constexpr Bytes kCudnnLeast = 256;  // bytes of workspace that its attention has in any case

Count round_up(Count n, Count multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// flash_api.cpp mha_bwd: softmax_d, dq_accum, and for grouped heads the expanded dk, dv.
void flash_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  const Tensor &q = n.saved_tensor(0), &k = n.saved_tensor(1), &v = n.saved_tensor(2);
  r[0] = t.allocate(like(q), q.dtype(), "flash_attention_backward dq");
  r[1] = t.allocate(like(k), k.dtype(), "flash_attention_backward dk");
  r[2] = t.allocate(like(v), v.dtype(), "flash_attention_backward dv");
  const Count b = q.size(0), heads = q.size(1), s = q.size(2), hd = q.size(3), sk = k.size(2);
  const Count s_rounded = t.round_up(s, 128);
  const Count hd_rounded = hd <= 128 ? round_up(hd, 32) : round_up(hd, 64);
  const bool grouped = k.size(1) != heads;
  t.scratch({{4 * b * heads * s_rounded, "softmax_d"},
             {4 * b * s_rounded * heads * hd_rounded, "dq_accum"},
             {grouped ? 2 * b * sk * heads * hd : 0, "dk_expanded"},
             {grouped ? 2 * b * sk * heads * hd : 0, "dv_expanded"}});
}

void efficient_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  const Tensor &q = n.saved_tensor(0), &k = n.saved_tensor(1), &v = n.saved_tensor(2);
  r[0] = t.allocate(like(q), q.dtype(), "efficient_attention_backward dq");
  r[1] = t.allocate(like(k), k.dtype(), "efficient_attention_backward dk");
  r[2] = t.allocate(like(v), v.dtype(), "efficient_attention_backward dv");
  if (n.input_count > 3) {  // of a bias that is trained: rows of whole 16 numbers
    const Shape wide = n.input_shapes[3].with_last(Dim(t.round_up(n.input_shapes[3].size(-1), 16)));
    r[3] = t.allocate(wide, q.dtype(), "efficient_attention_backward dbias");
    r[3].change().shape.dims[wide.rank - 1] = n.input_shapes[3].dim(-1);
  }
  const Count b = q.size(0), heads = q.size(1), s = q.size(2), hd = q.size(3);
  t.scratch(
      {{4 * b * heads * s, "delta"}, {q.dtype() == Dtype::kFp32 ? 0 : 4 * b * heads * s * hd, "grad_q accumulator"}});
}

// ATen/native/cudnn/MHA.cpp run_cudnn_SDP_bprop, and what cuDNN 9.19 asks for beside it: dq in fp32, the rows' sums,
// and for grouped heads the expanded dk, dv. Read off an H200 (tests/measured/kernels.jsonl), to the byte.
void cudnn_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  const Tensor &q = n.saved_tensor(0), &k = n.saved_tensor(1), &v = n.saved_tensor(2);
  r[0] = t.allocate(like(q), q.dtype(), "cudnn_attention_backward dq");
  r[1] = t.allocate(like(k), k.dtype(), "cudnn_attention_backward dk");
  r[2] = t.allocate(like(v), v.dtype(), "cudnn_attention_backward dv");
  const Count rows = q.size(0) * q.size(1) * q.size(2);
  const Count expanded = q.size(0) * q.size(1) * k.size(2) * (k.size(3) + v.size(3));
  const Bytes grouped = k.size(1) == q.size(1) ? 0 : size_of(k.dtype()) * expanded;
  t.scratch({{4 * rows * q.size(3) + 4 * rows + grouped + kCudnnLeast, "cudnn workspace"}});
}

// [B, S, heads, hd] in memory, seen as [B, heads, S, hd]: how both kernels lay out what they make themselves.
Shape sequence_major(const Tensor& q, Dim hd) {
  Shape s{q.dim(0), q.dim(2), q.dim(1), hd};
  Shape out{q.dim(0), q.dim(1), q.dim(2), hd};
  out.strides[0] = s.strides[0];
  out.strides[1] = s.strides[2];
  out.strides[2] = s.strides[1];
  out.strides[3] = 1;
  return out;
}

}  // namespace

Tensor flash_attention(Tensor q_in, Tensor k_in, Tensor v_in, double) {
  const Tensor q = std::move(q_in), k = std::move(k_in), v = std::move(v_in);
  Tape& t = q.tape();
  Node* n = t.record("flash_attention", flash_backward, {&q, &k, &v});
  t.save(n, q);
  t.save(n, k);
  t.save(n, v);
  Tensor out = t.allocate(like(q), q.dtype(), "flash_attention");
  Tensor lse = t.allocate(Shape{q.dim(0), q.dim(1), q.dim(2)}, Dtype::kFp32, "flash_attention logsumexp");
  // Philox seed and offset, kept even without dropout.
  Tensor rng = t.allocate(Shape{Dim(2)}, Dtype::kInt64, "flash_attention rng_state");
  Tensor unused = t.allocate(Shape{}, Dtype::kInt64, "flash_attention rng_state");
  t.attach(n, out);
  t.save(n, out);
  t.save(n, lse);
  t.save(n, rng);
  t.save(n, unused);
  return out;
}

Tensor efficient_attention(Tensor q_in, Tensor k_in, Tensor v_in, Tensor bias_in, double) {
  const Tensor q = std::move(q_in), k = std::move(k_in), v = std::move(v_in), bias = std::move(bias_in);
  Tape& t = q.tape();
  const bool trained = bias.defined() && bias.requires_grad();
  Node* n = trained ? t.record("efficient_attention", efficient_backward, {&q, &k, &v, &bias})
                    : t.record("efficient_attention", efficient_backward, {&q, &k, &v});
  t.save(n, q);
  t.save(n, k);
  t.save(n, v);
  if (bias.defined()) t.save(n, bias);
  Tensor out = t.allocate(sequence_major(q, v.dim(3)), q.dtype(), "efficient_attention");
  // attention.cu: the log-sum-exp rows are padded to the kernel's alignment of 32.
  Tensor lse = t.allocate(Shape{q.dim(0), q.dim(1), Dim(t.round_up(q.size(2), 32))}, Dtype::kFp32,
                          "efficient_attention logsumexp");
  t.attach(n, out);
  t.save(n, out);
  t.save(n, lse);
  return out;
}

Tensor cudnn_attention(Tensor q_in, Tensor k_in, Tensor v_in, Tensor mask_in) {
  const Tensor q = std::move(q_in), k = std::move(k_in), v = std::move(v_in);
  Tensor mask = std::move(mask_in);
  Tape& t = q.tape();
  if (mask.defined() && mask.dtype() == Dtype::kBool) {  // attention.cpp convert_boolean_attn_mask
    Shape s = mask.shape();
    s.make_contiguous();
    mask = t.allocate(s, q.dtype(), "attention mask (additive)");
  }
  Node* n = t.record("cudnn_attention", cudnn_backward, {&q, &k, &v});
  t.save(n, q);
  t.save(n, k);
  t.save(n, v);
  if (mask.defined()) t.save(n, mask);
  const Tensor seed = t.allocate(Shape{}, Dtype::kInt64, "cudnn_attention seed");
  const Tensor offset = t.allocate(Shape{}, Dtype::kInt64, "cudnn_attention offset");
  // MHA.cpp alloc_with_matching_layout: the output lies as the query does.
  Tensor out =
      t.allocate(v.dim(3).n() == q.dim(3).n() ? like(q) : sequence_major(q, v.dim(3)), q.dtype(), "cudnn_attention");
  const Tensor lse = t.allocate(Shape{q.dim(0), q.dim(1), q.dim(2)}, Dtype::kFp32, "cudnn_attention logsumexp");
  t.scratch({{kCudnnLeast, "cudnn workspace"}});
  t.attach(n, out);
  t.save(n, out);
  t.save(n, lse);
  t.save(n, seed);
  t.save(n, offset);
  return out;
}

Tensor math_attention(Tensor q_in, Tensor k_in, Tensor v_in, Tensor mask_in, bool causal, double dropout_p,
                      bool enable_gqa) {
  // attention.cpp _scaled_dot_product_attention_math. Its locals live until it returns, what was given to it as well.
  const Tensor q = std::move(q_in), k = std::move(k_in), v = std::move(v_in);
  Tensor mask = std::move(mask_in);
  Tape& t = q.tape();
  const Dtype dtype = q.dtype();
  // Half inputs are computed in fp32 unless allow_fp16_bf16_reduction_math_sdp is set (off by default).
  const Dtype wide_dtype = is_half(dtype) ? Dtype::kFp32 : dtype;
  const Tensor query_acc = to(q, wide_dtype), key_acc = to(k, wide_dtype), value_acc = to(v, wide_dtype);
  const Tensor query = mul_scalar(query_acc);
  if (causal) {
    const Dim rows = query.dim(2), columns = key_acc.dim(2);
    Tensor ones = t.allocate(Shape{rows, columns}, Dtype::kBool, "causal mask");
    Tensor lower = t.allocate(Shape{rows, columns}, Dtype::kBool, "causal mask");
    ones.reset();
    Tensor inverted = t.allocate(Shape{rows, columns}, Dtype::kBool, "causal mask");
    mask = t.allocate(Shape{rows, columns}, query.dtype(), "causal mask");
  }
  Tensor key_expanded = key_acc, value_expanded = value_acc;
  if (enable_gqa && key_acc.size(1) != query.size(1)) {
    // repeat_interleave: a copy per head, kept by the products.
    const Shape wide{key_acc.dim(0), query.dim(1), key_acc.dim(2), key_acc.dim(3)};
    for (Tensor* x : {&key_expanded, &value_expanded}) {
      Tensor e = unsqueeze(*x, 2);
      Shape five = e.shape();
      five.dims[2] = Dim(query.size(1) / x->size(1));
      e = expand(std::move(e), five);
      Shape compact = five;
      compact.make_contiguous();
      *x = reshape(std::move(e), wide);
    }
  }
  Tensor kt = transpose(key_expanded, -2, -1);
  kt = mul_scalar(std::move(kt));
  Tensor attn = matmul(query, std::move(kt));
  if (mask.defined()) attn = add(std::move(attn), std::move(mask));
  attn = softmax(std::move(attn), dtype == Dtype::kFp32 ? std::nullopt : std::optional<Dtype>(Dtype::kFp32));
  attn = dropout(std::move(attn), dropout_p);
  // The composite also returns the probabilities, in the inputs' dtype; the caller drops them at once. Of a tuple's
  // parts the last is made first.
  const Tensor weights = to(attn, dtype);
  return to(matmul(attn, value_expanded), dtype);
}

}  // namespace tidemark
