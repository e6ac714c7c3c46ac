// Softmax and layer norm: reductions with fused backward kernels.
#include "core/tape/ops.hpp"

namespace tidemark {
namespace {

// _log_softmax_backward_data: one output, in the dtype of the forward's input.
void log_softmax_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  Shape s = n.input_shapes[0];
  r[0] = t.allocate(s.is_dense() ? s : g[0].shape(), n.input_dtypes[0], n.name);
}

// _softmax_backward_data: the same, and ATen/native/cuda/SoftMax.cu softmax_backward_cuda_out has `grad * output` for
// the kernel to read.  Seen on an H200 (tests/measured/own.jsonl).
void softmax_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  log_softmax_backward(t, n, g, r);
  t.allocate(r[0].shape(), g[0].dtype(), "softmax_backward (grad * output)");
}

Tensor softmax_like(Tensor x_in, std::optional<Dtype> dtype, const char* name, BackwardFn backward) {
  const Tensor argument = std::move(x_in);  // the caller's name outlives the cast
  Tensor x = argument;
  Tape& t = x.tape();
  Dtype out_dtype = dtype.value_or(x.dtype());
  if (!dtype && t.autocast()) out_dtype = Dtype::kFp32;
  // ATen/native/SoftMax.cpp: only fp16 → fp32 is fused (half_to_float); other casts make a copy first.
  if (out_dtype != x.dtype() && x.dtype() != Dtype::kFp16) x = to(std::move(x), out_dtype);
  Node* n = t.record(name, backward, {&x});
  // pytorch 2.14 native/SoftMax.cpp TORCH_META_FUNC(_softmax): set_output_raw_strided without strides.
  Tensor out = t.allocate(x.shape().contiguous(), out_dtype, name);
  t.attach(n, out);
  t.save(n, out);
  return out;
}

// native_layer_norm_backward: dX, dgamma, dbeta.
void layer_norm_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  // The kernel works on a contiguous copy of its input, and so does what it makes.
  Shape rows = n.input_shapes[0];
  rows.make_contiguous();
  if (n.needs(0)) r[0] = t.allocate(rows, n.input_dtypes[0], "layer_norm_backward");
  for (int i = 1; i < n.input_count; ++i) {
    if (n.needs(i)) r[i] = t.allocate(n.input_shapes[i], n.input_dtypes[i], "layer_norm_backward weight");
  }
  (void)g;
}

}  // namespace

Tensor softmax(Tensor x, std::optional<Dtype> dtype) {
  return softmax_like(std::move(x), dtype, "softmax", softmax_backward);
}
Tensor log_softmax(Tensor x, std::optional<Dtype> dtype) {
  return softmax_like(std::move(x), dtype, "log_softmax", log_softmax_backward);
}

Tensor fused_rms_norm(Tensor x_in, Tensor weight_in) {
  const Tensor x = std::move(x_in), weight = std::move(weight_in);
  Tape& t = x.tape();
  Node* n = weight.defined() ? t.record("rms_norm", layer_norm_backward, {&x, &weight})
                             : t.record("rms_norm", layer_norm_backward, {&x});
  t.save(n, x);
  if (weight.defined()) t.save(n, weight);
  Tensor out = t.allocate(x.shape().contiguous(), x.dtype(), "rms_norm");
  const Tensor rstd = t.allocate(x.shape().with_last(Dim(1)), Dtype::kFp32, "rms_norm rstd");
  t.attach(n, out);
  t.save(n, rstd);
  return out;
}

Tensor layer_norm(Tensor x_in, Tensor weight_in, Tensor bias_in) {
  const Tensor argument = std::move(x_in);
  Tensor x = argument;
  Tensor weight = std::move(weight_in);
  Tensor bias = std::move(bias_in);
  Tape& t = x.tape();
  if (t.autocast()) {  // on autocast's fp32 list
    x = to(std::move(x), Dtype::kFp32);
    if (weight.defined()) weight = to(std::move(weight), Dtype::kFp32);
    if (bias.defined()) bias = to(std::move(bias), Dtype::kFp32);
  }
  // ATen/native/cuda/layer_norm_kernel.cu: gamma->const_data_ptr<T>(), T being X's. What is merely declared has none.
  if (weight.defined() && weight.dtype() != x.dtype() && x.storage() >= 0) t.tell_mixed_dtypes();
  Node* n = nullptr;
  if (weight.defined() && bias.defined()) {
    n = t.record("layer_norm", layer_norm_backward, {&x, &weight, &bias});
  } else if (weight.defined()) {
    n = t.record("layer_norm", layer_norm_backward, {&x, &weight});
  } else {
    n = t.record("layer_norm", layer_norm_backward, {&x});
  }
  t.save(n, x);
  if (weight.defined()) t.save(n, weight);
  if (bias.defined()) t.save(n, bias);
  const Shape s = x.shape();
  Tensor out = t.allocate(s.is_contiguous() ? s : s.contiguous(), x.dtype(), "layer_norm");
  const Shape rows = s.with_last(Dim(1));
  Tensor mean = t.allocate(rows, Dtype::kFp32, "layer_norm mean");
  Tensor rstd = t.allocate(rows, Dtype::kFp32, "layer_norm rstd");
  t.attach(n, out);
  t.save(n, mean);
  t.save(n, rstd);
  return out;
}

}  // namespace tidemark
