// transformers 5.12 activations.py: XIELUActivation._xielu_python, kernel by kernel.
#include "core/tape/ops.hpp"

namespace tidemark {
namespace {

Tensor fp32_under_autocast(Tensor x) {
  if (!x.tape().autocast()) return x;
  return to(std::move(x), Dtype::kFp32);
}

// softplus_backward: one fused kernel on the saved input.
void softplus_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "softplus_backward");
}

// minimum: where(self == other, grad / 2, grad).masked_fill_(self > other, 0), for the side that needs it.
void minimum_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Shape shape = elementwise_shape({&n.saved_tensor(0)});
  Tensor equal = t.allocate(shape, Dtype::kBool, "minimum_backward");
  Tensor half = t.allocate(elementwise_shape({&g[0]}), g[0].dtype(), "minimum_backward");
  r[0] = t.allocate(elementwise_shape({&g[0]}), g[0].dtype(), "minimum_backward");
  half.reset();
  equal.reset();
  t.scratch({{shape.numel(), "minimum_backward"}});
}

// expm1: grad * (result + 1)
void expm1_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor& result = n.saved_tensor(0);
  Tensor sum = t.allocate(elementwise_shape({&result}), result.dtype(), "expm1_backward");
  r[0] = t.allocate(elementwise_shape({&g[0], &sum}), promote(g[0], sum), "expm1_backward");
}

Tensor softplus(Tensor x_in) {
  const Tensor x = fp32_under_autocast(std::move(x_in));
  Node* n = x.tape().record("softplus", softplus_backward, {&x});
  x.tape().save(n, x);
  Tensor out = x.tape().allocate(x.shape(), x.dtype(), "softplus");
  x.tape().attach(n, out);
  return out;
}

Tensor minimum(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Node* n = x.tape().record("minimum", minimum_backward, {&x});
  x.tape().save(n, x);
  Tensor out = x.tape().allocate(elementwise_shape({&x}), x.dtype(), "minimum");
  x.tape().attach(n, out);
  return out;
}

Tensor expm1(Tensor x_in) {
  const Tensor x = fp32_under_autocast(std::move(x_in));
  Node* n = x.tape().record("expm1", expm1_backward, {&x});
  Tensor out = x.tape().allocate(elementwise_shape({&x}), x.dtype(), "expm1");
  x.tape().attach(n, out);
  x.tape().save(n, out);
  return out;
}

}  // namespace

// beta and eps are numbers on the device that need no gradient: products with them keep nothing of size.
Tensor xielu(Tensor x_in, Tensor alpha_p_in, Tensor alpha_n_in) {
  const Tensor x = std::move(x_in);
  const Tensor alpha_p = softplus(std::move(alpha_p_in));
  Tensor alpha_n = softplus(std::move(alpha_n_in));
  alpha_n = add_scalar(std::move(alpha_n));
  // torch.where's three arguments wait for each other.
  Tensor positive = x.tape().allocate(elementwise_shape({&x}), Dtype::kBool, "gt");
  Tensor above = mul(alpha_p, x);
  above = mul(std::move(above), x);
  {
    Tensor linear_part = mul_scalar(x);
    above = add(std::move(above), std::move(linear_part));
  }
  Tensor below = minimum(x);
  below = expm1(std::move(below));
  below = sub(std::move(below), x);
  below = mul(std::move(below), alpha_n);
  {
    Tensor linear_part = mul_scalar(x);
    below = add(std::move(below), std::move(linear_part));
  }
  return where(std::move(positive), std::move(above), std::move(below));
}

}  // namespace tidemark
