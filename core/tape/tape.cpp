#include "core/tape/tape.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tidemark {

namespace {
// A tape's memory is handed to the next one: asking the system for it, page by page, takes longer than the step itself.
template <class T>
void hand_over(std::vector<T>& from, std::vector<T>& to) {
  to = std::move(from);
  to.clear();
}
}  // namespace

struct Tape::Memory {
  std::vector<std::int32_t> events;
  std::vector<Storage> storages;
  std::vector<Site> sites;
  std::vector<Parameter> parameters;
  std::vector<std::int32_t> site_table;
  std::vector<std::unique_ptr<TensorBody[]>> bodies;
  std::vector<TensorBody*> spare_bodies;
  std::vector<std::unique_ptr<Node[]>> chunks;  // nodes let go of what they held, and are filled anew when used

  static Memory& spare() {
#if defined(__EMSCRIPTEN__)  // one thread, and LLVM 14 links no thread-local storage for it
    static Memory memory;
#else
    thread_local Memory memory;
#endif
    return memory;
  }
};

Tape::Tape() {
  Memory& spare = Memory::spare();
  hand_over(spare.events, events_);
  hand_over(spare.storages, storages_);
  hand_over(spare.sites, sites_);
  hand_over(spare.parameters, parameters_);
  hand_over(spare.site_table, site_table_);
  hand_over(spare.spare_bodies, spare_bodies_);
  bodies_ = std::move(spare.bodies);
  spare.bodies.clear();
  chunks_ = std::move(spare.chunks);
  spare.chunks.clear();
  events_.reserve(4096);
  storages_.reserve(2048);
  sites_.reserve(512);
  scopes_.reserve(64);
  segments_.reserve(64);
  parameters_.reserve(128);
  site_table_.assign(2048, -1);
  scopes_.push_back({"", ""});
  segments_.push_back({Phase::kForward, -1, 0, 0});
}

Tape::~Tape() {
  close();
  finish();
  Memory& spare = Memory::spare();
  hand_over(events_, spare.events);
  hand_over(storages_, spare.storages);
  hand_over(sites_, spare.sites);
  hand_over(parameters_, spare.parameters);
  hand_over(site_table_, spare.site_table);
  hand_over(spare_bodies_, spare.spare_bodies);
  spare.bodies = std::move(bodies_);
  spare.chunks = std::move(chunks_);
}

void Tape::close() {
  if (closed_) return;
  closed_ = true;
  segments_.back().end = static_cast<std::uint32_t>(events_.size());
}

void Tape::finish() {
  for (std::int32_t i = 0; i < node_count_; ++i) {
    Node& n = node(i);
    n.grad.reset();
    n.more_grads.reset();
  }
  saved_chunks_.clear();
  frames_.clear();
  calls_.clear();
  autocast_cache_.clear();
  second_output_.reset();
  for (Parameter& p : parameters_) {
    p.grad.reset();
    p.buffer.reset();
  }
}

// -- bends ----------------------------------------------------------------------------------------------------------

Count Bend::outcome() const {
  switch (kind) {
    case Kind::kAbove:
      return quantity > parameter ? 1 : 0;
    case Kind::kQuotient:
      return (quantity + offset) / parameter;
    case Kind::kMultiple:
      return quantity % parameter == 0 ? 1 : 0;
    default: {
      Count power = 1;
      while (power * parameter < quantity) power *= 2;
      return power;
    }
  }
}

Count Tape::bend(const Bend& bend) {
  if (std::find(bends_.begin(), bends_.end(), bend) == bends_.end()) bends_.push_back(bend);
  return bend.outcome();
}

// -- allocation -----------------------------------------------------------------------------------------------------

namespace {
std::uint64_t hash_site(std::int16_t scope, const char* op, Count numel) {
  std::uint64_t hash = static_cast<std::uint64_t>(scope) * 0x9E3779B97F4A7C15ULL;
  hash ^= static_cast<std::uint64_t>(numel) * 0xC2B2AE3D27D4EB4FULL;
  hash += static_cast<unsigned char>(op[0]) * 31U;  // a cheap letter: the comparison below decides
  return hash ^ (hash >> 29);
}
}  // namespace

void Tape::grow_site_table() {
  site_table_.assign(site_table_.size() * 2, -1);
  const std::size_t mask = site_table_.size() - 1;
  for (std::size_t s = 0; s < sites_.size(); ++s) {
    std::size_t i = hash_site(sites_[s].scope, sites_[s].op, sites_[s].shape.numel()) & mask;
    while (site_table_[i] >= 0) i = (i + 1) & mask;
    site_table_[i] = static_cast<std::int32_t>(s);
  }
}

