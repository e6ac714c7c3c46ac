// torch/utils/checkpoint.py, both kinds.
#include <algorithm>

#include "core/tape/ops.hpp"
#include "core/tape/tape.hpp"

namespace tidemark {

// -- not reentrant --------------------------------------------------------------------------------------------------

void Frame::consume(std::int32_t slot) {
  if (!recomputed) dead.push_back(slot);
  if (--remaining == 0 && !packing) let_go();
}

void Frame::close() {
  packing = false;
  if (remaining == 0) let_go();
}

void Frame::let_go() {
  input.reset();
  kept.results.clear();
  call = nullptr;
}

// `asked`: how many tensors the checkpoint hands to the hooks of Tape::offload, the input last; 0: they see none of it.
OnHost Tape::to_host(const Tensor& x, int asked) {
  offloaded_.emplace_back(instance_, round_to_block(x.numel() * size_of(x.dtype())));
  OnHost host{x.shape(), x.dtype(), x.requires_grad()};
  for (int i = 0; i < asked; ++i) ask();
  if (asked > 0) {
    host.packed = offloading_.asked;
    offloading_.waiting -= asked - 1;
    offloading_.inputs.push_back(host);
  }
  return host;
}

Tensor Tape::from_host(const OnHost& x) {
  Tensor back = allocate(x.shape, x.dtype, "input back from the host");
  back.change().requires_grad = x.requires_grad;
  if (x.packed > 0) {
    offloading_.back.push_back({x.packed, back});
    ++offloading_.unpacked;
    answered();
  }
  return back;
}

Tensor Tape::checkpoint(const BlockCall& call, Tensor input, bool use_reentrant, bool offload) {
  Tensor x = std::move(input);
  if (!grad_enabled_ || recomputing_ != nullptr || packing_ != nullptr) return call(x);
  if (use_reentrant) return checkpoint_reentrant(call, std::move(x), offload);
  Frame& frame = graph_->add_frame();
  frame.call = call;
  if (offload) {
    frame.host = to_host(x, 0);
  } else if (offloading_.on) {
    frame.host = to_host(x, 2);  // _NoopSaveInputs: a small tensor and the input
  } else {
    frame.input = x;
  }
  frame.autocast = autocast_.dtype;
  frame.instance = instance_;
  packing_ = &frame;
  Tensor out = call(std::move(x));
  packing_ = nullptr;
  frame.close();
  return out;
}

void Tape::keep_results(bool keep) {
  Frame* const frame = packing_ != nullptr ? packing_ : recomputing_;
  keep_in(keep && frame != nullptr ? &frame->kept : nullptr);
}

void Tape::recompute(Frame& frame) {
  frame.recomputed = frame.kept.taken_again = true;
  frame.slots.reserve(static_cast<std::size_t>(frame.count));
  Frame* const before = std::exchange(recomputing_, &frame);
  const bool grad_before = std::exchange(grad_enabled_, true);
  const bool flow_before = std::exchange(gradients_flow_, false);
  Autocast autocast_before = std::exchange(autocast_, {frame.autocast, {}});
  use_parameters_of(frame.instance);
  const std::size_t held_before = graph_->held();
  // unpack_hook holds what comes back from the host until it returns; the frame does not.
  const Tensor input = frame.host ? from_host(*frame.host) : frame.input;
  {
    Tensor out = frame.call(input);
    stopped_ = true;  // whatever is still to be let go allocates nothing
  }
  stopped_ = false;
  graph_->let_go_of_held(held_before, false);  // with the graph of the recomputation
  autocast_ = std::move(autocast_before);
  gradients_flow_ = flow_before;
  grad_enabled_ = grad_before;
  recomputing_ = before;
}

// _recomputation_hook: a slot whose holder died is counted and not kept.
void Tape::save_again(const Tensor& tensor) {
  Frame& frame = *recomputing_;
  if (noting_) noted_.push_back(without_edge(tensor));
  const auto slot = static_cast<std::int32_t>(frame.slots.size());
  const bool dead = std::find(frame.dead.begin(), frame.dead.end(), slot) != frame.dead.end();
  frame.slots.push_back(dead ? Tensor() : without_edge(tensor));
  // Early stop: nothing behind the last saved tensor is computed again (_StopRecomputationError).
  if (slot + 1 == frame.count) stopped_ = true;
}

void Tape::hold_in_module(const Tensor& tensor) {
  const auto slot = static_cast<std::size_t>(instance_ + 1);
  if (held_in_modules_.size() <= slot) held_in_modules_.resize(slot + 1);
  noting_ = false;
  noted_.push_back(without_edge(tensor));
  held_in_modules_[slot] = std::exchange(noted_, {});
}

void Tape::let_module_go() {
  const auto slot = static_cast<std::size_t>(instance_ + 1);
  if (slot < held_in_modules_.size()) held_in_modules_[slot].clear();
}

void Tape::let_modules_go() {
  for (std::size_t slot = 0; slot < held_in_modules_.size(); ++slot) {
    if (held_in_modules_[slot].empty()) continue;
    begin_segment(phase(), static_cast<std::int16_t>(slot - 1));
    held_in_modules_[slot].clear();
  }
}

// -- reentrant ------------------------------------------------------------------------------------------------------

Tensor Tape::checkpoint_reentrant(const BlockCall& call, Tensor input, bool offload) {
  Tensor x = std::move(input);
  Node* node = record("CheckpointFunction", &Tape::checkpoint_backward, {&x});
  if (node != nullptr) {
    node->call = std::make_unique<ReentrantCall>();
    if (offload || offloading_.on) {
      node->call->host = to_host(x, offload ? 0 : 1);
    } else {
      save(node, x);
    }
    node->call->call = call;
    node->call->autocast = autocast_.dtype;
  }
  // CheckpointFunction returns tensors without a graph when no input asks for one.
  grad_enabled_ = false;
  Tensor out = call(std::move(x));
  grad_enabled_ = true;
  if (node == nullptr) {
    second_output_.reset();
    return out;
  }
  if (second_output_.defined()) {
    node->call->has_second = true;
    node->call->second_shape = second_output_.shape();
    node->call->second_dtype = second_output_.dtype();
    second_output_.reset();
  }
  attach(node, out);
  return out;
}

// CheckpointFunction.backward: run again with gradients, then a backward of its own.
void Tape::checkpoint_backward(Tape& tape, Node& node, Tensor* grads, Tensor* results) {
  ReentrantCall& call = *node.call;
  Tensor zeros_for_second;
  if (call.has_second) {
    zeros_for_second = zeros(tape, call.second_shape, call.second_dtype, "zeros for an unused output");
  }
  Graph inner(tape);
  Graph& outer = tape.record_in(inner);
  Autocast autocast_before = std::exchange(tape.autocast_, {call.autocast, {}});
  tape.grad_enabled_ = true;
  tape.gradients_flow_ = false;
  // The detached input is a leaf: a node without a rule catches its gradient.
  Node& leaf = inner.add_node();
  leaf.instance = node.instance;
  leaf.scope = node.scope;
  const Tensor restored = call.host ? tape.from_host(*call.host) : node.saved_tensor(0);
  Tensor x = restored;
  TensorBody& body = x.change();
  body.requires_grad = true;
  body.is_detached_leaf = true;  // detach_variable(): no view, so that autocast casts it once for all that read it
  tape.lead(body, {&leaf, 0, -1});
  tape.use_parameters_of(node.instance);
  Tensor out = call.call(std::move(x));
  const Tensor second = std::move(tape.second_output_);
  tape.autocast_ = std::move(autocast_before);
  tape.gradients_flow_ = true;
  tape.grad_enabled_ = false;
  tape.record_in(outer);
  if (second.defined() && second.requires_grad()) inner.deposit(second.edge(), zeros_for_second);
  Tensor grad = grads[0];
  inner.deposit(out.edge(), std::move(grad));
  inner.run(1);
  leaf.grads.grow_to(1);
  results[0] = std::move(leaf.grads[0]);
  // Behind what a module of the block holds lie the leaf and its gradient.
  const auto slot = static_cast<std::size_t>(node.instance + 1);
  if (slot < tape.held_in_modules_.size() && !tape.held_in_modules_[slot].empty()) {
    tape.held_in_modules_[slot].push_back(tape.without_edge(restored));
    if (results[0].defined()) tape.held_in_modules_[slot].push_back(tape.without_edge(results[0]));
  }
  call.call = nullptr;
}

}  // namespace tidemark
