// What operations leave for backward: pytorch v2.6.0 torch/csrc/autograd/{variable.h, saved_variable.cpp}.
#include "core/tape/tape.hpp"

namespace tidemark {

Node* Tape::record(const char* name, BackwardFn rule, const Tensor* const* inputs, std::size_t count) {
  if ((!grad_enabled_ || stopped_) && !rehearsing_) return nullptr;
  bool any = false;
  for (std::size_t i = 0; i < count; ++i) any = any || inputs[i]->requires_grad();
  if (!any) return nullptr;
  // The recomputed graph is thrown away: only what it saves counts. torch/utils/checkpoint.py, _recomputation_hook.
  if (recomputing_ != nullptr || rehearsing_) return &thrown_away_;
  Node& node = graph_->add_node();
  node.name = name;
  node.backward = rule;
  node.scope = scope_;
  node.instance = instance_;
  node.card = card();
  node.input_count = static_cast<int>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor* const t = inputs[i];
    const Edge edge = t->requires_grad() ? t->edge() : Edge{};
    if (edge.node != nullptr) ++edge.node->users;
    if (edge.parameter >= 0) graph_->expect(edge.parameter);
    node.inputs.push_back(edge);
    node.input_shapes.push_back(t->shape());
    node.input_dtypes.push_back(t->dtype());
  }
  return &node;
}

void Tape::save(Node* node, const Tensor& tensor) {
  if (node == nullptr || stopped_) return;
  if (recomputing_ != nullptr) {
    save_again(tensor);
    return;
  }
  Saved& saved = node->saved.push_back({});
  if (packing_ != nullptr) {
    saved.frame = packing_;
    saved.slot = packing_->count++;
    ++packing_->remaining;
  } else if (offloading_.on) {
    offload(saved, tensor);
  } else {
    saved.tensor = without_edge(tensor);
  }
}

void Tape::hold(const Node* node, const Tensor& tensor) {
  if (node == nullptr) return;
  if (noting_) noted_.push_back(without_edge(tensor));
  graph_->hold(without_edge(tensor), instance_);
}

void Tape::let_graph_go() {
  graph_->let_go_of_held(0, true);
  begin_segment(phase(), -1);
}

void Tape::let_oldest_go(std::size_t count) {
  if (count == 0) return;
  graph_->let_go_of_oldest(count);
  begin_segment(phase(), -1);
}

Tensor Tape::without_edge(const Tensor& tensor) {
  Tensor copy = handle(tensor.body());
  copy.change().edge = {};  // which was not counted as one more user
  return copy;
}

void Tape::attach(Node* node, Tensor& output, int output_index) {
  if (node == nullptr) return;
  TensorBody& body = output.change();
  body.requires_grad = true;
  lead(body, {node, output_index, -1});
  if (output_index + 1 > node->output_count) node->output_count = output_index + 1;
}

void Tape::lead(TensorBody& body, const Edge& edge) {
  if (edge.node != nullptr) ++edge.node->users;
  Node* const before = body.edge.node;
  // Field by field: most edges have just been put together (Record::new_body).
  body.edge.node = edge.node;
  body.edge.output = edge.output;
  body.edge.parameter = edge.parameter;
  if (before != nullptr) release(*before);
}

void Tape::release(Node& node) {
  if (--node.users > 0) return;
  if (node.graph == nullptr) {
    nodes_.give_back(node);
  } else {
    node.graph->drop(node);
  }
}

Graph& Tape::record_in(Graph& graph) {
  return *std::exchange(graph_, &graph);
}

void Tape::go_to_layer(std::int16_t instance, bool runs_again) {
  if (placement() != nullptr) placement()->backward_leaves(this->instance());
  begin_segment(Phase::kBackward, instance);
  if (placement() == nullptr || instance < 0) return;
  runs_again ? placement()->backward_runs_again(instance) : placement()->backward_enters(instance);
}

Tensor Tape::leaf(const Tensor& buffer) {
  Tensor x = without_edge(buffer);
  TensorBody& body = x.change();
  body.requires_grad = true;
  lead(body, {&graph_->add_leaf(), 0, -1});
  return x;
}

Tensor Tape::backward(Tensor root_in, Tensor gradient, bool inputs_only) {
  Tensor root = std::move(root_in), leaf_gradient;
  const bool grad_before = std::exchange(grad_enabled_, false);
  const std::optional<Dtype> autocast_before = std::exchange(autocast_.dtype, std::nullopt);
  gradients_flow_ = true;
  begin_segment(Phase::kBackward, -1);
  go_to_card(card_of(root));
  Tensor one = std::move(gradient);
  if (!one.defined()) one = allocate(root.shape(), root.dtype(), "ones_like");
  Node* const node = root.edge().node;
  if (node != nullptr) ++node->users;  // the task's own
  const Edge edge = root.edge();
  root.reset();
  if (placement() != nullptr) placement()->before_backward();
  if (node != nullptr && node->graph != nullptr) {
    Graph& graph = *node->graph;
    graph.deposit(edge, std::move(one));
    inputs_only ? graph.run_inputs() : graph.run(graph.has_leaf() ? 1 : 0);
    leaf_gradient = graph.take_leaf_gradient();
  }
  if (placement() != nullptr) {
    if (instance() >= 0) go_to_layer(-1);
    placement()->after_backward();
  }
  if (node != nullptr) release(*node);
  gradients_flow_ = false;
  autocast_.dtype = autocast_before;
  grad_enabled_ = grad_before;
  return leaf_gradient;
}

}  // namespace tidemark
