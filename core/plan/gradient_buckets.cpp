#include "core/plan/gradient_buckets.hpp"

#include <algorithm>

namespace tidemark {
namespace {

// torch.distributed._DEFAULT_FIRST_BUCKET_BYTES: a small first bucket starts the reduction early.
constexpr Bytes kFirstBucket = kMiB;

/// Gradients of the model in the order in which backward finishes them: against the order of their use. What gets none
/// has its place, too (torch 2.14 nn/parallel/distributed.py: _build_params_for_reducer).
std::vector<Bytes> ready_gradients(const Tape& tape, const LayerPlan& plan) {
  const std::vector<Parameter>& parameters = tape.parameters();
  std::vector<Bytes> sizes;
  plan.in_model_order(
      parameters.size(), [&](std::size_t i) { return parameters[i].instance; },
      [&](std::size_t i) {
        const Parameter& p = parameters[i];
        if (p.requires_grad) sizes.push_back(p.shape.numel() * size_of(p.dtype));
      });
  std::reverse(sizes.begin(), sizes.end());
  return sizes;
}

}  // namespace

std::vector<Bytes> gradient_buckets(const Tape& tape, const LayerPlan& plan, const DataParallel& how) {
  std::vector<Bytes> buckets;
  if (!how.is_replicated()) return buckets;
  const auto cap = static_cast<Bytes>(how.bucket_cap_mb * static_cast<double>(kMiB));
  Bytes gathered = 0;
  const auto close = [&] {
    buckets.push_back(gathered);
    gathered = 0;
  };
  for (const Bytes size : ready_gradients(tape, plan)) {
    gathered += size;
    if (gathered >= (buckets.empty() ? kFirstBucket : cap)) close();
  }
  if (gathered > 0) close();
  return buckets;
}

}  // namespace tidemark
