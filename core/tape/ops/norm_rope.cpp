// axolotl 067b021 src/axolotl/kernels/gemma4_fused_rope.py: a norm over each head and the rotation in one Triton
// kernel.
#include <algorithm>

#include "core/tape/ops.hpp"

namespace tidemark {
namespace {

// What autograd makes of a gradient that nobody gave: the second output, 1 / RMS, has none. x is in one piece.
Tensor undefined_gradient(Tape& t, const Node& n) {
  return t.allocate(n.input_shapes[0].with_last(Dim(1)), Dtype::kFp32, "zeros");
}

Tensor input_gradient(Tape& t, const Node& n) {
  return t.allocate(n.input_shapes[0], n.input_dtypes[0], "dX");
}

// _fused_rms_norm_rope_bwd: each block's part of the weight's gradient in fp32, whether the weight learns or not.
void norm_rope_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  constexpr Count kBlocks = 8 * 108;  // _BWD_BLOCKS_PER_SM, of an A100's multiprocessors: a few MB at most
  const Tensor zeros = undefined_gradient(t, n), dy = contiguous(g[0]);
  const Count rows = n.input_shapes[0].numel() / n.input_shapes[0].size(-1);
  const Count each = (rows + kBlocks - 1) / std::min(kBlocks, rows);
  r[0] = input_gradient(t, n);
  const Shape weight = n.input_shapes[1];
  const Tensor partial = t.allocate(Shape{Dim((rows + each - 1) / each), weight.dim(0)}, Dtype::kFp32, "dW");
  r[1] = t.allocate(weight, Dtype::kFp32, "sum");
  if (n.input_dtypes[1] != Dtype::kFp32) r[1] = t.allocate(weight, n.input_dtypes[1], "to");
}

void norm_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor zeros = undefined_gradient(t, n), dy = contiguous(g[0]);
  r[0] = input_gradient(t, n);
}

Tensor run(Node* n, const Tensor& x, std::initializer_list<const Tensor*> kept) {
  Tape& t = x.tape();
  Tensor out = t.allocate(x.shape(), x.dtype(), "fused_rms_norm");
  const Tensor rstd = t.allocate(x.shape().with_last(Dim(1)), Dtype::kFp32, "fused_rms_norm: 1 / RMS");
  t.attach(n, out);
  t.save(n, x);
  for (const Tensor* one : kept) t.save(n, *one);
  t.save(n, rstd);
  return out;
}

// The tables, of one row or of the batch's, as the kernel reads them: a row for each of x's.
Tensor rows_of(const Tensor& table, const Tensor& x) {
  return contiguous(expand(table, Shape{x.dim(0), x.dim(1), table.dim(-1)}));
}

}  // namespace

Tensor norm_rope(Tensor x_in, Tensor weight_in, const Tensor& cos, const Tensor& sin) {
  const Tensor x = contiguous(std::move(x_in)), weight = std::move(weight_in);
  const Tensor cosines = rows_of(cos, x), sines = rows_of(sin, x);
  Node* const n = x.tape().record("fused_rms_norm_rope", norm_rope_backward, {&x, &weight});
  return run(n, x, {&weight, &cosines, &sines});
}

Tensor norm_without_weight(Tensor x_in) {
  const Tensor x = contiguous(std::move(x_in));
  Node* const n = x.tape().record("fused_rms_norm_noscale", norm_backward, {&x});
  return run(n, x, {});
}

}  // namespace tidemark
