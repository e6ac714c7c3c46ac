// linkedin/Liger-Kernel 0.8 (ead96b6): fused Triton kernels and what their autograd functions keep.
#include "core/tape/ops.hpp"

namespace tidemark {
namespace {

// ops/rms_norm.py rms_norm_backward: dW, of a weight that learns, per SM in fp32, then summed and cast; dX in a tensor
// of its own where in_place=False.
void rms_norm_backward_apart(Tape& t, Node& n, Tensor* g, Tensor* r) {
  // sm_count rows of partial weight gradients; 108 is an A100 (NVIDIA data sheet): a few MB at most.
  constexpr Count kPartialRows = 108;
  const Shape weight = n.input_shapes[1];
  Tensor partial;
  if (n.needs(1)) partial = t.allocate(Shape{Dim(kPartialRows), weight.dim(0)}, Dtype::kFp32, "liger rms_norm dW");
  if (!r[0].defined()) r[0] = t.allocate(g[0].shape(), g[0].dtype(), "liger rms_norm dX");
  if (!n.needs(1)) return;
  Tensor sum = t.allocate(weight, Dtype::kFp32, "liger rms_norm dW sum");
  r[1] = n.input_dtypes[1] == Dtype::kFp32 ? sum : t.allocate(weight, n.input_dtypes[1], "liger rms_norm dW cast");
}

void rms_norm_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = g[0];
  rms_norm_backward_apart(t, n, g, r);
}

// ops/swiglu.py swiglu_backward: the gradients overwrite the saved gate and up.
void swiglu_backward(Tape&, Node& n, Tensor*, Tensor* r) {
  r[0] = n.saved_tensor(0);
  r[1] = n.saved_tensor(1);
}

// ops/rope.py rope_backward: the gradient is turned back in place.
void rope_backward(Tape&, Node&, Tensor* g, Tensor* r) {
  r[0] = g[0];
}

}  // namespace

Tensor liger_rope(Tensor x_in, Tensor cos_in, Tensor sin_in) {
  const Tensor x = std::move(x_in);
  const Tensor cos = std::move(cos_in);
  const Tensor sin = std::move(sin_in);
  Node* n = x.tape().record("LigerRopeFunction", rope_backward, {&x});
  x.tape().save(n, cos);
  x.tape().save(n, sin);
  Tensor out = x;
  out.leave_graph();
  x.tape().attach(n, out);
  return out;
}

Tensor liger_rms_norm(Tensor x_in, Tensor weight_in, bool in_place) {
  const Tensor x = std::move(x_in);
  const Tensor weight = std::move(weight_in);
  Tape& t = x.tape();
  Node* n = t.record("LigerRMSNormFunction", in_place ? rms_norm_backward : rms_norm_backward_apart, {&x, &weight});
  t.save(n, x);
  t.save(n, weight);
  Tensor out = t.allocate(elementwise_shape({&x}), x.dtype(), "liger rms_norm");
  Tensor rstd = t.allocate(x.shape().with_last(Dim(1)), Dtype::kFp32, "liger rms_norm rstd");
  t.attach(n, out);
  t.save(n, rstd);
  return out;
}

Tensor liger_swiglu(Tensor gate_in, Tensor up_in) {
  const Tensor gate = std::move(gate_in);
  const Tensor up = std::move(up_in);
  Tape& t = gate.tape();
  Node* n = t.record("LigerSiLUMulFunction", swiglu_backward, {&gate, &up});
  t.save(n, gate);
  t.save(n, up);
  Tensor out = t.allocate(elementwise_shape({&gate}), gate.dtype(), "liger swiglu");
  t.attach(n, out);
  return out;
}

}  // namespace tidemark