std::int32_t Tape::site_of(const Shape& shape, Dtype dtype, const char* op) {
  // A site is (scope, op, direction, dtype, size): a small open-addressing table finds it again.
  const Count numel = shape.numel();
  const bool backward = in_backward_ && recomputing_ == nullptr && !grad_enabled_;
  const std::uint64_t hash = hash_site(scope_, op, numel);
  const std::size_t mask = site_table_.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    const std::int32_t found = site_table_[i];
    if (found < 0) {
      if (sites_.size() * 2 > site_table_.size()) {
        grow_site_table();
        return site_of(shape, dtype, op);
      }
      Site site;
      site.scope = scope_;
      site.op = op;
      site.backward = backward;
      site.dtype = dtype;
      site.shape = shape;
      site.category = category_;
      if (category_ == Category::kActivations) {
        for (int d = 0; d < shape.rank; ++d) {
          if (shape.dims[d].symbol == Symbol::kVocab && shape.dims[d].n > 1) site.category = Category::kLogitsLoss;
        }
      }
      sites_.push_back(site);
      site_table_[i] = static_cast<std::int32_t>(sites_.size()) - 1;
      return site_table_[i];
    }
    const Site& site = sites_[static_cast<std::size_t>(found)];
    if (site.scope == scope_ && site.backward == backward && site.dtype == dtype && site.shape.numel() == numel &&
        (site.op == op || std::strcmp(site.op, op) == 0) &&
        (category_ == Category::kActivations || site.category == category_)) {
      return found;
    }
  }
}

Tensor Tape::allocate(const Shape& shape, Dtype dtype, const char* op) {
  TensorBody body;
  body.shape = shape;
  body.dtype = dtype;
  if (!stopped_) {
    Storage storage;
    storage.bytes = shape.numel() * size_of(dtype);
    storage.site = site_of(shape, dtype, op);
    body.storage = static_cast<std::int32_t>(storages_.size());
    storages_.push_back(storage);
    if (storage.bytes > 0) events_.push_back(body.storage + 1);
  }
  return on_storage(body);
}

Tensor Tape::part_of_buffer(const Shape& shape, Dtype dtype) {
  TensorBody body;
  body.shape = shape;
  body.dtype = dtype;
  return on_storage(body);
}

Tensor Tape::on_storage(const TensorBody& description) {
  TensorBody* body = nullptr;
  if (!spare_bodies_.empty()) {
    body = spare_bodies_.back();
    spare_bodies_.pop_back();
  } else {
    if (body_count_ / kBodyChunk >= bodies_.size()) bodies_.push_back(std::make_unique<TensorBody[]>(kBodyChunk));
    body = &bodies_[body_count_ / kBodyChunk][body_count_ % kBodyChunk];
    ++body_count_;
  }
  *body = description;
  body->tape = this;
  body->handles = 0;
  if (body->storage >= 0) ++storages_[static_cast<std::size_t>(body->storage)].references;
  return Tensor(body);
}

void Tape::drop(TensorBody* body) {
  spare_bodies_.push_back(body);
  if (body->storage < 0) return;
  Storage& s = storages_[static_cast<std::size_t>(body->storage)];
  if (--s.references == 0 && s.bytes > 0 && !closed_) events_.push_back(-(body->storage + 1));
}

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
  body.edge = {};
}

bool Tensor::is_alone() const {
  if (storage() < 0) return true;
  return body_->handles == 1 && tape().storages_[static_cast<std::size_t>(storage())].references == 1;
}

void Tape::scratch(std::initializer_list<std::pair<Bytes, const char*>> sizes) {
  if (stopped_) return;
  const Category before = category_;
  category_ = Category::kWorkspace;
  Tensor live[8];
  int n = 0;
  for (const auto& [bytes, label] : sizes) {
    if (bytes <= 0) continue;
    live[n++] = allocate(Shape{Dim(bytes)}, Dtype::kUint8, label);
  }
  category_ = before;
}

void Tape::set_category(const Tensor& tensor, Category category) {
  if (tensor.storage() < 0) return;
  Storage& s = storages_[static_cast<std::size_t>(tensor.storage())];
  const auto from = static_cast<std::size_t>(s.site);
  if (sites_[from].category == category) return;
  std::int32_t& known = sites_[from].recategorised;
  if (known < 0 || sites_[static_cast<std::size_t>(known)].category != category) {
    // Same place, other category: find it or make it.
    const Site site = sites_[from];
    const auto found = std::find_if(sites_.begin(), sites_.end(), [&](const Site& other) {
      return other.category == category && other.scope == site.scope && other.op == site.op &&
             other.dtype == site.dtype && other.backward == site.backward && other.shape.numel() == site.shape.numel();
    });
    known = static_cast<std::int32_t>(found - sites_.begin());
    if (found == sites_.end()) {
      sites_.push_back(site);
      sites_.back().category = category;
      sites_.back().recategorised = -1;
      sites_[from].recategorised = static_cast<std::int32_t>(sites_.size()) - 1;
    }
  }
  s.site = sites_[from].recategorised;
}

