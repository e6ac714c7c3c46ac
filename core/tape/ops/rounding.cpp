#include "core/tape/rounding_ops.hpp"

#include "core/tape/ops/unary.hpp"

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

Tensor round(Tensor x) {
  return unary(std::move(x), "round", round_backward, false, false);
}

Tensor abs(Tensor x) {
  return unary(std::move(x), "abs", abs_backward, true, false);
}

Tensor reciprocal(Tensor x) {
  const Tensor argument = std::move(x);
  const bool widens = argument.tape().autocast().has_value();
  return unary(widens ? to(argument, Dtype::kFp32) : argument, "reciprocal", reciprocal_backward, false, true);
}

}  // namespace tidemark
