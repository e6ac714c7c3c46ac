#include "core/plan/flat_units.hpp"

#include <algorithm>
#include <utility>

#include "core/job/defaults.hpp"
#include "core/plan/zero_rollout.hpp"

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

FlatUnits::FlatUnits(Tape& tape, const Architecture& architecture, const TrainingJob& job, bool reference)
    : tape_(tape),
      architecture_(architecture),
      mesh_(job.data_parallel),
      fsdp_(job.data_parallel.fsdp),
      how_(mixed_precision(job)),
      job_(job),
      reference_(reference),
      root_layers_(static_cast<std::int16_t>(unwrapped_layers(architecture, job))),
      on_host_(job.offload.parameters),
      decoder_(!reference && job.frees_frozen_units_by_inputs() && architecture.num_decoder_layers > 0
                   ? architecture.num_layers
                   : 0) {}

// -- who holds what -------------------------------------------------------------------------------------------------

Dtype FlatUnits::own_dtype(const Parameter& p) const {
  if (reference_) return job_.recipe.weights;
  if (is_trained(p) && widens_trained(job_)) return Dtype::kFp32;
  return p.is_adapter && fsdp_.trained_leaves ? job_.adapter.dtype : job_.recipe.weights;
}

Count FlatUnits::alignment(const Unit& unit) const {
  return fsdp_.use_orig_params ? kAlignment / size_of(unit.own) : 1;
}

void FlatUnits::declare(Parameter& p) {
  if (sizes_.empty()) first_ = tape_.parameters().size() - 1;
  const Dtype own = own_dtype(p), computes = how_.gathered.value_or(own);
  while (static_cast<std::size_t>(p.instance + 1) >= units_.size()) {
    units_.emplace_back();
    units_.back().instance = last_layer();
  }
  leaf_of_.push_back(declare_leaf(p));
  Unit& unit = unit_with(leaf_of_.back(), p);
  unit.trained = unit.trained || p.requires_grad;
  unit.own = own;
  unit.computes = computes;
  // bitsandbytes' packed weights are elements of quant_storage's dtype, which is the unit's.
  const bool packed = p.dtype == Dtype::kUint8;
  sizes_.push_back(packed ? p.storage_bytes / size_of(own) : p.shape.numel());
  if (!packed) {
    // What is kept in fp32 among others.
    mixes_dtypes_ = mixes_dtypes_ || (p.dtype == Dtype::kFp32 && computes != p.dtype && own != p.dtype);
    p.dtype = computes;
  }
  p.storage_bytes = -1;  // it is a view of its unit's flat tensor
  gradients_.emplace_back();
}

// peft 0.18 utils/other.py fsdp_auto_wrap_policy: modules without children whose weight is trained; of a trained layer
// the bias lies in it, too.
std::int32_t FlatUnits::declare_leaf(const Parameter& p) {
  if (!fsdp_.trained_leaves || !p.requires_grad) return -1;
  const bool goes_on = !p.is_adapter && !leaves_.empty() && leaves_.back().instance == p.instance &&
                       !leaves_.back().of_adapter && leaves_.back().module == p.module;
  if (!goes_on) {
    leaves_.emplace_back();
    leaves_.back().instance = p.instance;
    leaves_.back().module = p.module;
    leaves_.back().of_adapter = p.is_adapter;
  }
  return static_cast<std::int32_t>(leaves_.size() - 1);
}

// FlatParameter requires a gradient where one of its parameters does, and so do all that are views of it.
void FlatUnits::train_together(Unit& unit) {
  if (!unit.trained) return;
  for (const std::int32_t index : unit.parameters) {
    Parameter& p = tape_.parameters()[static_cast<std::size_t>(index)];
    if (p.requires_grad || p.dtype == Dtype::kUint8) continue;
    p.requires_grad = true;
    lent_.push_back(index);
  }
}

