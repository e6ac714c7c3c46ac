// The autograd engine: in which order nodes run, when what they kept is let go.
// Mirrors pytorch v2.6.0 torch/csrc/autograd/{engine.cpp, input_buffer.cpp, function.cpp, functions/accumulate_grad.h}.
#include "core/tape/graph.hpp"

#include "core/tape/ops.hpp"
#include "core/tape/spare.hpp"

namespace tidemark {

// -- nodes ----------------------------------------------------------------------------------------------------------

namespace {
using NodeChunks = std::vector<std::unique_ptr<Node[]>>;
}  // namespace

NodePool::NodePool() : chunks_(std::move(spare_memory<NodeChunks>())) {
  spare_memory<NodeChunks>().clear();
}

NodePool::~NodePool() {
  spare_memory<NodeChunks>() = std::move(chunks_);
}

Node& NodePool::take() {
  if (!spare_.empty()) {
    Node& node = *spare_.back();
    spare_.pop_back();
    return node;
  }
  if (used_ / kChunk >= chunks_.size()) chunks_.push_back(std::make_unique<Node[]>(kChunk));
  Node& node = chunks_[used_ / kChunk][used_ % kChunk];
  ++used_;
  return node;
}

Node& Graph::add_node() {
  Node& node = tape_.nodes_.take();
  node.graph = this;
  node.position = static_cast<std::int32_t>(nodes_.size());
  node.users = 0;
  node.output_count = 1;
  nodes_.push_back(&node);
  return node;
}

Node& Graph::add_leaf() {
  leaf_ = &add_node();
  leaf_->backward = nullptr;
  leaf_->name = "received";
  leaf_->instance = -1;
  leaf_->users = 1;  // the graph's own
  return *leaf_;
}

Tensor Graph::take_leaf_gradient() {
  Tensor gradient;
  if (leaf_ != nullptr && leaf_->reached()) gradient = std::move(leaf_->grads[0]);
  return gradient;
}

Frame& Graph::add_frame() {
  frames_.push_back(std::make_unique<Frame>());
  return *frames_.back();
}

// function.cpp deleteNode: one after the other, because a chain of nodes may be long.
void Graph::drop(Node& node) {
  if (running_) return;  // run() comes to it
  dying_.push_back(&node);
  if (dying_.size() > 1) return;  // the loop below comes to it
  for (std::size_t i = 0; i < dying_.size(); ++i) {
    nodes_[static_cast<std::size_t>(dying_[i]->position)] = nullptr;
    settle(*dying_[i]);
  }
  dying_.clear();
  while (!nodes_.empty() && nodes_.back() == nullptr) nodes_.pop_back();
}

// Lets go of all that the node keeps and leads to. A tensor that still leads to it finds a node that has run.
void Graph::settle(Node& node) {
  for (Saved& saved : node.saved) {
    if (saved.slot >= 0) saved.frame->consume(saved.slot);
    saved.tensor.reset();
  }
  node.saved.clear();
  node.grads.clear();
  node.call.reset();
  node.lengths.clear();
  for (const Edge& edge : node.inputs) {
    if (edge.node != nullptr) tape_.release(*edge.node);
    if (edge.parameter >= 0) arrive(edge.parameter, Tensor());  // its contribution will not come
  }
  node.inputs.clear();
  node.input_shapes.clear();
  node.input_dtypes.clear();
  node.input_count = 0;
  node.graph = nullptr;
  if (node.users == 0) tape_.nodes_.give_back(node);
}

void Graph::let_go_of_held(std::size_t first, bool by_layer) {
  while (held_.size() > first) {
    if (by_layer) tape_.begin_segment(tape_.phase(), held_.back().instance);
    held_.pop_back();
  }
}

void Graph::let_go_of_oldest(std::size_t count) {
  for (std::size_t i = count; i-- > 0;) {
    tape_.begin_segment(tape_.phase(), held_[i].instance);
    held_[i].tensor.reset();
  }
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(count));
}

