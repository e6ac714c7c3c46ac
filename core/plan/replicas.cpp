#include "core/plan/replicas.hpp"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

constexpr const char* kFunctions = "torch 2.14 nn/parallel/_functions.py: Gather, Broadcast, ReduceAddCoalesced";

bool is_whole(const Parameter& p) {
  return p.storage_bytes == p.shape.numel() * size_of(p.dtype);
}

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

// torch/_utils.py _take_tensors: which parameters of a layer are added up in one piece, each dtype apart; a piece ends
// before it gets larger than the limit.
std::vector<std::vector<std::size_t>> Replicas::pieces_of(std::int16_t instance) const {
  constexpr Bytes kLimit = 10485760;  // nn/parallel/comm.py reduce_add_coalesced: buffer_size
  struct Open {
    Dtype dtype;
    std::size_t piece;
    Bytes size;
  };
  std::vector<Open> open;
  std::vector<std::vector<std::size_t>> pieces;
  const std::vector<Parameter>& parameters = tape_.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    if (p.instance != instance || !is_whole(p)) continue;
    const Bytes size = p.shape.numel() * size_of(p.dtype);
    auto at = std::find_if(open.begin(), open.end(), [&](const Open& one) { return one.dtype == p.dtype; });
    if (at == open.end()) at = open.insert(open.end(), {p.dtype, pieces.size(), kLimit});
    if (at->size + size > kLimit) {
      *at = {p.dtype, pieces.size(), 0};
      pieces.emplace_back();
    }
    pieces[at->piece].push_back(i);
    at->size += size;
  }
  return pieces;
}

// reduce_add_coalesced with NCCL: the piece is copied together, its sum is a tensor whose views become the gradients,
// so that one of them holds it all, also the zeros of what is frozen.
void Replicas::add_up(const std::vector<std::size_t>& piece, std::vector<Tensor>& sums) {
  const std::vector<Parameter>& parameters = tape_.parameters();
  const Dtype dtype = parameters[piece.front()].dtype;
  Count count = 0;
  for (const std::size_t i : piece) count += parameters[i].shape.numel();
  Tensor copy;
  if (piece.size() > 1) copy = tape_.allocate(elements(count), dtype, "cat");
  const Tensor sum = tape_.allocate(elements(count), dtype, "reduce");
  for (const std::size_t i : piece) {
    sums[i] = tape_.on_storage(
        {.shape = parameters[i].shape, .dtype = dtype, .is_view = true, .storage = sum.storage(), .tape = &tape_});
  }
}

// BroadcastBackward (materialize_grads: zeros where a replica's parameter has no gradient), ReduceAddCoalesced.forward;
// AccumulateGrad.
void Replicas::after_backward() {
  const Scope in(tape_, "DataParallel", kFunctions);
  for_each([this](const Parameter& p, Tensor& grad) {
    if (!grad.defined() && is_whole(p)) grad = tape_.allocate(p.shape, p.dtype, "zeros");
  });
  std::vector<Tensor> sums(tape_.parameters().size());
  std::int16_t last = -2;
  for_each([&](const Parameter& p, Tensor&) {
    if (p.instance == std::exchange(last, p.instance)) return;
    for (const std::vector<std::size_t>& piece : pieces_of(p.instance)) add_up(piece, sums);
  });
  for_each([](const Parameter&, Tensor& grad) { grad.reset(); });
  for_each([&](Parameter& p, Tensor&) {
    const Tensor sum = std::move(sums[static_cast<std::size_t>(&p - tape_.parameters().data())]);
    if (!p.reached || p.grad.defined()) return;
    p.grad = sum;
    tape_.set_category(p.grad, Category::kGradients);
  });
  batch_.clear();
}

}  // namespace tidemark