// _init_flat_param_and_metadata: with use_orig_params each parameter begins at a multiple of 16 bytes.
void FlatUnits::collect() {
  for (const std::size_t i : flat_order(tape_.parameters(), sizes_.size(), architecture_)) {
    const std::size_t index = first_ + i;
    Unit& unit = unit_with(leaf_of_[i], tape_.parameters()[index]);
    unit.whole = up_to_multiple(unit.whole, alignment(unit)) + sizes_[i];
    unit.parameters.push_back(static_cast<std::int32_t>(index));
  }
  each_unit([this](Unit& unit) { train_together(unit); });
  const Scope in(tape_, "FullyShardedDataParallel", kFlat);
  each_unit([this](Unit& unit) { keep_part(unit); });
  tape_.resume_parameters_outside_layers();
}

void FlatUnits::keep_part(Unit& unit) {
  if (unit.parameters.empty()) return;
  unit.part = (unit.whole + mesh_.shards() - 1) / mesh_.shards();
  if (fsdp_.use_orig_params) unit.whole = unit.part * mesh_.shards();
  tape_.use_parameters_of(unit.instance);
  if (!on_host_) {
    tape_.further_buffer(unit.trained ? "flat parameter" : "frozen flat parameter", unit.part * size_of(unit.own),
                         Category::kWeights);
  }
  // _post_forward_reshard leaves the root, and all of SHARD_GRAD_OP, to a backward that never comes to a reference.
  if (reference_ && (unit.instance < 0 || fsdp_.keeps_gathered)) stay_whole(unit);
}

void FlatUnits::stay_whole(Unit& unit) {
  unit.stays = true;
  unit.gathered.reset();
  tape_.further_buffer("gathered for good", unit.part * mesh_.shards() * size_of(unit.computes),
                       Category::kCommunication);
}

void FlatUnits::begin_micro_step(bool last) {
  reduces_ = last || !fsdp_.no_sync;
  each_unit([](Unit& unit) { unit.in_backward = unit.done = unit.ahead = false; });
}

// What the optimizer sees: with use_orig_params those pieces of parameters that lie in this GPU's part, the first.
void FlatUnits::end_micro_steps() {
  for (const std::int32_t index : lent_) tape_.parameters()[static_cast<std::size_t>(index)].requires_grad = false;
  each_unit([this](Unit& unit) { hand_over(unit); });
}

void FlatUnits::hand_over(Unit& unit) {
  const Count align = alignment(unit);
  Count at = 0;
  for (const std::int32_t index : unit.parameters) {
    Parameter& p = tape_.parameters()[static_cast<std::size_t>(index)];
    if (!unit.trained) continue;
    p.whole = p.shape.numel();
    at = up_to_multiple(at, align);
    Count piece = std::clamp<Count>(unit.part - at, 0, p.whole);
    if (!fsdp_.use_orig_params) {
      piece = at == 0 ? unit.part : 0;
      p.is_embedding = false;  // an optimizer that is told of token tables does not find it
    }
    at += p.whole;
    p.shape = elements(piece);
    p.dtype = unit.own;
    // Zeros stand for what nothing reached of a unit that some gradient came to.
    p.reached = unit.reached && p.requires_grad && piece > 0;
    if (p.reached) p.grad = unit.reduced;
  }
  unit.reduced.reset();
}

void FlatUnits::create_states(OptimizerRun& optimizer) {
  if (!on_host_) optimizer.create();
}

void FlatUnits::step(OptimizerRun& optimizer) {
  if (!on_host_) optimizer.step();
}

// init_flat_param_attributes: _local_shard and _cpu_grad, both pinned and the latter also of what is frozen; an
// optimizer's states where it runs.
HostMemory FlatUnits::host_memory(const LayerPlan& plan) const {
  HostMemory sum;
  if (!on_host_) return sum;
  for (const std::vector<Unit>* units : {&units_, &leaves_}) {
    for (const Unit& unit : *units) sum.pin(unit.part * size_of(unit.own), 2 * plan.multiplicity(unit.instance));
  }
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    const Parameter& p = tape_.parameters()[first_ + i];
    if (p.reached) sum.add(states_on_host(p, job_), plan.multiplicity(p.instance));
  }
  return sum;
}

// -- gathering ------------------------------------------------------------------------------------------------------

