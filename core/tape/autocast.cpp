// pytorch v2.6.0 aten/src/ATen/autocast_mode.cpp: cached_cast, and the cache that lasts as long as the context.
#include "core/tape/ops.hpp"
#include "core/tape/tape.hpp"

namespace tidemark {

Tensor Tape::autocast_cast(Tensor tensor, Dtype dtype) {
  Tensor t = std::move(tensor);
  if (t.dtype() == dtype || !is_floating(t.dtype())) return t;
  const bool is_leaf = t.is_leaf_parameter() || t.body().is_detached_leaf;
  const bool cacheable = is_leaf && t.requires_grad() && t.dtype() == Dtype::kFp32 && is_half(dtype);
  const std::int32_t key = t.storage();
  if (cacheable && key <= autocast_.last) {
    for (const Autocast::Cast& known : autocast_.casts) {
      if (known.storage == key) return known.cast;
    }
  }
  const bool weight = t.is_leaf_parameter();
  Tensor out = to(std::move(t), dtype);
  if (weight) set_category(out, Category::kBuffers);
  if (cacheable) {
    autocast_.casts.push_back({key, instance_of_parameters_, out});
    autocast_.last = std::max(autocast_.last, key);
  }
  return out;
}

void Tape::clear_autocast_cache() {
  const Phase phase = this->phase();
  for (Autocast::Cast& known : autocast_.casts) {
    begin_segment(phase, known.instance);
    known.cast.reset();
  }
  autocast_.casts.clear();
  autocast_.last = -1;
  begin_segment(phase, -1);
}

}  // namespace tidemark
