#include "core/plan/flat_units.hpp"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

constexpr const char* kFlat = "torch 2.14 distributed/fsdp/_flat_param.py: FlatParamHandle";
constexpr const char* kPostBackward = "torch 2.14 distributed/fsdp/_runtime_utils.py: _post_backward_hook";

// The streams of _init_streams on which something is allocated.
constexpr Stream kUnshard = 1;
constexpr Stream kPreUnshard = 2;
constexpr Stream kAfterBackward = 3;

constexpr Bytes kAlignment = 16;  // _get_aligned_numel

Count up_to_multiple(Count count, Count of) {
  return (count + of - 1) / of * of;
}

}  // namespace

FlatUnits::FlatUnits(Tape& tape, const TrainingJob& job)
    : tape_(tape),
      mesh_(job.data_parallel),
      fsdp_(job.data_parallel.fsdp),
      how_(mixed_precision(job)),
      own_(job.recipe.weights) {}

// -- who holds what -------------------------------------------------------------------------------------------------

void FlatUnits::declare(Parameter& p) {
  p.dtype = gathered_dtype();
  p.storage_bytes = -1;  // it is a view of its unit's flat tensor
  gradients_.emplace_back();
}

// _init_flat_param_and_metadata: with use_orig_params each parameter begins at a multiple of 16 bytes.
void FlatUnits::collect() {
  const Count align = fsdp_.use_orig_params ? kAlignment / size_of(own_) : 1;
  const std::vector<Parameter>& parameters = tape_.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto at = static_cast<std::size_t>(parameters[i].instance + 1);
    if (at >= units_.size()) units_.resize(at + 1);
    Unit& unit = units_[at];
    unit.whole = up_to_multiple(unit.whole, align) + parameters[i].shape.numel();
    unit.parameters.push_back(static_cast<std::int32_t>(i));
  }
  const Scope in(tape_, "FullyShardedDataParallel", kFlat);
  for (std::size_t i = 0; i < units_.size(); ++i) {
    Unit& unit = units_[i];
    unit.part = (unit.whole + mesh_.shards() - 1) / mesh_.shards();
    if (fsdp_.use_orig_params) unit.whole = unit.part * mesh_.shards();
    tape_.use_parameters_of(static_cast<std::int16_t>(i) - 1);
    // Behind what buffers the layer has already: those are found again, one by one.
    const std::size_t known = tape_.buffers().size();
    while (tape_.buffers().size() == known) {
      tape_.buffer("flat parameter", unit.part * size_of(own_), Category::kWeights);
    }
  }
  tape_.resume_parameters_outside_layers();
}

void FlatUnits::begin_micro_step(bool last) {
  reduces_ = last || !fsdp_.no_sync;
  for (Unit& unit : units_) unit.in_backward = unit.done = false;
}

// What the optimizer sees: with use_orig_params those pieces of parameters that lie in this GPU's part, the first.
void FlatUnits::end_micro_steps() {
  const Count align = fsdp_.use_orig_params ? kAlignment / size_of(own_) : 1;
  for (Unit& unit : units_) {
    Count at = 0;
    for (const std::int32_t index : unit.parameters) {
      Parameter& p = tape_.parameters()[static_cast<std::size_t>(index)];
      p.whole = p.shape.numel();
      at = up_to_multiple(at, align);
      Count piece = std::clamp<Count>(unit.part - at, 0, p.whole);
      if (!fsdp_.use_orig_params) piece = at == 0 ? unit.part : 0;
      at += p.whole;
      p.shape = elements(piece);
      p.dtype = own_;
      p.reached = p.reached && piece > 0;
      if (p.reached) p.grad = unit.reduced;
    }
    unit.reduced.reset();
  }
}

// -- gathering ------------------------------------------------------------------------------------------------------

// pre_unshard, unshard, post_unshard: a cast of this GPU's part, then the whole.
void FlatUnits::unshard(Unit& unit) {
  if (unit.gathered.defined() || unit.parameters.empty()) return;
  const Scope in(tape_, "all-gather", kFlat);
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kCommunication);
  Tensor cast;
  if (gathered_dtype() != own_) {
    tape_.set_stream(kPreUnshard);
    cast = tape_.allocate(elements(unit.part), gathered_dtype(), "_mp_shard");
  }
  tape_.set_stream(kUnshard);
  unit.gathered = tape_.allocate(elements(unit.part * mesh_.shards()), gathered_dtype(), "_full_param_padded");
  cast.reset();
  tape_.set_stream(kMainStream);
  tape_.set_default_category(before);
}

