// Losses on logits and pixels as they are; the likelihoods are in lookups.cpp.
#include "core/tape/ops.hpp"

namespace tidemark {
namespace {

// derivatives.yaml: mse_loss_backward(grad, self, target), one kernel; l1_loss: grad * (self - target).sgn() comes as
// one tensor of that size after two.
void difference_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], n.name);
}

void l1_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  const Tensor& self = n.saved_tensor(0);
  Tensor difference = t.allocate(elementwise_shape({&self}), self.dtype(), "l1_loss_backward");
  Tensor sign = t.allocate(elementwise_shape({&self}), self.dtype(), "l1_loss_backward");
  difference.reset();
  r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "l1_loss_backward");
}

// derivatives.yaml: (sigmoid(self) - target) * grad, scaled by the mean.
void bce_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  const Tensor& self = n.saved_tensor(0);
  Tensor sigmoid = t.allocate(elementwise_shape({&self}), self.dtype(), "binary_cross_entropy_with_logits_backward");
  r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "binary_cross_entropy_with_logits_backward");
}

// Expanded, then divided by the count: one tensor of the input's size.
void mean_all_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "mean_backward");
}

// ATen/autocast_mode.h: losses are computed in fp32.
Tensor for_loss(Tensor x) {
  if (x.tape().autocast()) x = to(std::move(x), Dtype::kFp32);
  return x;
}

}  // namespace

Tensor mse_loss(Tensor x_in, Tensor target_in) {
  const Tensor x = for_loss(std::move(x_in));
  const Tensor target = std::move(target_in);
  Tape& t = x.tape();
  Node* n = t.record("mse_loss", difference_backward, {&x});
  t.save(n, x);
  t.save(n, target);
  // ATen/native/Loss.cpp mse_loss: the squares, then their mean.
  Tensor squares = t.allocate(elementwise_shape({&x}), promote(x, target), "mse_loss");
  Tensor out = t.allocate(Shape{}, squares.dtype(), "mse_loss");
  t.attach(n, out);
  return out;
}

Tensor l1_differences(Tensor x_in, Tensor target_in) {
  const Tensor x = for_loss(std::move(x_in));
  const Tensor target = for_loss(std::move(target_in));
  Tape& t = x.tape();
  Node* n = t.record("l1_loss", l1_backward, {&x});
  t.save(n, x);
  t.save(n, target);
  // ATen/native/Loss.cpp l1_loss: (input - target).abs()
  Tensor difference = t.allocate(elementwise_shape({&x, &target}), promote(x, target), "l1_loss");
  Tensor out = t.allocate(difference.shape(), difference.dtype(), "l1_loss");
  t.attach(n, out);
  return out;
}

Tensor binary_cross_entropy_with_logits(Tensor x_in, Tensor target_in) {
  const Tensor x = for_loss(std::move(x_in));
  const Tensor target = for_loss(std::move(target_in));
  Tape& t = x.tape();
  Node* n = t.record("binary_cross_entropy_with_logits", bce_backward, {&x});
  t.save(n, x);
  t.save(n, target);
  // ATen/native/Loss.cpp: (1 - target).mul_(input).sub_(log_sigmoid(input)), then the mean.
  Tensor loss = t.allocate(elementwise_shape({&x}), promote(x, target), "binary_cross_entropy_with_logits");
  Tensor log_sigmoid = t.allocate(elementwise_shape({&x}), x.dtype(), "log_sigmoid");
  Tensor out = t.allocate(Shape{}, loss.dtype(), "binary_cross_entropy_with_logits");
  t.attach(n, out);
  return out;
}

Tensor mean_all(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("mean", mean_all_backward, {&x});
  Tensor out = t.allocate(Shape{}, x.dtype(), "mean");
  t.attach(n, out);
  return out;
}

}  // namespace tidemark
