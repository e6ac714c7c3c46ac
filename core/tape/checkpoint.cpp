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
  Tensor back = x.in_buffer ? part_of_buffer(x.shape, x.dtype) : allocate(x.shape, x.dtype, "input back from the host");
  back.change().requires_grad = x.requires_grad;
  if (x.packed > 0) {
    let_last_node_go();
    offloading_.back.push_back({x.packed, back});
    ++offloading_.unpacked;
    answered();
  }
  return back;
}

Tensor Tape::checkpoint(const BlockCall& call, Tensor input, bool use_reentrant, CheckpointInput where,
                        std::vector<Tensor> further) {
  Tensor x = std::move(input);
  if (!grad_enabled_ || recomputing_ != nullptr || packing_ != nullptr) return call(x);
  if (use_reentrant) return checkpoint_reentrant(call, std::move(x), where, std::move(further));
  Frame& frame = graph_->add_frame();
  frame.call = call;
  if (where != CheckpointInput::kKept) {
    frame.host = to_host(x, 0);
    frame.host->in_buffer = where == CheckpointInput::kInBuffer;
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

void Tape::hold_in_module(const Tensor& tensor, const Tensor& further) {
  const auto slot = static_cast<std::size_t>(instance_ + 1);
  if (held_in_modules_.size() <= slot) held_in_modules_.resize(slot + 1);
  noting_ = false;
  noted_.push_back(without_edge(tensor));
  if (further.defined()) noted_.push_back(without_edge(further));
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

Tensor Tape::checkpoint_reentrant(const BlockCall& call, Tensor input, CheckpointInput where,
                                  std::vector<Tensor> further) {
  Tensor x = std::move(input);
  std::vector<const Tensor*> inputs{&x};
  for (const Tensor& argument : further) inputs.push_back(&argument);
  Node* node = record("CheckpointFunction", &Tape::checkpoint_backward, inputs.data(), inputs.size());
  if (node != nullptr) {
    node->call = std::make_unique<ReentrantCall>();
    const bool offload = where != CheckpointInput::kKept;
    if (offload || offloading_.on) {
      node->call->host = to_host(x, offload ? 0 : 1);
      node->call->host->in_buffer = where == CheckpointInput::kInBuffer;
    } else {
      save(node, x);
    }
    for (const Tensor& argument : further) save(node, argument);
    node->call->call = call;
    node->call->autocast = autocast_.dtype;
  }
  further.clear();
  more_outputs_.clear();
  // CheckpointFunction returns tensors without a graph when no input asks for one.
  grad_enabled_ = false;
  Tensor out = call(std::move(x));
  grad_enabled_ = true;
  if (node == nullptr) return out;
  attach(node, out);
  for (std::size_t i = 0; i < more_outputs_.size(); ++i) {
    node->call->more.emplace_back(more_outputs_[i].shape(), more_outputs_[i].dtype());
    attach(node, more_outputs_[i], static_cast<int>(i) + 1);
  }
  return out;
}

// detach_variable(): leaves, which a node without a rule stands for, so that it catches the gradient.
Tensor Tape::detached_leaf(Graph& inner, const Node& node, const Tensor& argument) {
  Node& leaf = inner.add_node();
  leaf.instance = node.instance;
  leaf.card = node.card;
  leaf.scope = node.scope;
  Tensor x = argument;
  TensorBody& body = x.change();
  body.requires_grad = true;
  body.is_detached_leaf = true;  // no view, so that autocast casts it once for all that read it
  lead(body, {&leaf, 0, -1});
  return x;
}

namespace {

// torch/csrc/autograd/utils/grad_layout_contract.h: a leaf's gradient lies in memory as the leaf does (features of a
// convolution, whose channels were turned behind its places), or is copied.
Tensor laid_out(const Shape& leaf, Tensor gradient_in) {
  Tensor gradient = std::move(gradient_in);
  if (!leaf.is_dense()) return gradient;
  for (int i = 0; i < leaf.rank; ++i) {
    if (leaf.size(i) != 1 && leaf.strides[i] != gradient.shape().strides[i]) {
      return gradient.tape().allocate(leaf, gradient.dtype(), "new_empty_strided");
    }
  }
  return gradient;
}

}  // namespace

// CheckpointFunction.backward: run again with gradients, then a backward of its own.
void Tape::checkpoint_backward(Tape& tape, Node& node, Tensor* grads, Tensor* results) {
  ReentrantCall& call = *node.call;
  std::vector<Tensor> given;
  for (std::size_t i = 0; i < call.more.size(); ++i) {
    const bool came = static_cast<int>(i) + 1 < node.output_count && grads[i + 1].defined();
    given.push_back(came ? grads[i + 1]
                         : zeros(tape, call.more[i].first, call.more[i].second, "zeros for an unused output"));
  }
  Graph inner(tape);
  Graph& outer = tape.record_in(inner);
  Autocast autocast_before = std::exchange(tape.autocast_, {call.autocast, {}});
  tape.grad_enabled_ = true;
  tape.gradients_flow_ = false;
  const Tensor restored = call.host ? tape.from_host(*call.host) : node.saved_tensor(0);
  Tensor x = tape.detached_leaf(inner, node, restored);
  std::vector<Node*> leaves{x.edge().node};
  for (std::size_t i = call.host ? 0 : 1; i < node.saved.size(); ++i) {
    tape.detached_.push_back(tape.detached_leaf(inner, node, node.saved_tensor(static_cast<int>(i))));
    leaves.push_back(tape.detached_.back().edge().node);
  }
  tape.use_parameters_of(node.instance);
  tape.more_outputs_.clear();
  Tensor out = call.call(std::move(x));
  if (tape.placement() != nullptr && node.instance >= 0) tape.placement()->ran_again(node.instance);
  tape.detached_.clear();
  const std::vector<Tensor> more = tape.take_more_outputs();
  tape.autocast_ = std::move(autocast_before);
  tape.gradients_flow_ = true;
  tape.grad_enabled_ = false;
  tape.record_in(outer);
  for (std::size_t i = 0; i < more.size() && i < given.size(); ++i) {
    if (more[i].requires_grad()) inner.deposit(more[i].edge(), given[i]);
  }
  Tensor grad = grads[0];
  inner.deposit(out.edge(), std::move(grad));
  inner.run(leaves.size());
  // The layer's own hooks run in the inner backward, while CheckpointFunction.backward holds inputs, outputs and
  // gradients.
  if (tape.placement() != nullptr && node.instance >= 0) tape.placement()->backward_leaves(node.instance);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    leaves[i]->grads.grow_to(1);
    results[i] = std::move(leaves[i]->grads[0]);
  }
  if (results[0].defined()) results[0] = laid_out(restored.shape(), std::move(results[0]));
  // Behind what a module of the block holds lie the leaf and its gradient.
  const auto slot = static_cast<std::size_t>(node.instance + 1);
  if (slot < tape.held_in_modules_.size() && !tape.held_in_modules_[slot].empty()) {
    tape.held_in_modules_[slot].push_back(tape.without_edge(restored));
    if (results[0].defined()) tape.held_in_modules_[slot].push_back(tape.without_edge(results[0]));
  }
  call.call = nullptr;
}

}  // namespace tidemark