void Graph::clear() {
  running_ = true;
  if (leaf_ != nullptr) --leaf_->users;
  leaf_ = nullptr;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    if (nodes_[i] != nullptr) settle(*nodes_[i]);
  }
  running_ = false;
  nodes_.clear();
  held_.clear();
  frames_.clear();
  arrivals_.clear();
}

// -- backward -------------------------------------------------------------------------------------------------------

void Graph::run(std::size_t end) {
  running_ = true;
  // The engine takes the ready node with the highest sequence number; that is the reverse order of creation.
  for (std::size_t i = nodes_.size(); i-- > end;) {
    Node* const node = nodes_[i];
    if (node == nullptr) continue;
    const bool reached = node->reached();
    if (reached) execute(*node);
    if (!reached && node->users > 0) continue;  // the loss does not depend on it, but a tensor leads to it
    nodes_[i] = nullptr;
    settle(*node);
  }
  // Parameters that wait for nodes which the loss does not depend on.
  for (std::size_t p = 0; p < arrivals_.size(); ++p) {
    if (arrivals_[p].buffer.defined()) accumulate_parameter(static_cast<std::int32_t>(p));
  }
  compact(end);
  running_ = false;
}

// An edge beside the way to the leaf, at whose end parameters are.
bool Graph::is_aside(const Edge& edge) const {
  return edge.parameter >= 0 || (edge.node != nullptr && !to_leaf_[static_cast<std::size_t>(edge.node->position)]);
}

void Graph::run_inputs() {
  to_leaf_.assign(nodes_.size(), false);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i] == nullptr) continue;
    to_leaf_[i] = nodes_[i] == leaf_;
    for (const Edge& edge : nodes_[i]->inputs) {
      if (edge.node != nullptr && to_leaf_[static_cast<std::size_t>(edge.node->position)]) to_leaf_[i] = true;
    }
  }
  for (std::size_t i = nodes_.size(); i-- > 1;) {
    Node* const node = nodes_[i];
    if (node == nullptr || !node->reached()) continue;
    bool splits = false;
    for (const Edge& edge : node->inputs) splits = splits || is_aside(edge);
    if (splits) {
      split_.push_back({node, node->grads});
      ++node->users;
    }
    execute(*node, Pass::kInputs);
  }
}

// What leads from a weight to the node that it is used by: casts.
void Graph::run_aside(const Node& node) {
  for (const Edge& edge : node.inputs) {
    if (edge.node == nullptr || !is_aside(edge) || !edge.node->reached()) continue;
    execute(*edge.node);
    run_aside(*edge.node);
  }
}

// Parameters in the order of the model. What nodes saved that are not run again goes with the graph.
void Graph::run_weights() {
  const bool before = std::exchange(tape_.grad_enabled_, false);
  tape_.gradients_flow_ = true;
  for (std::size_t i = split_.size(); i-- > 0;) {
    Node& node = *split_[i].node;
    node.grads = std::move(split_[i].grads);
    if (node.instance != tape_.instance()) added_.reset();  // a layer that stands for many has to end what it began
    execute(node, Pass::kWeights);
    run_aside(node);
    node.grads.clear();
  }
  added_.reset();
  running_ = true;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    Node* const node = nodes_[i];
    if (node == nullptr || node == leaf_) continue;
    if (node->instance != tape_.instance()) tape_.go_to_layer(node->instance);
    nodes_[i] = nullptr;
    settle(*node);
  }
  running_ = false;
  for (const Split& split : split_) tape_.release(*split.node);
  split_.clear();
  tape_.gradients_flow_ = false;
  tape_.grad_enabled_ = before;
}

// Closes the ranks of the nodes that have not run.
void Graph::compact(std::size_t end) {
  std::size_t kept = end;
  for (std::size_t i = end; i < nodes_.size(); ++i) {
    Node* const node = nodes_[i];
    if (node == nullptr) continue;
    if (node->users == 0) {
      settle(*node);
      continue;
    }
    node->position = static_cast<std::int32_t>(kept);
    nodes_[kept++] = node;
  }
  nodes_.resize(kept);
  if (kept == end) frames_.clear();
}

