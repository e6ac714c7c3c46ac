#include "core/tape/rounding_ops.hpp"

namespace tidemark {
namespace {

Tensor like(Tape& t, const Tensor& x, const char* op) {
  return t.allocate(elementwise_shape({&x}), x.dtype(), op);
}

// torchao 0.18 quantization/quant_primitives.py: _Round.backward.
void round_backward(Tape&, Node&, Tensor* g, Tensor* r) {
  r[0] = std::move(g[0]);
}

// grad * self.sgn()
void abs_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor sign = like(t, n.saved_tensor(0), "sgn");
  r[0] = like(t, g[0], "abs_backward");
}

// -grad * (result * result).conj()
void reciprocal_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor negated = like(t, g[0], "reciprocal_backward");
  const Tensor squared = like(t, n.saved_tensor(0), "reciprocal_backward");
  r[0] = like(t, g[0], "reciprocal_backward");
}

}  // namespace

Tensor round(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("round", round_backward, {&x});
  Tensor out = like(t, x, "round");
  t.attach(n, out);
  return out;
}

Tensor abs(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("abs", abs_backward, {&x});
  t.save(n, x);
  Tensor out = like(t, x, "abs");
  t.attach(n, out);
  return out;
}

Tensor reciprocal(Tensor x_in) {
  const Tensor argument = std::move(x_in);
  Tape& t = argument.tape();
  const Tensor x = t.autocast() ? to(argument, Dtype::kFp32) : argument;
  Node* n = t.record("reciprocal", reciprocal_backward, {&x});
  Tensor out = like(t, x, "reciprocal");
  t.attach(n, out);
  t.save(n, out);
  return out;
}

}  // namespace tidemark