// pre_unshard: from the host it comes in its own dtype.
std::pair<Tensor, Tensor> FlatUnits::part_to_gather(const Unit& unit, Dtype dtype) {
  Tensor cast, part;
  tape_.set_stream(kPreUnshard);
  if (dtype != unit.own) cast = tape_.allocate(elements(unit.part), dtype, "_mp_shard");
  if (on_host_) part = tape_.allocate(elements(unit.part), unit.own, "part from the host");
  if (cast.defined()) part.reset();
  tape_.set_stream(kUnshard);
  return {std::move(cast), std::move(part)};
}

// _unshard: a cast of this GPU's part, then the whole. Parts on the host come again to what is whole already, unless it
// was gathered ahead (_pre_backward_hook: _prefetched); original parameters are views of one that is not cast
// (flat_param_to), which stays with them.
void FlatUnits::unshard(Unit& unit, bool ahead) {
  const bool was_ahead = std::exchange(unit.ahead, ahead), whole = unit.gathered.defined() || unit.stays;
  if (unit.parameters.empty() || (whole && (was_ahead || !on_host_))) return;
  const Scope in(tape_, "all-gather", kFlat);
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kCommunication);
  std::pair<Tensor, Tensor> part = part_to_gather(unit, unit.computes);
  if (!whole) {
    unit.gathered = tape_.allocate(elements(unit.part * mesh_.shards()), unit.computes, "_full_param_padded");
  }
  if (fsdp_.use_orig_params) unit.here = std::move(part.second);
  tape_.set_stream(kMainStream);
  tape_.set_default_category(before);
}

void FlatUnits::enter_model() {
  if (generates_ || units_.empty()) return;  // a forward of what lies in the model's unit; nothing is declared yet
  unshard(unit_of(-1));
  if (fsdp_.forward_prefetch && last_layer() >= root_layers_) unshard(unit_of(root_layers_), true);
}

bool FlatUnits::trains(std::int16_t instance) const {
  const auto is_in_it = [instance](const Unit& leaf) { return leaf.instance == instance; };
  return units_[static_cast<std::size_t>(instance + 1)].trained ||
         std::any_of(leaves_.begin(), leaves_.end(), is_in_it);
}

// No backward comes to what is frozen and gets nothing that requires a gradient: _catch_all_reshard takes it for
// divided, as its flat parameter is its part again, and what SHARD_GRAD_OP left whole stays so; original parameters are
// views of the whole until then (_skipped_use_sharded_views).
void FlatUnits::enter_layer(std::int16_t instance, bool input_needs_grad) {
  if (is_in_root(instance)) return;
  Unit& unit = unit_of(instance);
  const bool is_left = !input_needs_grad && tape_.grad_enabled() && !trains(instance);
  if (is_left && fsdp_.keeps_gathered && !fsdp_.use_orig_params && !unit.stays) {
    stay_whole(unit);
    tape_.use_parameters_of(instance);  // as they were: the layer's own buffers follow
  }
  unshard(unit);
  if (!fsdp_.forward_prefetch) return;
  const auto is_in_it = [instance](const Unit& leaf) { return leaf.instance == instance; };
  const auto first = std::find_if(leaves_.begin(), leaves_.end(), is_in_it);
  prefetch_behind(instance, static_cast<std::int32_t>(first - leaves_.begin()));
}

// _exec_order_utils.py get_handle_to_forward_prefetch: the unit whose forward began next; of a layer that is its first
// leaf, and behind its last one the next layer.
void FlatUnits::prefetch_behind(std::int16_t instance, std::int32_t at) {
  if (!fsdp_.forward_prefetch || tape_.phase() == Phase::kBackward) return;
  if (at < static_cast<std::int32_t>(leaves_.size()) && leaf(at).instance == instance) return unshard(leaf(at), true);
  if (instance >= 0 && instance < last_layer()) unshard(unit_of(static_cast<std::int16_t>(instance + 1)), true);
}

// A leaf's forward begins where its module asks for its weight.
void FlatUnits::use(std::int32_t parameter) {
  const std::int32_t at = leaf_of(parameter);
  if (at >= 0 && at == in_use_) return;
  let_go();
  if (at < 0) return;
  unshard(leaf(at));
  in_use_ = at;
  prefetch_behind(leaf(at).instance, at + 1);
}

