// Every other element, and putting two tensors back together element by element: rotations that pair neighbours.
#include "core/tape/ops.hpp"

namespace tidemark {
namespace {

// FunctionsManual.cpp slice_backward: zeros of the whole, then a copy into the part.
void step_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = zeros(t, n.input_shapes[0], g[0].dtype(), "slice_backward");
}

// unbind: views of the gradient, each with every other element.
void stack_backward(Tape&, Node& n, Tensor* g, Tensor* r) {
  for (int i = 0; i < n.input_count; ++i) {
    if (n.needs(i)) r[i] = select(g[0], -1);
  }
}

}  // namespace

Tensor every_other(Tensor x_in, Count start) {
  const Tensor x = std::move(x_in);
  Node* n = x.tape().record("slice", step_backward, {&x});
  Tensor out = x;
  out.leave_graph();
  Shape& s = out.change().shape;
  const int last = s.rank - 1;
  out.change().offset += start * s.strides[last];
  s.dims[last] = Dim(s.dims[last].n() / 2);
  s.strides[last] *= 2;
  x.tape().attach(n, out);
  return out;
}

Tensor stack_last(Tensor a_in, Tensor b_in) {
  const Tensor a = std::move(a_in);
  const Tensor b = std::move(b_in);
  Node* n = a.tape().record("stack", stack_backward, {&a, &b});
  Shape s = a.shape();
  s.dims[s.rank++] = Dim(2);
  s.make_contiguous();
  Tensor out = a.tape().allocate(s, promote(a, b), "stack");
  a.tape().attach(n, out);
  return out;
}

}  // namespace tidemark
