#include "core/tape/record.hpp"

#include <algorithm>
#include <cstring>

#include "core/tape/spare.hpp"
#include "core/tape/tape.hpp"

namespace tidemark {

struct Record::Memory {
  std::vector<Event> events;
  std::vector<Storage> storages;
  std::vector<Site> sites;
  std::vector<std::int32_t> site_table;
  std::vector<std::unique_ptr<TensorBody[]>> bodies;
  std::vector<TensorBody*> spare_bodies;
};

Record::Record(Tape* tape) : tape_(tape) {
  Memory& spare = spare_memory<Memory>();
  hand_over(spare.events, events_);
  hand_over(spare.storages, storages_);
  hand_over(spare.sites, sites_);
  hand_over(spare.site_table, site_table_);
  hand_over(spare.spare_bodies, spare_bodies_);
  bodies_ = std::move(spare.bodies);
  spare.bodies.clear();
  events_.reserve(4096);
  storages_.reserve(2048);
  sites_.reserve(512);
  scopes_.reserve(64);
  segments_.reserve(64);
  site_table_.assign(2048, -1);
  scopes_.push_back({"", ""});
  segments_.push_back({Phase::kForward, -1, 0, 0});
}

Record::~Record() {
  Memory& spare = spare_memory<Memory>();
  hand_over(events_, spare.events);
  hand_over(storages_, spare.storages);
  hand_over(sites_, spare.sites);
  hand_over(site_table_, spare.site_table);
  hand_over(spare_bodies_, spare.spare_bodies);
  spare.bodies = std::move(bodies_);
}

void Record::scale(Category category, double factor) {
  for (Storage& s : storages_) {
    if (sites_[static_cast<std::size_t>(s.site)].category != category) continue;
    s.bytes = static_cast<Bytes>(static_cast<double>(s.bytes) * factor);
  }
}

void Record::close() {
  if (closed_) return;
  closed_ = true;
  segments_.back().end = static_cast<std::uint32_t>(events_.size());
}

// -- sites ----------------------------------------------------------------------------------------------------------

namespace {
std::uint64_t hash_site(std::int16_t scope, bool backward, Dtype dtype, const char* op, Count numel) {
  const auto place = static_cast<std::uint64_t>(scope) * 256 + static_cast<std::uint64_t>(dtype) * 2 + backward;
  const auto letter = static_cast<unsigned char>(op[0]);  // a cheap one: the comparison below decides
  std::uint64_t hash = (place * 256 + letter) * 0x9E3779B97F4A7C15ULL;
  hash ^= static_cast<std::uint64_t>(numel) * 0xC2B2AE3D27D4EB4FULL;
  return hash ^ (hash >> 29);
}
}  // namespace

void Record::grow_site_table() {
  site_table_.assign(site_table_.size() * 2, -1);
  const std::size_t mask = site_table_.size() - 1;
  for (std::size_t s = 0; s < sites_.size(); ++s) {
    const Site& site = sites_[s];
    std::size_t i = hash_site(site.scope, site.backward, site.dtype, site.op, site.numel) & mask;
    while (site_table_[i] >= 0) i = (i + 1) & mask;
    site_table_[i] = static_cast<std::int32_t>(s);
  }
}

std::int32_t Record::site_of(const Shape& shape, Count numel, Dtype dtype, const char* op) {
  // A site is (scope, op, direction, dtype, size): a small open-addressing table finds it again.
  const std::uint64_t hash = hash_site(scope_, gradients_flow_, dtype, op, numel);
  const std::size_t mask = site_table_.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    const std::int32_t found = site_table_[i];
    if (found < 0) {
      if (sites_.size() * 2 > site_table_.size()) {
        grow_site_table();
        return site_of(shape, numel, dtype, op);
      }
      Site& site = sites_.emplace_back();
      site.scope = scope_;
      site.op = op;
      site.backward = gradients_flow_;
      site.dtype = dtype;
      site.numel = numel;
      site.shape = shape;
      site.category = category_;
      if (category_ == Category::kActivations) {
        for (int d = 0; d < shape.rank; ++d) {
          if (shape.dims[d].symbol() == Symbol::kVocab && shape.dims[d].n() > 1) site.category = Category::kLogitsLoss;
        }
      }
      site_table_[i] = static_cast<std::int32_t>(sites_.size()) - 1;
      return site_table_[i];
    }
    const Site& site = sites_[static_cast<std::size_t>(found)];
    if (site.scope == scope_ && site.backward == gradients_flow_ && site.dtype == dtype && site.numel == numel &&
        (site.op == op || std::strcmp(site.op, op) == 0) &&
        (category_ == Category::kActivations || site.category == category_)) {
      return found;
    }
  }
}