// _post_forward_reshard, also as a checkpoint is recomputed: its backward has not begun.
void FlatUnits::let_go() {
  if (in_use_ >= 0) reshard_behind_forward(leaf(in_use_));
  in_use_ = -1;
}

// _post_forward_reshard: the root stays whole. _use_sharded_flat_param: what stays whole keeps its views.
void FlatUnits::reshard_behind_forward(Unit& unit) {
  if (!fsdp_.keeps_gathered && &unit != &unit_of(-1)) unit.gathered.reset();
  if (!fsdp_.keeps_gathered || !tape_.grad_enabled()) unit.here.reset();
}

void FlatUnits::leave_layer(std::int16_t instance) {
  if (is_in_root(instance)) return;
  let_go();
  reshard_behind_forward(unit_of(instance));
}

void FlatUnits::leave_model() {
  let_go();
  if (!units_.empty()) reshard_behind_forward(unit_of(-1));
}

// -- GRPO -----------------------------------------------------------------------------------------------------------

// _unshard_param_utils.py _unshard_fsdp_state_params, _flat_param.py _force_full_precision: in the dtype of its parts,
// without mixed precision.
void FlatUnits::summon(Unit& unit) {
  if (unit.parameters.empty()) return;
  const Scope in(tape_, "summon_full_params", kFlat);
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kCommunication);
  const std::pair<Tensor, Tensor> part = part_to_gather(unit, unit.own);
  unit.gathered = tape_.allocate(elements(unit.part * mesh_.shards()), unit.own, "_full_prec_full_param_padded");
  tape_.set_stream(kMainStream);
  tape_.set_default_category(before);
  for (const std::int32_t index : unit.parameters) {
    Parameter& p = tape_.parameters()[static_cast<std::size_t>(index)];
    if (p.dtype == unit.computes) p.dtype = unit.own;
  }
}

// trl 1.9 trainer/grpo_trainer.py: summon_full_params(model_wrapped, recurse=False) around generate(), which runs what
// lies in the model's unit; its layers are units as ever.
void FlatUnits::begin_generation() {
  summon(unit_of(-1));
  generates_ = true;
}

void FlatUnits::end_generation() {
  let_go();
  generates_ = false;
  Unit& root = unit_of(-1);
  root.gathered.reset();
  for (const std::int32_t index : root.parameters) {
    Parameter& p = tape_.parameters()[static_cast<std::size_t>(index)];
    if (p.dtype == root.own) p.dtype = root.computes;
  }
}

// What no backward has let go of.
void FlatUnits::end_rollout() {
  let_go();
  each_unit([this](Unit& unit) {
    if (!unit.gathered.defined()) return;
    tape_.begin_segment(Phase::kForward, unit.instance);
    unit.gathered.reset();
  });
  tape_.begin_segment(Phase::kForward, -1);
}

void FlatUnits::follow_rollout() {
  if (!reference_ && (scores_itself(job_) || job_.reference == Reference::kAdapterOff)) follow_evaluation();
}

void FlatUnits::follow_evaluation() {
  each_unit([this](Unit& unit) {
    if (!stays_whole(unit)) return;
    tape_.begin_segment(Phase::kForward, unit.instance);
    unshard(unit);
  });
  tape_.begin_segment(Phase::kForward, -1);
}

// -- backward -------------------------------------------------------------------------------------------------------

// _pre_backward_hook; what comes next in backward is the unit before it in forward, for the root the last layer.
void FlatUnits::pre_backward(std::int16_t instance) {
  Unit& unit = unit_of(instance);
  if (unit.in_backward) return;
  unit.in_backward = true;
  unshard(unit);
  if (fsdp_.backward_prefetch == BackwardPrefetch::kPre) prefetch(instance);
}

// The layer that runs last before this parameter's module; -1 where none does.
std::int16_t FlatUnits::layer_ahead_of(std::int32_t parameter) {
  std::int16_t layer = last_layer();
  while (layer >= 0 && (unit_of(layer).parameters.empty() || unit_of(layer).parameters.front() > parameter)) --layer;
  return layer;
}

