#include "core/plan/tensor_shards.hpp"

#include <utility>
#include <vector>

namespace tidemark {

Tensor in_layout_of(Tape& tape, const Parameter& p, const TensorParallel& how, Tensor grad) {
  const Count part = p.shape.numel();
  const bool is_sum = how.sequence && p.whole == part;
  if (!is_sum && grad.numel() == part) return grad;
  return tape.allocate(p.shape, grad.dtype(), is_sum ? "all_reduce" : "clone");
}

void TensorShards::take_gradient(std::int32_t parameter, Tensor grad) {
  Parameter& p = tape_.parameters()[static_cast<std::size_t>(parameter)];
  if (p.grad.defined()) return;  // `grad += new`
  tape_.set_category(grad, Category::kGradients);
  p.grad = std::move(grad);
}

// The optimizer's operations take lists: for each that works on gradients all of them are brought to their layout, and
// go behind it. What else it makes comes later.
void TensorShards::step(OptimizerRun& optimizer) {
  std::vector<Tensor> copies;
  optimizer.for_each_trained([&](const Parameter& p) {
    const Category before = tape_.default_category();
    tape_.set_default_category(Category::kCommunication);
    copies.push_back(in_layout_of(tape_, p, job_.tensor, p.grad));
    tape_.set_default_category(before);
  });
  std::size_t i = 0;
  optimizer.for_each_trained([&](const Parameter&) { copies[i++].reset(); });
  optimizer.step();
}

}  // namespace tidemark