// Which parameters the node's rule works on, or that it works on none. What goes with the rule is handed back.
Tensor Graph::announce(const Node& node) {
  bool works = false;
  Tensor last;
  for (const Edge& edge : node.inputs) {
    if (edge.parameter < 0) continue;
    works = true;
    tape_.placement()->backward_uses(edge.parameter);
  }
  for (const Saved& saved : node.saved) {
    const Tensor& tensor = saved.tensor;
    if (!tensor.defined() || tensor.storage() < 0) continue;
    const Storage& storage = tape_.storages()[static_cast<std::size_t>(tensor.storage())];
    const Site& site = tape_.sites()[static_cast<std::size_t>(storage.site)];
    if (site.category != Category::kWeights) continue;  // a parameter, or a view of one
    works = true;
    last = tape_.placement()->backward_reads(tensor.storage());
  }
  if (!works) tape_.placement()->backward_uses(-1);
  return last;
}

void Graph::execute(Node& node, Pass pass) {
  if (node.instance != tape_.instance()) tape_.go_to_layer(node.instance, node.call != nullptr);
  tape_.leave(node.scope);
  Offloading& host = tape_.offloading_;
  const std::size_t back = host.back.size();
  const std::int32_t unpacked = host.unpacked;
  // unpack: what a checkpoint let go is made again now.
  for (Saved& saved : node.saved) {
    if (saved.packed > 0) tape_.unpack(saved);
    if (saved.frame == nullptr) continue;
    Frame& frame = *saved.frame;
    if (!frame.recomputed) {
      tape_.recompute(frame);
      tape_.leave(node.scope);
    }
    const auto slot = static_cast<std::size_t>(saved.slot);
    if (slot < frame.slots.size()) saved.tensor = std::move(frame.slots[slot]);
    frame.consume(saved.slot);
    saved.slot = -1;
  }
  tape_.go_to_card(node.card);
  Tensor last;
  if (tape_.placement() != nullptr) last = announce(node);
  node.grads.grow_to(static_cast<std::size_t>(node.output_count));
  Few<Tensor, 4> results;
  results.grow_to(node.inputs.size());
  std::optional<Few<Edge, 2>> edges;
  if (pass != Pass::kBoth) edges = node.inputs;
  for (std::size_t i = 0; edges && i < edges->size(); ++i) {
    if (is_aside((*edges)[i]) == (pass == Pass::kInputs)) node.inputs[i] = {};
  }
  node.backward(tape_, node, node.grads.data(), results.data());
  // What a recomputation made belongs to the rule alone (checkpoint.py unpack_hook drops its handle): it goes with it.
  for (Saved& saved : node.saved) {
    if (saved.frame != nullptr) saved.tensor.reset();
  }
  last.reset();
  // engine.cpp validate_outputs: gradients take the shape and dtype of the input.
  for (std::size_t i = 0; i < results.size(); ++i) {
    Tensor& r = results[i];
    if (!r.defined() || !node.inputs[i].leads_on()) {
      r.reset();
      continue;
    }
    if (!r.shape().same_sizes(node.input_shapes[i])) r = sum_to(std::move(r), node.input_shapes[i]);
    if (r.dtype() != node.input_dtypes[i]) r = to(std::move(r), node.input_dtypes[i]);
  }
  node.grads.clear();
  if (edges) node.inputs = *edges;
  if (pass != Pass::kInputs) {
    for (Saved& saved : node.saved) saved.tensor.reset();
  }
  if (host.unpacked != unpacked) {
    if (host.graph == nullptr) host.graph = this;
    tape_.after_unpacking(host.graph == this ? back : 0);
  }
  // engine.cpp ReadyQueue: of what became ready AccumulateGrad goes first (its sequence number is the highest). A
  // matrix that the product took by its t() comes behind that node, and so behind the bias.
  for (const bool by_view : {false, true}) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i].defined()) continue;
      const bool waits = node.inputs[i].parameter >= 0 && results[i].body().is_view;
      if (waits != by_view) continue;
      deposit(node.inputs[i], std::move(results[i]));
      node.inputs[i].parameter = -1;
    }
  }
}

