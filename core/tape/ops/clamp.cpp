// clamp and its in-place form.
#include "core/tape/ops.hpp"

namespace tidemark {
namespace {

// FunctionsManual.cpp clamp_backward: where((self >= min) & (self <= max), grad, 0).
void clamp_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor& self = n.saved_tensor(0);
  const Shape shape = elementwise_shape({&self});
  Tensor above = t.allocate(shape, Dtype::kBool, "clamp_backward");
  Tensor below = t.allocate(shape, Dtype::kBool, "clamp_backward");
  below.reset();  // logical_and_ works in place
  r[0] = t.allocate(elementwise_shape({&g[0]}), g[0].dtype(), "clamp_backward");
}

}  // namespace

Tensor clamp(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Node* n = x.tape().record("clamp", clamp_backward, {&x});
  x.tape().save(n, x);
  Tensor out = x.tape().allocate(elementwise_shape({&x}), x.dtype(), "clamp");
  x.tape().attach(n, out);
  return out;
}

Tensor clamp_in_place(Tensor x_in) {
  Tensor x = std::move(x_in);
  // tools/autograd/gen_variable_type.py: an in-place operation whose backward needs `self` keeps a clone of it.
  Node* n = x.tape().record("clamp_", clamp_backward, {&x});
  if (n != nullptr) {
    Tensor original = x.tape().allocate(elementwise_shape({&x}), x.dtype(), "clamp_ (original)");
    x.tape().save(n, original);
  }
  x.leave_graph();
  x.tape().attach(n, x);
  return x;
}

}  // namespace tidemark