void FlatUnits::enter_model() {
  unshard(units_.front());
  if (fsdp_.forward_prefetch && units_.size() > 1) unshard(units_[1]);
}

void FlatUnits::enter_layer(std::int16_t instance, bool) {
  unshard(unit_of(instance));
  const auto next = static_cast<std::size_t>(instance) + 2;
  if (fsdp_.forward_prefetch && next < units_.size()) unshard(units_[next]);
}

// _post_forward_reshard: the root stays.
void FlatUnits::leave_layer(std::int16_t instance) {
  if (!fsdp_.keeps_gathered) unit_of(instance).gathered.reset();
}

// -- backward -------------------------------------------------------------------------------------------------------

// _pre_backward_hook; what comes next in backward is the unit before it in forward, for the root the last layer.
void FlatUnits::pre_backward(Unit& unit) {
  if (unit.in_backward) return;
  unit.in_backward = true;
  unshard(unit);
  if (fsdp_.backward_prefetch == BackwardPrefetch::kPre) prefetch(unit);
}

void FlatUnits::prefetch(const Unit& unit) {
  const auto at = static_cast<std::size_t>(&unit - units_.data());
  if (at == 0) {
    unshard(units_.back());
  } else if (at > 1) {
    unshard(units_[at - 1]);
  }
}

void FlatUnits::before_backward() {
  pre_backward(units_.front());
}

void FlatUnits::backward_enters(std::int16_t instance) {
  pre_backward(unit_of(instance));
}

// The node that splits the flat tensor into parameters runs behind those of the unit. With forward_prefetch it was made
// before the layer in front of it ran, and so runs behind that one's nodes.
void FlatUnits::backward_leaves(std::int16_t instance) {
  if (instance < 0) return;
  const auto at = static_cast<std::size_t>(instance) + 1;
  if (!fsdp_.forward_prefetch) return post_backward(units_[at]);
  if (at + 1 < units_.size()) post_backward(units_[at + 1]);
}

void FlatUnits::take_gradient(std::int32_t parameter, Tensor grad) {
  Tensor& known = gradient_of(parameter);
  if (!known.defined()) known = std::move(grad);
}

// split_with_sizes_backward puts the gradients together; AccumulateGrad's hook lets go of the weights and reduces.
void FlatUnits::post_backward(Unit& unit) {
  if (unit.done || unit.parameters.empty()) return;
  unit.done = true;
  const Scope in(tape_, "whole gradient", kPostBackward);
  Tensor grad = tape_.allocate(elements(unit.whole), gathered_dtype(), "cat");
  tape_.set_category(grad, Category::kGradients);
  for (const std::int32_t p : unit.parameters) gradient_of(p).reset();
  if (unit.accumulated.defined()) grad = std::move(unit.accumulated);  // added to it
  if (reduces_ || !fsdp_.keeps_gathered) unit.gathered.reset();
  if (fsdp_.backward_prefetch == BackwardPrefetch::kPost) prefetch(unit);
  if (reduces_) {
    reduce(unit, std::move(grad));
  } else {
    unit.accumulated = std::move(grad);
  }
}

void FlatUnits::reduce(Unit& unit, Tensor computed) {
  const Tensor grad = std::move(computed);
  const Dtype dtype = how_.reduced.value_or(grad.dtype());
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kCommunication);
  tape_.set_stream(kAfterBackward);
  Tensor cast, padded;
  if (grad.dtype() != dtype) cast = tape_.allocate(elements(unit.whole), dtype, "_to_copy");
  if (unit.whole < unit.part * mesh_.shards()) {
    padded = tape_.allocate(elements(unit.part * mesh_.shards()), dtype, "pad");
  }
  Tensor part = tape_.allocate(elements(unit.part), dtype, "empty_like");
  if (dtype != own_) part = tape_.allocate(elements(unit.part), own_, "_to_copy");
  tape_.set_category(part, Category::kGradients);
  if (!unit.reduced.defined()) unit.reduced = std::move(part);  // else added to it
  tape_.set_stream(kMainStream);
  tape_.set_default_category(before);
}

void FlatUnits::after_backward() {
  for (std::size_t i = 1; i < units_.size(); ++i) {
    if (units_[i].done) continue;
    tape_.begin_segment(Phase::kBackward, static_cast<std::int16_t>(i - 1));
    post_backward(units_[i]);
  }
  tape_.begin_segment(Phase::kBackward, -1);
  post_backward(units_.front());
}

}  // namespace tidemark
