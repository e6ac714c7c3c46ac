// Views whose elements overlap, and rows by pairs of indices.
#include "core/tape/window_ops.hpp"

namespace tidemark {
namespace {

constexpr int kOverlaps = 0;

// FunctionsManual.cpp as_strided_backward: zeros for all that the storage has; where elements overlap the gradients are
// added to it by a list of all their places.
void as_strided_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  Shape whole = n.input_shapes[0];
  Tensor storage = t.allocate(whole, g[0].dtype(), "as_strided_backward");
  if (n.attributes[kOverlaps] != 0) {
    const Tensor places = t.allocate(Shape{Dim(whole.numel())}, Dtype::kInt64, "arange");
    const Tensor added = contiguous(detach(g[0]));
    t.allocate(Shape{Dim(g[0].numel())}, Dtype::kInt64, "as_strided_backward (places)");
  }
  storage.change().is_view = true;
  r[0] = std::move(storage);
}

// index_backward: zeros of the input, then index_put_ in place.
void index_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = zeros(t, n.input_shapes[0].contiguous(), g[0].dtype(), "index_backward");
}

}  // namespace

Tensor as_strided(Tensor x_in, const Shape& shape, bool overlaps) {
  const Tensor x = std::move(x_in);
  Tensor out = x;
  out.leave_graph();
  out.change().shape = shape;
  out.change().is_view = true;
  Node* n = x.tape().record("as_strided", as_strided_backward, {&x});
  if (n == nullptr) return out;
  n->attributes[kOverlaps] = overlaps ? 1 : 0;
  x.tape().attach(n, out);
  return out;
}

Tensor index_pairs(Tensor x_in, Tensor indices_in, Dim count) {
  const Tensor x = std::move(x_in), indices = std::move(indices_in);
  Tape& t = x.tape();
  Node* n = t.record("index", index_backward, {&x});
  t.save(n, indices);
  Shape s;
  s.rank = x.shape().rank - 1;
  s.dims[0] = count;
  for (int i = 1; i < s.rank; ++i) s.dims[i] = x.dim(i + 1);
  s.make_contiguous();
  Tensor out = t.allocate(s, x.dtype(), "index");
  t.attach(n, out);
  return out;
}

}  // namespace tidemark
