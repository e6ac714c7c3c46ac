#include "core/plan/zero_sizes.hpp"

namespace tidemark {
namespace {

// DeepSpeed 0.19.8 runtime/zero/config.py: DeepSpeedZeroConfig.
constexpr ZeroSizes kDeepSpeed = {500'000'000, 50'000'000, 100'000, 1'000'000'000, 1'000'000'000, 1'000'000'000};

}  // namespace

ZeroSizes zero_sizes(const Architecture& architecture, const TrainingJob& job) {
  const Zero& zero = job.data_parallel.zero;
  ZeroSizes sizes = kDeepSpeed;
  if (zero.hf_auto) {
    const Count h = architecture.hidden_size;
    sizes.reduce_bucket = h * h;
    sizes.prefetch_bucket = h * h * 9 / 10;
    sizes.persistence_threshold = 10 * h;
  }
  if (zero.reduce_bucket > 0) sizes.reduce_bucket = zero.reduce_bucket;
  if (zero.prefetch_bucket > 0) sizes.prefetch_bucket = zero.prefetch_bucket;
  if (zero.persistence_threshold >= 0) sizes.persistence_threshold = zero.persistence_threshold;
  if (zero.max_live > 0) sizes.max_live = zero.max_live;
  if (zero.max_reuse_distance > 0) sizes.max_reuse_distance = zero.max_reuse_distance;
  if (zero.sub_group > 0) sizes.sub_group = zero.sub_group;
  return sizes;
}

void become_flat(Tape& tape, Count elements) {
  bool first = true;
  for (Parameter& p : tape.parameters()) {
    if (!p.requires_grad) continue;
    p.whole = p.shape.numel();
    p.reached = first;
    if (first) {
      p.shape = Shape{Dim(elements)};
      p.dtype = Dtype::kFp32;
      p.instance = -1;
      p.is_embedding = false;
      p.module = "ZeRO";
    }
    first = false;
  }
}

void create_flat_states(OptimizerRun& run) {
  const Category before = run.tape.default_category();
  run.tape.set_default_category(Category::kOptimizerStates);
  const Optimizer& row = *find_optimizer(run.job.optimizer);
  run.for_each_trained([&](const Parameter& p) { row.create(run, p); });
  run.tape.set_default_category(before);
}

Bytes flat_states_on_host(const Tape& of, const TrainingJob& job) {
  Tape host;
  OptimizerRun states(host, job);
  for (const Parameter& p : of.parameters()) {
    if (p.reached) host.parameters().push_back(p);
  }
  for (Parameter& p : host.parameters()) p.grad = {};
  create_flat_states(states);
  Bytes bytes = 0;
  for (const Storage& storage : host.storages()) bytes += storage.bytes;
  return bytes;
}

void step_flat(OptimizerRun& run) {
  run.step_alone();
}

}  // namespace tidemark
