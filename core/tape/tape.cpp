#include "core/tape/tape.hpp"

#include "core/tape/spare.hpp"

namespace tidemark {

namespace {
using Parameters = std::vector<Parameter>;
}  // namespace

Tape::Tape() : Record(this), main_graph_(*this) {
  hand_over(spare_memory<Parameters>(), parameters_);
  parameters_.reserve(128);
  thrown_away_.users = 1;  // never dropped
}

Tape::~Tape() {
  close();
  main_graph_.clear();
  autocast_.casts.clear();
  more_outputs_.clear();
  detached_.clear();
  hand_over(parameters_, spare_memory<Parameters>());
}

// -- tensors --------------------------------------------------------------------------------------------------------

TensorBody* Tensor::hold(TensorBody* body) {
  if (body != nullptr) ++body->handles;
  return body;
}

void Tensor::let_go(TensorBody* body) {
  if (body != nullptr && --body->handles == 0) body->tape->drop(body);
}

TensorBody& Tensor::change() {
  if (body_->handles > 1) *this = body_->tape->on_storage(*body_);
  return *body_;
}

void Tensor::leave_graph() {
  TensorBody& body = change();
  body.requires_grad = false;
  body.is_leaf_parameter = false;
  body.is_detached_leaf = false;
  body.tape->lead(body, {});
}

bool Tensor::is_alone() const {
  if (storage() < 0) return true;
  return body_->handles == 1 && tape().storages()[static_cast<std::size_t>(storage())].references == 1;
}

Tensor Tape::on_storage(const TensorBody& description) {
  if (description.edge.node != nullptr) ++description.edge.node->users;
  return handle(description);
}

// c10/core/TensorImpl.cpp release_resources: first what autograd knows, then the storage.
void Tape::drop(TensorBody* body) {
  lead(*body, {});
  forget(body);
}

Tensor Tape::allocate_guarded(const Guard& guard, Bytes each, const char* op) {
  Tensor made = allocate(Shape{Dim(each * guard.outcome())}, Dtype::kUint8, op, true);
  if (made.storage() >= 0 && !is_elsewhere()) guard_storage({guard, each, made.storage()});
  return made;
}

// -- parameters -----------------------------------------------------------------------------------------------------

void Tape::rewind_parameters(std::int16_t instance) {
  const auto slot = static_cast<std::size_t>(instance + 1);
  if (parameter_cursor_.size() <= slot) {
    parameter_cursor_.resize(slot + 1, 0);
    parameter_order_.resize(slot + 1);
  }
  parameter_cursor_[slot] = 0;
  rewind_buffers(instance);
}

std::int32_t Tape::next_parameter() const {
  const auto slot = static_cast<std::size_t>(instance_of_parameters_ + 1);
  if (slot >= parameter_cursor_.size() || parameter_cursor_[slot] >= parameter_order_[slot].size()) {
    return static_cast<std::int32_t>(parameters_.size());
  }
  return parameter_order_[slot][parameter_cursor_[slot]];
}

Tensor Tape::existing_parameter(std::int32_t index) {
  if (placement_ != nullptr) placement_->use(index);
  const Parameter& p = parameters_[static_cast<std::size_t>(index)];
  Tensor made = on(p.storage, p.shape, p.dtype);
  TensorBody& body = made.change();
  body.requires_grad = p.requires_grad;
  body.is_leaf_parameter = true;
  if (p.requires_grad) body.edge.parameter = index;
  return made;
}

std::size_t Tape::parameter_place() const {
  const auto slot = static_cast<std::size_t>(instance_of_parameters_ + 1);
  return slot < parameter_cursor_.size() ? parameter_cursor_[slot] : 0;
}

void Tape::set_parameter_place(std::size_t place) {
  parameter_cursor_[static_cast<std::size_t>(instance_of_parameters_ + 1)] = place;
}

std::int32_t Tape::declare(const Parameter& declaration) {
  const auto slot = static_cast<std::size_t>(instance_of_parameters_ + 1);
  if (parameter_cursor_.size() <= slot) rewind_parameters(instance_of_parameters_);
  std::size_t& cursor = parameter_cursor_[slot];
  std::vector<std::int32_t>& order = parameter_order_[slot];
  if (cursor < order.size()) return order[cursor++];
  const std::int16_t before = enter(declaration.module, scopes()[static_cast<std::size_t>(scope_)].source);
  parameters_.push_back(declaration);
  Parameter& p = parameters_.back();
  p.instance = instance_of_parameters_;
  p.elsewhere = is_elsewhere();
  if (placement_ != nullptr) placement_->declare(p);
  if (p.storage_bytes == 0) p.storage_bytes = p.shape.numel() * size_of(p.dtype);
  p.storage = persistent(p.storage_bytes == p.shape.numel() * size_of(p.dtype) ? p.shape : Shape{Dim(p.storage_bytes)},
                         p.storage_bytes == p.shape.numel() * size_of(p.dtype) ? p.dtype : Dtype::kUint8, p.leaf,
                         Category::kWeights);
  leave(before);
  const auto index = static_cast<std::int32_t>(parameters_.size()) - 1;
  order.push_back(index);
  ++cursor;
  return index;
}

}  // namespace tidemark
