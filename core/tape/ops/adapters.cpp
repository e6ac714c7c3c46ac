// What PEFT's adapters need beside other models' operations.
#include "core/tape/adapter_ops.hpp"

namespace tidemark {
namespace {

// peft 0.18 tuners/loha/layer.py HadaWeight.backward, outside autocast. Saved: w1a, w1b, w2a, w2b.
void hadamard_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor scaled = t.allocate(g[0].shape(), g[0].dtype(), "mul");
  Tensor temporary;
  for (const int i : {0, 2}) {
    const Dtype dtype = n.input_dtypes[static_cast<std::size_t>(i)];
    {
      const Tensor other = t.allocate(g[0].shape(), dtype, "mm");
      temporary = t.allocate(g[0].shape(), promote(scaled, other), "mul");
    }
    for (const int k : {i, i + 1}) {
      const auto at = static_cast<std::size_t>(k);
      r[k] = t.allocate(n.input_shapes[at], n.input_dtypes[at], "mm");
      t.set_category(r[k], Category::kGradients);
    }
  }
}

// index_put: the values' gradient is a gather.
void upper_triangle_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "index");
}

// add: maybe_multiply(grad, alpha)
void add_scaled_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  if (n.needs(1)) r[1] = t.allocate(g[0].shape(), g[0].dtype(), "mul");
  if (n.needs(0)) r[0] = g[0];
}

// FunctionsManual.cpp linalg_solve_backward: gB by another solver, gA by a product with the result.
void solve_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Shape& shape = n.input_shapes[0];
  r[1] = t.allocate(shape, g[0].dtype(), "linalg_lu_solve");
  {
    const Tensor product = t.allocate(shape, g[0].dtype(), "bmm");
    r[0] = t.allocate(shape, g[0].dtype(), "neg");
  }
}

// block_diag_backward: a slice of the gradient for each block.
void block_diagonal_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "stack");
}

}  // namespace

Tensor hadamard_weight(Tensor w1a_in, Tensor w1b_in, Tensor w2a_in, Tensor w2b_in) {
  const Tensor w1a = std::move(w1a_in), w1b = std::move(w1b_in), w2a = std::move(w2a_in), w2b = std::move(w2b_in);
  Tape& t = w1a.tape();
  Node* n = t.record("HadaWeight", hadamard_backward, {&w1a, &w1b, &w2a, &w2b});
  for (const Tensor* w : {&w1a, &w1b, &w2a, &w2b}) t.save(n, *w);
  const Shape shape{w1a.dim(0), w1b.dim(1)};
  Tensor product;
  {
    Tensor lower = lower_precision(w1b);
    lower = lower_precision(w1a);
    const Tensor first = t.allocate(shape, lower.dtype(), "mm");
    lower = lower_precision(w2b);
    lower = lower_precision(w2a);
    const Tensor second = t.allocate(shape, lower.dtype(), "mm");
    product = t.allocate(shape, first.dtype(), "mul");
  }
  Tensor out = t.allocate(shape, product.dtype(), "mul");
  t.attach(n, out);
  return out;
}

Tensor upper_triangle(Tensor rows_in, Dim size) {
  const Tensor rows = std::move(rows_in);
  Tape& t = rows.tape();
  Tensor out = t.allocate(Shape{rows.dim(0), size, size}, rows.dtype(), "zeros");
  Node* n = t.record("index_put_", upper_triangle_backward, {&rows});
  t.attach(n, out);
  return out;
}

Tensor add_scaled_in_place(Tensor a_in, Tensor b_in) {
  Tensor a = std::move(a_in);
  const Tensor b = std::move(b_in);
  Node* n = a.tape().record("add_", add_scaled_backward, {&a, &b});
  a.leave_graph();
  a.tape().attach(n, a);
  return a;
}

Tensor solve(Tensor left_in, Tensor right_in) {
  const Tensor left = std::move(left_in), right = std::move(right_in);
  Tape& t = left.tape();
  Node* n = t.record("linalg_solve_ex", solve_backward, {&left, &right});
  Tensor out = t.allocate(left.shape(), left.dtype(), "linalg_solve_ex");
  const Tensor factors = t.allocate(left.shape(), left.dtype(), "linalg_lu_factor");
  const Tensor pivots = t.allocate(Shape{left.dim(0), left.dim(1)}, Dtype::kInt32, "linalg_lu_factor");
  const Tensor info = t.allocate(Shape{left.dim(0)}, Dtype::kInt32, "linalg_lu_factor");
  t.attach(n, out);
  t.save(n, left);
  t.save(n, out);
  t.save(n, factors);
  t.save(n, pivots);
  return out;
}

Tensor block_diagonal(Tensor blocks_in, Dim width) {
  const Tensor blocks = std::move(blocks_in);
  Tape& t = blocks.tape();
  Node* n = t.record("block_diag", block_diagonal_backward, {&blocks});
  Tensor out = t.allocate(Shape{width, width}, blocks.dtype(), "block_diag");
  t.attach(n, out);
  return out;
}

}  // namespace tidemark