// -- places ---------------------------------------------------------------------------------------------------------

std::int16_t Tape::enter(const char* module, const char* source) {
  const std::int16_t previous = scope_;
  // Programs enter scopes in the same order again and again: look just behind the last one first.
  const std::size_t n = scopes_.size();
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t i = (static_cast<std::size_t>(previous) + 1 + k) % n;
    if (scopes_[i].module == module && scopes_[i].source == source) {
      scope_ = static_cast<std::int16_t>(i);
      return previous;
    }
  }
  scopes_.push_back({module, source});
  scope_ = static_cast<std::int16_t>(n);
  return previous;
}

void Tape::begin_segment(Phase phase, std::int16_t instance) {
  Segment& last = segments_.back();
  const auto now = static_cast<std::uint32_t>(events_.size());
  phase_ = phase;
  instance_ = instance;
  if (!force_segment_ && last.phase == phase && last.instance == instance) return;
  force_segment_ = false;
  last.end = now;
  segments_.push_back({phase, instance, now, now});
}

// -- parameters -----------------------------------------------------------------------------------------------------

void Tape::rewind_parameters(std::int16_t instance) {
  const auto slot = static_cast<std::size_t>(instance + 1);
  if (parameter_cursor_.size() <= slot) {
    parameter_cursor_.resize(slot + 1, 0);
    parameter_order_.resize(slot + 1);
    buffer_cursor_.resize(slot + 1, 0);
    buffer_count_.resize(slot + 1, 0);
  }
  parameter_cursor_[slot] = 0;
  buffer_cursor_[slot] = 0;
}

Tensor Tape::existing_parameter(std::int32_t index) {
  Parameter& p = parameters_[static_cast<std::size_t>(index)];
  last_parameter_ = index;
  TensorBody body;
  body.storage = p.storage;
  body.shape = p.shape;
  body.dtype = p.dtype;
  body.requires_grad = p.requires_grad;
  body.is_leaf_parameter = true;
  if (p.requires_grad) body.edge = {-2 - index, 0};
  return on_storage(body);
}

Tensor Tape::parameter(const Parameter& declaration) {
  const auto slot = static_cast<std::size_t>(instance_of_parameters_ + 1);
  if (parameter_cursor_.size() <= slot) rewind_parameters(instance_of_parameters_);
  std::size_t& cursor = parameter_cursor_[slot];
  std::vector<std::int32_t>& order = parameter_order_[slot];
  if (cursor < order.size()) return existing_parameter(order[cursor++]);
  const std::int16_t before = enter(declaration.module, scopes_[static_cast<std::size_t>(scope_)].source);
  parameters_.push_back(declaration);
  Parameter& p = parameters_.back();
  p.instance = instance_of_parameters_;
  if (p.storage_bytes == 0) p.storage_bytes = p.shape.numel() * size_of(p.dtype);
  p.storage = persistent(p.storage_bytes == p.shape.numel() * size_of(p.dtype) ? p.shape : Shape{Dim(p.storage_bytes)},
                         p.storage_bytes == p.shape.numel() * size_of(p.dtype) ? p.dtype : Dtype::kUint8, p.leaf,
                         Category::kWeights);
  leave(before);
  const auto index = static_cast<std::int32_t>(parameters_.size()) - 1;
  order.push_back(index);
  ++cursor;
  return existing_parameter(index);
}

std::int32_t Tape::persistent(const Shape& shape, Dtype dtype, const char* name, Category category) {
  const Category before = category_;
  category_ = category;
  Storage storage;
  storage.bytes = shape.numel() * size_of(dtype);
  storage.references = 1;  // never released: it was there before the step and is there after it
  storage.site = site_of(shape, dtype, name);
  category_ = before;
  storages_.push_back(storage);
  return static_cast<std::int32_t>(storages_.size()) - 1;
}

void Tape::buffer(const char* name, Bytes bytes, Category category) {
  const auto slot = static_cast<std::size_t>(instance_of_parameters_ + 1);
  if (buffer_cursor_.size() <= slot) rewind_parameters(instance_of_parameters_);
  if (buffer_cursor_[slot]++ < buffer_count_[slot]) return;
  ++buffer_count_[slot];
  buffers_.push_back(persistent(Shape{Dim(bytes)}, Dtype::kUint8, name, category));
  buffer_instances_.push_back(instance_of_parameters_);
}

}  // namespace tidemark