void Record::set_category(const Tensor& tensor, Category category) {
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
             other.dtype == site.dtype && other.backward == site.backward && other.numel == site.numel;
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

// -- allocation -----------------------------------------------------------------------------------------------------

Tensor Record::allocate(const Shape& shape, Dtype dtype, const char* op, bool guarded) {
  const bool keeps = kept_ != nullptr && !stopped_;
  if (keeps && kept_->taken_again) return std::move(kept_->results[kept_->next++]);
  TensorBody& body = new_body(shape, dtype);
  if (!stopped_) {
    const Count numel = shape.numel();
    body.storage = static_cast<std::int32_t>(storages_.size());
    Storage& storage = storages_.emplace_back();
    storage.bytes = is_elsewhere() ? 0 : numel * size_of(dtype);
    storage.references = 1;
    storage.site = site_of(shape, numel, dtype, op);
    storage.stream = stream_;
    storage.guarded = guarded && !is_elsewhere();
    storage.card = card_;
    if (storage.guarded || storage.bytes > 0) note(Event::Kind::kAllocate, body.storage);
  }
  Tensor made(&body);
  if (keeps) kept_->results.push_back(handle(body));
  return made;
}

Tensor Record::part_of_buffer(const Shape& shape, Dtype dtype) {
  return Tensor(&new_body(shape, dtype));
}

TensorBody& Record::spare_body() {
  if (!spare_bodies_.empty()) {
    TensorBody& body = *spare_bodies_.back();
    spare_bodies_.pop_back();
    return body;
  }
  if (body_count_ / kBodyChunk >= bodies_.size()) bodies_.push_back(std::make_unique<TensorBody[]>(kBodyChunk));
  TensorBody& body = bodies_[body_count_ / kBodyChunk][body_count_ % kBodyChunk];
  ++body_count_;
  return body;
}

// Field by field: to copy a body that has just been put together waits for its parts to reach the cache.
TensorBody& Record::new_body(const Shape& shape, Dtype dtype) {
  TensorBody& body = spare_body();
  body.shape = shape;
  body.dtype = dtype;
  body.requires_grad = false;
  body.is_leaf_parameter = false;
  body.is_detached_leaf = false;
  body.is_view = false;
  body.storage = -1;
  body.offset = 0;
  body.edge.node = nullptr;
  body.edge.output = 0;
  body.edge.parameter = -1;
  body.tape = tape_;
  body.handles = 0;
  return body;
}

Tensor Record::handle(const TensorBody& description) {
  TensorBody& body = spare_body();
  body = description;
  body.tape = tape_;
  body.handles = 0;
  if (body.storage >= 0) ++storages_[static_cast<std::size_t>(body.storage)].references;
  return Tensor(&body);
}

Tensor Record::on(std::int32_t storage, const Shape& shape, Dtype dtype) {
  TensorBody& body = new_body(shape, dtype);
  body.storage = storage;
  ++storages_[static_cast<std::size_t>(storage)].references;
  return Tensor(&body);
}

void Record::forget(TensorBody* body) {
  spare_bodies_.push_back(body);
  if (body->storage < 0) return;
  Storage& s = storages_[static_cast<std::size_t>(body->storage)];
  if (--s.references > 0 || (s.bytes == 0 && !s.guarded) || closed_) return;
  note(s.used_on == 0 ? Event::Kind::kFree : Event::Kind::kFreeAfter, body->storage);
}

void Record::record_stream(const Tensor& tensor, Stream stream) {
  if (tensor.storage() < 0) return;
  Storage& s = storages_[static_cast<std::size_t>(tensor.storage())];
  if (s.stream != stream) s.used_on |= std::uint32_t{1} << stream;
}

void Record::scratch(std::initializer_list<std::pair<Bytes, const char*>> sizes) {
  if (stopped_) return;
  const Category before = category_;
  category_ = Category::kWorkspace;
  Few<Tensor, 8> live;
  for (const auto& [bytes, label] : sizes) {
    if (bytes > 0) live.push_back(allocate(Shape{Dim(bytes)}, Dtype::kUint8, label));
  }
  category_ = before;
}

std::int32_t Record::persistent(const Shape& shape, Dtype dtype, const char* name, Category category) {
  const Category before = category_;
  category_ = category;
  Storage storage;
  const Count numel = shape.numel();
  storage.bytes = is_elsewhere() ? 0 : numel * size_of(dtype);
  storage.card = card_;
  storage.references = 1;  // never released: it was there before the step and is there after it
  storage.site = site_of(shape, numel, dtype, name);
  category_ = before;
  storages_.push_back(storage);
  return static_cast<std::int32_t>(storages_.size()) - 1;
}

Tensor Record::standing(const Shape& shape, Dtype dtype, const char* name, Category category) {
  buffers_.push_back(persistent(shape, dtype, name, category));
  buffer_instances_.push_back(-1);
  return on(buffers_.back(), shape, dtype);
}

void Record::rewind_buffers(std::int16_t instance) {
  const auto slot = static_cast<std::size_t>(instance + 1);
  if (buffer_cursor_.size() <= slot) {
    buffer_cursor_.resize(slot + 1, 0);
    buffer_count_.resize(slot + 1, 0);
  }
  buffer_cursor_[slot] = 0;
}

void Record::buffer(const char* name, Bytes bytes, Category category) {
  const auto slot = static_cast<std::size_t>(instance_of_parameters_ + 1);
  if (buffer_cursor_.size() <= slot) rewind_buffers(instance_of_parameters_);
  if (buffer_cursor_[slot]++ < buffer_count_[slot]) return;
  ++buffer_count_[slot];
  buffers_.push_back(persistent(Shape{Dim(bytes)}, Dtype::kUint8, name, category));
  buffer_instances_.push_back(instance_of_parameters_);
}

void Record::further_buffer(const char* name, Bytes bytes, Category category) {
  const auto slot = static_cast<std::size_t>(instance_of_parameters_ + 1);
  if (buffer_cursor_.size() <= slot) rewind_buffers(instance_of_parameters_);
  buffer_cursor_[slot] = buffer_count_[slot];
  buffer(name, bytes, category);
}

// -- places ---------------------------------------------------------------------------------------------------------

std::int16_t Record::enter(const char* module, const char* source) {
  const std::int16_t previous = scope_;
  // Names are literals or stand in a list for good: the same place of the program has the same pointers.
  constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15ULL;  // of 2^64: Knuth 6.4, Fibonacci hashing
  const auto names = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(module)) * 31U +
                     static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(source));
  std::int16_t& known = remembered_[(names * kGoldenRatio) >> (64 - kScopeBits)];
  const auto is_it = [&](std::int16_t i) {
    const ScopeName& scope = scopes_[static_cast<std::size_t>(i)];
    return scope.module == module && scope.source == source;
  };
  if (!is_it(known)) {
    known = 0;
    const auto all = static_cast<std::int16_t>(scopes_.size());
    while (known < all && !is_it(known)) ++known;
    if (known == all) scopes_.push_back({module, source});
  }
  scope_ = known;
  return previous;
}

void Record::begin_segment(Phase phase, std::int16_t instance) {
  Segment& last = segments_.back();
  const auto now = static_cast<std::uint32_t>(events_.size());
  phase_ = phase;
  instance_ = instance;
  if (!force_segment_ && last.phase == phase && last.instance == instance) return;
  force_segment_ = false;
  last.end = now;
  segments_.push_back({phase, instance, now, now});
}

}  // namespace tidemark
