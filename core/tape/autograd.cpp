// The autograd engine: which tensors wait for backward, in which order nodes run, when what they held is let go.
// Mirrors pytorch v2.6.0 torch/csrc/autograd/{engine.cpp, input_buffer.cpp, functions/accumulate_grad.h} and
// torch/utils/checkpoint.py.
#include "core/tape/ops.hpp"
#include "core/tape/tape.hpp"

namespace tidemark {

Node& Tape::push_node() {
  const auto index = static_cast<std::size_t>(node_count_);
  if (index / kChunk >= chunks_.size()) chunks_.push_back(std::make_unique<Node[]>(kChunk));
  ++node_count_;
  Node& n = node(node_count_ - 1);
  n.saved_count = 0;
  n.saved = nullptr;
  n.call = -1;
  return n;
}

// A node's saved tensors lie together; when the chunk at hand is too short for them, they start the next one.
Saved& Tape::push_saved(Node& n) {
  if (n.saved == nullptr) {
    if (saved_count_ % kSavedChunk + kMaxSaved > kSavedChunk) {
      saved_count_ = (saved_count_ / kSavedChunk + 1) * kSavedChunk;
    }
    const std::size_t chunk = saved_count_ / kSavedChunk;
    if (chunk >= saved_chunks_.size()) saved_chunks_.push_back(std::make_unique<Saved[]>(kSavedChunk));
    n.saved = &saved_chunks_[chunk][saved_count_ % kSavedChunk];
    n.saved_begin = saved_count_;
  }
  ++saved_count_;
  return n.saved[n.saved_count++];
}

void Tape::pop_saved(Node& n) {
  for (int i = 0; i < n.saved_count; ++i) n.saved[i].tensor.reset();
  if (n.saved != nullptr) saved_count_ = n.saved_begin;
}

Node* Tape::record(const char* name, BackwardFn rule, std::initializer_list<const Tensor*> inputs) {
  if (!grad_enabled_ || stopped_) return nullptr;
  bool any = false;
  for (const Tensor* t : inputs) any = any || t->requires_grad();
  if (!any) return nullptr;
  if (recomputing_ != nullptr) {
    // The recomputed graph is thrown away: only what it saves counts. torch/utils/checkpoint.py, _recomputation_hook.
    scratch_node_.saved_count = 0;
    scratch_node_.input_count = 0;
    for (const Tensor* t : inputs) scratch_node_.inputs[scratch_node_.input_count++] = {t->requires_grad() ? 0 : -1, 0};
    return &scratch_node_;
  }
  Node& n = push_node();
  n.name = name;
  n.backward = rule;
  n.scope = scope_;
  n.instance = instance_;
  n.input_count = 0;
  n.output_count = 1;
  for (const Tensor* t : inputs) {
    const int i = n.input_count++;
    n.inputs[i] = t->requires_grad() ? t->edge() : Edge{};
    n.input_shapes[i] = t->shape();
    n.input_dtypes[i] = t->dtype();
    if (n.inputs[i].node <= -2) ++parameters_[static_cast<std::size_t>(-2 - n.inputs[i].node)].pending;
  }
  return &n;
}

void Tape::save(Node* n, const Tensor& tensor) {
  if (n == nullptr) return;
  if (recomputing_ != nullptr) {
    if (stopped_) return;
    recomputing_->slots.push_back(tensor);
    recomputing_->slots.back().change().edge = {};
    // Early stop: nothing behind the last saved tensor is computed again (_StopRecomputationError).
    if (static_cast<std::int32_t>(recomputing_->slots.size()) == recomputing_->count) stopped_ = true;
    ++n->saved_count;
    return;
  }
  Saved& s = push_saved(*n);
  s.frame = -1;
  if (packing_frame_ >= 0) {
    Frame& frame = *frames_[static_cast<std::size_t>(packing_frame_)];
    s.frame = packing_frame_;
    s.slot = frame.count++;
    ++frame.remaining;
  } else {
    s.tensor = tensor;
    s.tensor.change().edge = {};
  }
}

void Tape::attach(Node* n, Tensor& output, int output_index) {
  if (n == nullptr) return;
  TensorBody& body = output.change();
  body.requires_grad = true;
  if (n == &scratch_node_) {
    body.edge = {0, 0};
    return;
  }
  body.edge = {node_count_ - 1, output_index};
  n->output_shape = output.shape();
  n->output_dtype = output.dtype();
  if (output_index + 1 > n->output_count) n->output_count = output_index + 1;
}

// -- autocast -------------------------------------------------------------------------------------------------------

Tensor Tape::autocast_cast(Tensor tensor, Dtype dtype) {
  Tensor t = std::move(tensor);
  if (t.dtype() == dtype || !is_floating(t.dtype())) return t;
  // pytorch v2.6.0 aten/src/ATen/autocast_mode.cpp: cached_cast.
  const bool cacheable = t.is_leaf_parameter() && t.requires_grad() && t.dtype() == Dtype::kFp32 && is_half(dtype);
  const std::int32_t key = t.storage();
  if (cacheable) {
    for (const CachedCast& cached : autocast_cache_) {
      if (cached.parameter_storage == key) return cached.cast;
    }
  }
  const bool weight = t.is_leaf_parameter();
  Tensor out = to(std::move(t), dtype);
  if (weight) set_category(out, Category::kBuffers);
  if (cacheable) autocast_cache_.push_back({key, instance_of_parameters_, out});
  return out;
}

void Tape::clear_autocast_cache() {
  const Phase phase = phase_;
  for (CachedCast& cached : autocast_cache_) {
    begin_segment(phase, cached.instance);
    cached.cast.reset();
  }
  autocast_cache_.clear();
  begin_segment(phase, -1);
}

// -- backward -------------------------------------------------------------------------------------------------------

void Tape::backward(Tensor loss) {
  Tensor root = std::move(loss);
  in_backward_ = true;
  const bool grad_before = grad_enabled_;
  grad_enabled_ = false;
  std::optional<Dtype> autocast_before = autocast_;
  autocast_.reset();
  begin_segment(Phase::kBackward, -1);
  Tensor one = allocate(root.shape(), root.dtype(), "ones_like");
  const Edge edge = root.edge();
  root.reset();
  deposit(edge, std::move(one));
  run(0);
  node_count_ = 0;
  frames_.clear();
  calls_.clear();
  // Contributions to parameters that one path did not reach.
  for (Parameter& p : parameters_) {
    if (p.buffer.defined()) accumulate_parameter(p);
    p.pending = 0;
  }
  autocast_ = autocast_before;
  grad_enabled_ = grad_before;
  in_backward_ = false;
}

void Tape::run(std::int32_t begin) {
  // The engine takes the ready node with the highest sequence number; that is the reverse order of creation.
  while (node_count_ > begin) {
    Node& n = node(node_count_ - 1);
    bool reached = false;
    for (int i = 0; i < n.output_count; ++i) reached = reached || n.has_grad(i);
    if (reached) execute(n);
    pop_saved(n);
    --node_count_;
  }
}

void Tape::execute(Node& n) {
  if (n.instance != instance_) begin_segment(Phase::kBackward, n.instance);
  scope_ = n.scope;
  // unpack: what a checkpoint let go is made again now.
  for (int i = 0; i < n.saved_count; ++i) {
    Saved& s = n.saved[i];
    if (s.frame < 0) continue;
    Frame& frame = *frames_[static_cast<std::size_t>(s.frame)];
    if (!frame.recomputed) {
      recompute(frame);
      scope_ = n.scope;
    }
    if (static_cast<std::size_t>(s.slot) < frame.slots.size()) {
      s.tensor = std::move(frame.slots[static_cast<std::size_t>(s.slot)]);
    }
    if (--frame.remaining == 0) {
      frame.input.reset();
      frame.call = nullptr;
    }
  }
  Tensor grads[kMaxOutputs];
  for (int i = 0; i < n.output_count; ++i) {
    if (n.has_grad(i)) grads[i] = std::move(n.grad_of(i));
  }
  Tensor results[kMaxInputs];
  n.backward(*this, n, grads, results);
  // What a recomputation made belongs to the rule alone (checkpoint.py unpack_hook drops its handle): it goes with it.
  for (int i = 0; i < n.saved_count; ++i) {
    if (n.saved[i].frame >= 0) n.saved[i].tensor.reset();
  }
  // engine.cpp validate_outputs: gradients take the shape and dtype of the input.
  for (int i = 0; i < n.input_count; ++i) {
    Tensor& r = results[i];
    if (!r.defined() || !n.needs(i)) {
      r.reset();
      continue;
    }
    if (!r.shape().same_sizes(n.input_shapes[i])) r = sum_to(std::move(r), n.input_shapes[i]);
    if (r.dtype() != n.input_dtypes[i]) r = to(std::move(r), n.input_dtypes[i]);
  }
  for (Tensor& g : grads) g.reset();
  for (int i = 0; i < n.saved_count; ++i) n.saved[i].tensor.reset();
  for (int i = 0; i < n.input_count; ++i) {
    if (results[i].defined()) deposit(n.inputs[i], std::move(results[i]));
  }
}

void Tape::deposit(Edge edge, Tensor grad) {
  if (edge.node >= 0) {
    accumulate(node(edge.node).grad_of(edge.output), std::move(grad));
    return;
  }
  if (edge.node == -1) return;
  Parameter& p = parameters_[static_cast<std::size_t>(-2 - edge.node)];
  accumulate(p.buffer, std::move(grad));
  if (--p.pending <= 0) accumulate_parameter(p);
}

// input_buffer.cpp accumulate: in place when nobody else holds the first gradient.
void Tape::accumulate(Tensor& buffer, Tensor grad) {
  if (!buffer.defined()) {
    buffer = std::move(grad);
    return;
  }
  Tensor incoming = std::move(grad);
  if (buffer.is_alone() && buffer.shape().is_dense()) return;
  Shape shape = buffer.shape();
  if (!shape.is_dense()) shape.make_contiguous();
  buffer = allocate(shape, buffer.dtype(), "add (accumulated gradient)");
}

// accumulate_grad.h: the first gradient is stolen, later ones are added in place.
void Tape::accumulate_parameter(Parameter& p) {
  Tensor grad = std::move(p.buffer);
  p.pending = 0;
  if (p.grad.defined()) return;  // `grad += new`, then the new one dies with this scope
  if (!grad.is_alone()) {
    Shape shape = grad.shape();
    shape.make_contiguous();
    grad = allocate(shape, grad.dtype(), "clone (gradient)");
  }
  if (gradient_dtype_ && is_half(grad.dtype())) grad = to(std::move(grad), *gradient_dtype_);
  set_category(grad, Category::kGradients);
  if (drop_gradients_) return;  // the parameter was stepped from a hook; the gradient dies with this scope
  p.grad = std::move(grad);
  p.grad.change().edge = {};
}

// -- checkpointing --------------------------------------------------------------------------------------------------

Tensor Tape::checkpoint(const BlockCall& call, Tensor input, bool use_reentrant, bool offload) {
  Tensor x = std::move(input);
  if (!grad_enabled_ || recomputing_ != nullptr || packing_frame_ >= 0) return call(x);
  if (!use_reentrant || offload) {
    auto frame = std::make_unique<Frame>();
    frame->call = call;
    if (offload) {
      frame->offloaded = true;
      frame->shape = x.shape();
      frame->dtype = x.dtype();
      offloaded_.emplace_back(instance_, round_to_block(x.numel() * size_of(x.dtype())));
    } else {
      frame->input = x;
    }
    frame->autocast = autocast_;
    frame->instance = instance_;
    frames_.push_back(std::move(frame));
    const std::int32_t before = packing_frame_;
    packing_frame_ = static_cast<std::int32_t>(frames_.size()) - 1;
    const std::int32_t mine = packing_frame_;
    Tensor out = call(std::move(x));
    packing_frame_ = before;
    if (frames_[static_cast<std::size_t>(mine)]->count == 0) frames_[static_cast<std::size_t>(mine)]->input.reset();
    return out;
  }
  if (!x.requires_grad()) {
    // CheckpointFunction returns tensors without a graph when no input asks for one.
    grad_enabled_ = false;
    Tensor out = call(std::move(x));
    grad_enabled_ = true;
    return out;
  }
  Node* n = record("CheckpointFunction", &Tape::checkpoint_backward, {&x});
  const std::int32_t index = node_count_ - 1;
  save(n, x);
  calls_.push_back({call, autocast_});
  n->call = static_cast<std::int32_t>(calls_.size()) - 1;
  grad_enabled_ = false;
  Tensor out = call(std::move(x));
  grad_enabled_ = true;
  if (second_output_.defined()) {
    ReentrantCall& mine = calls_[static_cast<std::size_t>(n->call)];
    mine.has_second = true;
    mine.second_shape = second_output_.shape();
    mine.second_dtype = second_output_.dtype();
    second_output_.reset();
  }
  TensorBody& body = out.change();
  body.requires_grad = true;
  body.edge = {index, 0};
  n->output_shape = out.shape();
  n->output_dtype = out.dtype();
  return out;
}

void Tape::recompute(Frame& frame) {
  frame.recomputed = true;
  frame.slots.reserve(static_cast<std::size_t>(frame.count));
  Frame* const before = recomputing_;
  const bool grad_before = grad_enabled_;
  const auto autocast_before = autocast_;
  auto cache_before = std::move(autocast_cache_);
  autocast_cache_.clear();
  recomputing_ = &frame;
  grad_enabled_ = true;
  autocast_ = frame.autocast;
  use_parameters_of(frame.instance);
  if (frame.offloaded) {
    frame.input = allocate(frame.shape, frame.dtype, "input back from the host");
    frame.input.change().requires_grad = true;
  }
  {
    Tensor out = frame.call(frame.input);
    stopped_ = true;  // whatever is still to be let go allocates nothing
  }
  stopped_ = false;
  autocast_cache_.clear();
  autocast_cache_ = std::move(cache_before);
  autocast_ = autocast_before;
  grad_enabled_ = grad_before;
  recomputing_ = before;
}

// CheckpointFunction.backward: run again with gradients, then a backward of its own.
void Tape::checkpoint_backward(Tape& tape, Node& n, Tensor* grads, Tensor* results) {
  ReentrantCall& call = tape.calls_[static_cast<std::size_t>(n.call)];
  Tensor zeros_for_second;
  if (call.has_second) {
    zeros_for_second = zeros(tape, call.second_shape, call.second_dtype, "zeros for an unused output");
  }
  const auto autocast_before = tape.autocast_;
  auto cache_before = std::move(tape.autocast_cache_);
  tape.autocast_cache_.clear();
  tape.autocast_ = call.autocast;
  tape.grad_enabled_ = true;
  // The detached input is a leaf: a node without a function catches its gradient.
  Node& leaf = tape.push_node();
  leaf.name = "detached input";
  leaf.backward = nullptr;
  leaf.input_count = 0;
  leaf.output_count = 1;
  leaf.instance = n.instance;
  leaf.scope = n.scope;
  const std::int32_t leaf_index = tape.node_count_ - 1;
  Tensor x = n.saved_tensor(0);
  TensorBody& body = x.change();
  body.requires_grad = true;
  body.edge = {leaf_index, 0};
  tape.use_parameters_of(n.instance);
  Tensor out = call.call(std::move(x));
  const Tensor second = std::move(tape.second_output_);
  tape.autocast_cache_.clear();
  tape.autocast_cache_ = std::move(cache_before);
  tape.autocast_ = autocast_before;
  tape.grad_enabled_ = false;
  if (second.defined() && second.requires_grad()) tape.deposit(second.edge(), zeros_for_second);
  Tensor grad = grads[0];
  tape.deposit(out.edge(), std::move(grad));
  tape.run(leaf_index + 1);
  results[0] = std::move(tape.node(leaf_index).grad);
  call.call = nullptr;
  --tape.node_count_;
}

}  // namespace tidemark
