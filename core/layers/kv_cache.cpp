#include "core/layers/kv_cache.hpp"

#include <utility>

namespace tidemark {
namespace {

constexpr const char* kUpdate = "transformers 5.12 cache_utils.py: DynamicLayer.update";

Tensor joined(Net& net, const Tensor& states, Count length) {
  const Shape& s = states.shape();
  return net.tape.allocate(Shape{s.dim(0), s.dim(1), Dim(length), s.dim(3)}, states.dtype(), "cat");
}

// FunctionsManual.cpp: cat_tensors_backward: a view of the gradient.
void handed_on(Tape&, Node&, Tensor* g, Tensor* r) {
  r[0] = std::move(g[0]);
}

// torch.cat of an empty tensor and these, of which a graph may be made where a forward that trains keeps a cache.
Tensor joined_to_nothing(Net& net, const Tensor& states) {
  Node* const n = net.tape.record("cat", handed_on, {&states});
  Tensor out = joined(net, states, states.size(2));
  if (n != nullptr) net.tape.attach(n, out);
  return out;
}

/// A layer's weights are whole while its attention runs, where GPUs divide them.
class LayerRuns {
 public:
  LayerRuns(Placement* placement, std::int16_t instance) : placement_(placement), instance_(instance) {
    if (placement_ != nullptr) placement_->enter_layer(instance_, false);
  }
  ~LayerRuns() {
    if (placement_ != nullptr) placement_->leave_layer(instance_);
  }
  LayerRuns(const LayerRuns&) = delete;
  LayerRuns& operator=(const LayerRuns&) = delete;

 private:
  Placement* placement_;
  std::int16_t instance_;
};

}  // namespace

void keep_keys(Net& net, Tensor& keys, Tensor& values, bool grows) {
  KvCache* const cache = net.kv_cache();
  if (cache == nullptr) return;
  Scope in(net.tape, "past_key_values", kUpdate);
  for (CachedAttention& known : *cache) {  // behind a learned prefix
    if (net.prefix == nullptr || known.instance != net.tape.instance()) continue;
    Tensor longer = cat({&known.keys, &keys}, 2);
    known.keys = keys = std::move(longer);
    longer = cat({&known.values, &values}, 2);
    known.values = values = std::move(longer);
    return;
  }
  CachedAttention entry;
  entry.instance = net.tape.instance();
  entry.grows = grows;
  entry.keys = joined_to_nothing(net, keys);
  entry.values = joined_to_nothing(net, values);
  keys = entry.keys;
  values = entry.values;
  cache->push_back(std::move(entry));
}

void decode_until(Net& net, KvCache& cache, Count length) {
  Tape& t = net.tape;
  Placement* const placement = t.placement();
  if (placement != nullptr) placement->begin_token();
  for (CachedAttention& entry : cache) {
    t.begin_segment(Phase::kForward, entry.instance);
    const LayerRuns runs(placement, entry.instance);
    if (entry.grows) {
      Scope in(t, "past_key_values", kUpdate);
      Tensor keys = joined(net, entry.keys, length);
      entry.keys = std::move(keys);
      Tensor values = joined(net, entry.values, length);
      entry.values = std::move(values);
    }
    if (entry.query_heads == 0) continue;
    const Shape& s = entry.keys.shape();
    const Tensor query =
        t.allocate(Shape{s.dim(0), Dim(entry.query_heads, Symbol::kHeads), Dim(1), s.dim(3)}, entry.keys.dtype(), "q");
    AttentionOptions options = entry.options;
    if (net.job.padding && !wants_flash(net.job))
      options.mask = t.allocate(Shape{s.dim(0), Dim(1), Dim(1), s.dim(2)}, Dtype::kBool, "attention mask");
    const Tensor out = attention(net, query, entry.keys, entry.values, options);
    net.attention_weights.reset();
  }
  t.begin_segment(Phase::kForward, -1);
  if (placement != nullptr) placement->end_token();
}

void let_cache_go(Net& net, KvCache& cache) {
  for (CachedAttention& entry : cache) {
    net.tape.begin_segment(net.tape.phase(), entry.instance);
    entry.keys.reset();
    entry.values.reset();
  }
  cache.clear();
  net.tape.begin_segment(net.tape.phase(), -1);
}

}  // namespace tidemark
