// The operations of state-space layers' torch paths.
#include "core/tape/scan_ops.hpp"

#include "core/tape/ops/unary.hpp"

namespace tidemark {
namespace {

// One kernel from (grad, saved) to the input's gradient.
void fused_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = t.allocate(elementwise_shape({&g[0], &n.saved_tensor(0)}), g[0].dtype(), n.name);
}

void copy_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = t.allocate(elementwise_shape({&g[0]}), g[0].dtype(), n.name);
}

// FunctionsManual.cpp cumsum_backward: grad.flip(dim).cumsum(dim).flip(dim)
void cumsum_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  Tensor flipped = t.allocate(elementwise_shape({&g[0]}), g[0].dtype(), "flip");
  flipped = t.allocate(flipped.shape(), flipped.dtype(), n.name);
  r[0] = t.allocate(flipped.shape(), flipped.dtype(), "flip");
}

// constant_pad_nd_backward pads by a negative amount: a narrow view, cloned.
void pad_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  Shape s = n.input_shapes[0];
  s.make_contiguous();
  r[0] = t.allocate(s, g[0].dtype(), n.name);
}

// autograd/functions/tensor.cpp CopySlices::apply: a copy of the whole gradient, a clone of the part, for which
// CopyBackwards makes zeros where what was there before needs a gradient.
void copy_slices(Tape& t, Node& n, Tensor* g, Tensor* r) {
  Shape whole = n.input_shapes[0], part = n.input_shapes[1];
  part.make_contiguous();
  Tensor result = t.allocate(whole, g[0].dtype(), n.name);
  r[1] = t.allocate(part, g[0].dtype(), "clone");
  if (!n.needs(0)) return;
  const Tensor none = t.allocate(part, g[0].dtype(), "zeros_like");
  r[0] = std::move(result);
}

// derivatives.yaml, maximum: at::where(self == other, grad / 2, grad).masked_fill_(self < other, 0), each for itself;
// what the compiled rule computes first is the last of its arguments (seen in records of XGLM).
void maximum_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  for (int i = 0; i < 2; ++i) {
    if (!n.needs(i)) continue;
    const Shape shape = elementwise_shape({&g[0]});
    const Tensor less = t.allocate(shape, Dtype::kBool, "lt");
    const Tensor half = t.allocate(shape, g[0].dtype(), "div");
    const Tensor equal = t.allocate(shape, Dtype::kBool, "eq");
    r[i] = t.allocate(shape, g[0].dtype(), n.name);
  }
}

// derivatives.yaml, erf: 2.0 / sqrt(M_PI) * exp(-(self.pow(2))) * grad; what an expression makes lives to its end.
void erf_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor& self = n.saved_tensor(0);
  const Shape shape = elementwise_shape({&self});
  const Tensor square = t.allocate(shape, self.dtype(), n.name), negative = t.allocate(shape, self.dtype(), n.name);
  const Tensor power = t.allocate(shape, self.dtype(), n.name), scaled = t.allocate(shape, self.dtype(), n.name);
  r[0] = t.allocate(elementwise_shape({&g[0], &self}), promote(g[0], self), n.name);
}

// Its kernel is column-major.
Shape column_major(Shape s) {
  std::swap(s.dims[s.rank - 1], s.dims[s.rank - 2]);
  s.make_contiguous();
  std::swap(s.dims[s.rank - 1], s.dims[s.rank - 2]);
  std::swap(s.strides[s.rank - 1], s.strides[s.rank - 2]);
  return s;
}

// torch 2.14 csrc/autograd/FunctionsManual.cpp: linalg_solve_triangular_backward.
void solve_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[1] = t.allocate(column_major(n.input_shapes[1]), g[0].dtype(), n.name);
  if (!n.needs(0)) return;
  Tensor product = t.allocate(n.input_shapes[0], g[0].dtype(), "matmul");
  Tensor negative = t.allocate(n.input_shapes[0], g[0].dtype(), "neg");
  product.reset();
  r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "tril");
}

Tensor wide(Tensor x) {
  return x.tape().autocast() && is_floating(x.dtype()) ? to(std::move(x), Dtype::kFp32) : x;
}

}  // namespace

Tensor exp(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return unary(wide(x), "exp", fused_backward, false, true);
}

Tensor log(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return unary(wide(x), "log", fused_backward, true, false);
}

Tensor softplus(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return unary(wide(x), "softplus", fused_backward, true, false);
}

Tensor erf(Tensor x) {
  return unary(std::move(x), "erf", erf_backward, true, false);
}

Tensor tril(Tensor x) {
  return unary(std::move(x), "tril", copy_backward, false, false);
}

Tensor solve_triangular(const Tensor& a, const Tensor& b) {
  Tape& t = a.tape();
  Node* n = t.record("linalg_solve_triangular", solve_backward, {&a, &b});
  t.save(n, a);
  Tensor out = t.allocate(column_major(b.shape()), b.dtype(), "linalg_solve_triangular");
  t.attach(n, out);
  t.save(n, out);
  return out;
}

Tensor cumsum(Tensor x) {
  return unary(std::move(x), "cumsum", cumsum_backward, false, false);
}

Tensor pad(Tensor x_in, int dim, Count extra) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("constant_pad_nd", pad_backward, {&x});
  Shape s = elementwise_shape({&x});  // by nothing it is a clone
  if (extra > 0) {
    Dim& d = s.dims[dim < 0 ? s.rank + dim : dim];
    d = Dim(d.n() + extra);
    s.make_contiguous();
  }
  Tensor out = t.allocate(s, x.dtype(), "constant_pad_nd");
  t.attach(n, out);
  return out;
}

Tensor copy_into(Tensor x_in, const Shape& part, Tensor value_in) {
  Tensor x = std::move(x_in);
  Tensor value = std::move(value_in);
  if (!value.shape().same_sizes(part)) value = expand(std::move(value), part);
  Node* n = x.tape().record("CopySlices", copy_slices, {&x, &value});
  x.leave_graph();
  x.tape().attach(n, x);
  return x;
}

Tensor maximum(Tensor a_in, Tensor b_in) {
  const Tensor a = std::move(a_in), b = std::move(b_in);
  Tape& t = a.tape();
  Node* n = t.record("maximum", maximum_backward, {&a, &b});
  t.save(n, a);
  t.save(n, b);
  Tensor out = t.allocate(elementwise_shape({&a, &b}), promote(a, b), "maximum");
  t.attach(n, out);
  return out;
}

Tensor repeat_heads(Tensor x_in, Count times) {
  const Tensor x = std::move(x_in);
  if (times == 1) return x;
  const Dim heads = x.dim(2), width = x.dim(3);
  Tensor wide = expand(unsqueeze(x, 3), Shape{x.dim(0), x.dim(1), heads, Dim(times), width});
  wide = contiguous(std::move(wide));
  return view(std::move(wide), Shape{x.dim(0), x.dim(1), Dim(heads.n() * times), width});
}

}  // namespace tidemark
