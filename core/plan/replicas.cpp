#include "core/plan/replicas.hpp"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

constexpr const char* kFunctions = "torch 2.14 nn/parallel/_functions.py: Gather, Broadcast, ReduceAddCoalesced";

}  // namespace

// comm.scatter: the first GPU's rows are a view of the batch, which lies there.
void Replicas::scatter(const std::vector<Tensor>& batch) {
  for (const Tensor& rows : batch) {
    if (rows.defined()) batch_.push_back(tape_.allocate(elements(rows.numel() * (gpus_ - 1)), rows.dtype(), "rows"));
  }
}

// Gather.forward: what each GPU returned lives until all is joined.
void Replicas::join(std::vector<Tensor>& outputs) {
  const Scope in(tape_, "DataParallel", kFunctions);
  std::vector<Tensor> joined;
  for (const Tensor& output : outputs) {
    if (!output.defined()) continue;
    joined.push_back(tape_.allocate(elements(output.numel() * gpus_), output.dtype(), "gather"));
  }
  outputs = std::move(joined);
}

void Replicas::take_gradient(std::int32_t parameter, Tensor grad) {
  const auto p = static_cast<std::size_t>(parameter);
  if (gradients_.size() <= p) gradients_.resize(p + 1);
  if (!gradients_[p].defined()) gradients_[p] = std::move(grad);
}

template <typename Visit>
void Replicas::for_each(Visit visit) {
  std::vector<Parameter>& parameters = tape_.parameters();
  gradients_.resize(parameters.size());
  std::int16_t last = -1;
  for (const Parameter& p : parameters) last = std::max(last, p.instance);
  for (std::int16_t instance = -1; instance <= last; ++instance) {
    tape_.begin_segment(Phase::kBackward, instance);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].instance == instance) visit(parameters[i], gradients_[i]);
    }
  }
  tape_.begin_segment(Phase::kBackward, -1);
}

// BroadcastBackward (materialize_grads: zeros where a replica's parameter has no gradient), ReduceAddCoalesced.forward
// with NCCL: a new tensor for each; AccumulateGrad.
void Replicas::after_backward() {
  const Scope in(tape_, "DataParallel", kFunctions);
  const auto like = [this](const Parameter& p, const char* name) {
    return p.storage_bytes == p.shape.numel() * size_of(p.dtype) ? tape_.allocate(p.shape, p.dtype, name) : Tensor();
  };
  for_each([&](const Parameter& p, Tensor& grad) {
    if (!grad.defined()) grad = like(p, "zeros");
  });
  std::vector<Tensor> sums;
  for_each([&](const Parameter& p, Tensor&) { sums.push_back(like(p, "reduce")); });
  for_each([](const Parameter&, Tensor& grad) { grad.reset(); });
  std::size_t i = 0;
  for_each([&](Parameter& p, Tensor&) {
    const Tensor sum = std::move(sums[i++]);
    if (!p.reached || p.grad.defined()) return;
    p.grad = sum;
    tape_.set_category(p.grad, Category::kGradients);
  });
  batch_.clear();
}

}  // namespace tidemark