void Graph::deposit(const Edge& edge, Tensor grad) {
  if (edge.node != nullptr) {
    const auto output = static_cast<std::size_t>(edge.output);
    edge.node->grads.grow_to(output + 1);
    accumulate(edge.node->grads[output], std::move(grad));
  } else if (edge.parameter >= 0) {
    arrive(edge.parameter, std::move(grad));
  }
}

void Graph::expect(std::int32_t parameter) {
  const auto p = static_cast<std::size_t>(parameter);
  if (p >= arrivals_.size()) arrivals_.resize(p + 1);
  ++arrivals_[p].pending;
}

// One contribution to a parameter, or none where the one expected will not come.
void Graph::arrive(std::int32_t parameter, Tensor grad) {
  Arrival& arrival = arrivals_[static_cast<std::size_t>(parameter)];
  if (grad.defined()) accumulate(arrival.buffer, std::move(grad));
  if (--arrival.pending <= 0 && arrival.buffer.defined()) accumulate_parameter(parameter);
}

// input_buffer.cpp can_accumulate_inplace: in place when nobody else holds the first gradient's storage, and the base
// of a view does (VariableTypeUtils.h as_view keeps it, without grad mode too).  Seen on an H200
// (tests/measured/own.jsonl): a tied head's gradient, t() of a product, and the table's become a third tensor of that
// size.
void Graph::accumulate(Tensor& buffer, Tensor grad) {
  if (!buffer.defined()) {
    buffer = std::move(grad);
    return;
  }
  Tensor incoming = std::move(grad);
  if (!buffer.body().is_view && buffer.is_alone() && buffer.shape().is_dense()) return;
  Shape shape = buffer.shape();
  if (!shape.is_dense()) shape.make_contiguous();
  tape_.go_to_card(tape_.card_of(buffer));
  buffer = tape_.allocate(shape, buffer.dtype(), "add (accumulated gradient)");
}

// accumulate_grad.h: the first gradient is stolen, later ones are added in place.
void Graph::accumulate_parameter(std::int32_t parameter) {
  Tensor grad = std::move(arrivals_[static_cast<std::size_t>(parameter)].buffer);
  Parameter& p = tape_.parameters()[static_cast<std::size_t>(parameter)];
  p.reached = true;
  if (p.grad.defined() && tape_.placement() == nullptr) {  // `grad += new`, then the new one dies with this scope
    if (tape_.drop_gradients_) p.grad.reset();             // and this one as it is copied into its bucket
    if (!split_.empty()) added_ = std::move(grad);
    return;
  }
  // A view that begins within a storage is a tensor of its own, and is stolen with all of the storage.
  const bool is_part = grad.body().offset > 0 && grad.shape().is_contiguous();
  if (!grad.is_alone() && !is_part) {
    Shape shape = grad.shape();
    shape.make_contiguous();
    tape_.go_to_card(tape_.card_of(grad));
    grad = tape_.allocate(shape, grad.dtype(), "clone (gradient)");
  }
  if (tape_.placement() != nullptr) return tape_.placement()->take_gradient(parameter, std::move(grad));
  if (tape_.gradient_dtype_ && is_half(grad.dtype())) grad = to(std::move(grad), *tape_.gradient_dtype_);
  tape_.set_category(grad, Category::kGradients);
  if (tape_.drop_gradients_) {  // the parameter is stepped from a hook, and its gradient dies
    if (tape_.gradient_hook_) tape_.gradient_hook_(parameter, std::move(grad));
    return;
  }
  p.grad = std::move(grad);
}

}  // namespace tidemark