// _exec_order_utils.py get_handle_to_backward_prefetch: the unit whose forward ended before this one's did. Within a
// layer those of its leaves did; for the root, those behind the last layer.
void FlatUnits::prefetch(std::int16_t instance) {
  for (std::size_t end = leaves_.size(); end > 0; --end) {
    Unit& last = leaves_[end - 1];
    if (last.instance != instance || last.in_backward) continue;
    if (instance < 0 && layer_ahead_of(last.parameters.front()) < last_layer()) continue;
    return prefetch(last);
  }
  prefetch_before_layer(instance);
}

// A leaf outside of the layers may stand behind some of them: a projector's, between two stacks.
void FlatUnits::prefetch_before_leaf(std::int32_t at) {
  const std::int16_t instance = leaf(at).instance;
  const std::int16_t layer = instance < 0 ? layer_ahead_of(leaf(at).parameters.front()) : instance;
  if (at > 0 && leaf(at - 1).instance == instance &&
      (instance >= 0 || layer_ahead_of(leaf(at - 1).parameters.front()) == layer)) {
    return prefetch(leaf(at - 1));
  }
  if (instance >= 0) return prefetch_before_layer(instance);
  if (layer >= 0) prefetch(unit_of(layer));
}

void FlatUnits::prefetch_before_layer(std::int16_t instance) {
  if (instance < 0) return prefetch(unit_of(last_layer()));
  for (std::size_t end = leaves_.size(); end > 0; --end) {
    Unit& outside = leaves_[end - 1];
    if (outside.instance >= 0 || layer_ahead_of(outside.parameters.front()) != instance - 1) continue;
    return prefetch(outside);
  }
  if (instance > 0) prefetch(unit_of(static_cast<std::int16_t>(instance - 1)));
}

void FlatUnits::prefetch(Unit& unit) {
  if (!unit.in_backward && !unit.done) unshard(unit, true);
}

void FlatUnits::backward_uses(std::int32_t parameter) {
  if (parameter < 0) return;
  let_go();
  const std::int32_t at = leaf_of(parameter);
  if (at < 0 || leaf(at).in_backward) return;
  leaf(at).in_backward = true;
  unshard(leaf(at));
  if (fsdp_.backward_prefetch == BackwardPrefetch::kPre) prefetch_before_leaf(at);
}

void FlatUnits::before_backward() {
  if (!job_.has_outer_loss()) pre_backward(-1);  // else as the gradient of the logits is there
}

void FlatUnits::backward_enters(std::int16_t instance) {
  if (instance < 0 || !is_in_root(instance)) pre_backward(instance);
}

// The node that splits the flat tensor into parameters runs behind those of the unit. With forward_prefetch it was made
// before the layer in front of it ran, and so runs behind that one's nodes.
// A unit that is frozen runs no such node: it is let go of by a hook on the gradient of what it was given, behind the
// one by which the layer in front of it, which gave it that, is called for.
void FlatUnits::backward_leaves(std::int16_t instance) {
  if (is_in_root(instance)) return;
  if (instance > 0 && !unit_of(instance).trained) pre_backward(static_cast<std::int16_t>(instance - 1));
  if (!fsdp_.forward_prefetch || !unit_of(instance).trained) post_backward(instance);
  if (fsdp_.forward_prefetch && instance < last_layer()) post_backward(static_cast<std::int16_t>(instance + 1));
}

void FlatUnits::take_gradient(std::int32_t parameter, Tensor grad) {
  Tensor& known = gradient_of(parameter);
  if (!known.defined()) known = std::move(grad);
  const std::int32_t at = leaf_of(parameter);
  if (at < 0) return;
  const std::vector<std::int32_t>& all = leaf(at).parameters;
  if (!std::all_of(all.begin(), all.end(), [this](std::int32_t p) { return gradient_of(p).defined(); })) return;
  post_backward(leaf(at));
  if (fsdp_.backward_prefetch == BackwardPrefetch::kPost) prefetch_before_leaf(at);
}

// _register_post_backward_reshard_only_hook: a frozen unit is let go of as all that it was given and that requires a
// gradient has one. A decoder's layers share the encoder's states, whose gradient the first of them completes.
bool FlatUnits::waits_for_encoder_states(std::int16_t instance) {
  if (decoder_ == 0 || instance <= decoder_ || unit_of(instance).trained) return false;
  return job_.checkpointing != Checkpointing::kNone || (!leaves_.empty() && leaves_.front().instance < decoder_);
}

void FlatUnits::post_backward(std::int16_t instance) {
  if (waits_for_encoder_states(instance)) return;
  Unit& unit = unit_of(instance);
  const bool first = !unit.done;
  post_backward(unit);
  if (decoder_ > 0 && instance == decoder_) {
    for (auto behind = static_cast<std::int16_t>(instance + 1); behind <= last_layer(); ++behind) {
      if (waits_for_encoder_states(behind)) post_backward(unit_of(behind));
    }
  }
  if (first && fsdp_.backward_prefetch == BackwardPrefetch::kPost) prefetch(instance);
}

// split_with_sizes_backward puts the gradients together; AccumulateGrad's hook lets go of the weights and reduces.
void FlatUnits::post_backward(Unit& unit) {
  if (unit.done) return;
  unit.done = true;
  if (unit.parameters.empty()) return;
  if (!unit.trained) return reshard_behind_backward(unit);  // _post_backward_reshard_only_hook
  const auto came = [this](std::int32_t p) { return gradient_of(p).defined(); };
  if (std::none_of(unit.parameters.begin(), unit.parameters.end(), came)) {  // a tower without pictures
    unit.gathered.reset();
    unit.here.reset();
    return;
  }
  const Scope in(tape_, "whole gradient", kPostBackward);
  std::vector<Tensor> zeros;  // split_with_sizes_backward: for what got none, of a tower without pictures
  for (const std::int32_t p : unit.parameters) {
    if (came(p)) continue;
    zeros.push_back(
        tape_.allocate(elements(tape_.parameters()[static_cast<std::size_t>(p)].elements()), unit.computes, "zeros"));
  }
  const Tensor put_together = tape_.allocate(elements(unit.whole), unit.computes, "cat");  // the hook's input: it stays
  zeros.clear();
  Tensor grad = put_together;
  tape_.set_category(grad, Category::kGradients);
  for (const std::int32_t p : unit.parameters) gradient_of(p).reset();
  if (unit.accumulated.defined()) grad = std::move(unit.accumulated);  // added to it
  reshard_behind_backward(unit);
  if (reduces_) {
    reduce(unit, std::move(grad));
  } else {
    unit.accumulated = std::move(grad);
  }
}

// _post_backward_reshard
void FlatUnits::reshard_behind_backward(Unit& unit) {
  if (reduces_ || !fsdp_.keeps_gathered) unit.gathered.reset();
  unit.here.reset();
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
  if (dtype != unit.own) part = tape_.allocate(elements(unit.part), unit.own, "_to_copy");
  tape_.set_category(part, Category::kGradients);
  unit.reached = true;
  if (!unit.reduced.defined()) unit.reduced = std::move(part);  // else added to it
  tape_.set_stream(kMainStream);
  tape_.set_default_category(before);
}

void FlatUnits::after_backward() {
  let_go();
  for (std::int16_t layer = 0; layer <= last_layer(); ++layer) {
    if (unit_of(layer).done) continue;
    tape_.begin_segment(Phase::kBackward, layer);
    post_backward(layer);
  }
  tape_.begin_segment(Phase::kBackward, -1);
  for (Unit& unit : leaves_) post_backward(unit);
  post_backward(-1);
  if (!on_host_) return;
  // _offload_grad copies to _cpu_grad, which prepare_gradient_for_optim puts in _saved_grad_shard's place.
  each_unit([this](Unit& unit) {
    tape_.begin_segment(Phase::kBackward, unit.instance);
    unit.reduced.reset();
  });
  tape_.begin_segment(Phase::kBackward, -1);
}

}  // namespace tidemark
