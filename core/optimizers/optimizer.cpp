#include "core/optimizers/optimizer.hpp"

namespace tidemark {

const Optimizer* find_optimizer(std::string_view name) {
  for (const Optimizer* row : all_optimizers()) {
    if (row->name == name) return row;
  }
  return nullptr;
}

Bytes state_bytes_per_element(const TrainingJob& job) {
  constexpr Count kSide = 4096;  // large enough that blocks' scales and factored moments round away
  Tape tape;
  Parameter matrix;
  matrix.shape = Shape{Dim(kSide), Dim(kSide)};
  matrix.dtype = job.recipe.weights;
  matrix.reached = true;
  OptimizerRun run(tape, job);
  find_optimizer(job.optimizer)->create(run, matrix);
  Bytes kept = 0;
  for (const Storage& storage : tape.storages()) kept += storage.bytes;
  return (kept + run.managed_bytes(matrix)) / (kSide * kSide);
}

void OptimizerRun::keep(const Shape& shape, Dtype dtype, const char* name) {
  states_.push_back(tape.allocate(shape, dtype, name));
}

Dtype OptimizerRun::state_dtype(const Parameter& p) const {
  const bool stated = job.recipe.master_weights || (job.recipe.name == "custom" && !p.is_adapter);
  return stated ? job.recipe.optimizer_states : p.dtype;
}

Bytes OptimizerRun::managed_bytes(const Parameter& p) const {
  return p.reached && row_.managed != nullptr ? row_.managed(p) : 0;
}

void OptimizerRun::create() {
  const Category before = tape.default_category();
  tape.set_default_category(Category::kOptimizerStates);
  for_each_trained([this](const Parameter& p) {
    if (job.recipe.master_weights) keep(p.shape, *job.recipe.master_weights, "master weight");
    row_.create(*this, p);
  });
  tape.set_default_category(before);
}

void OptimizerRun::step() {
  const Category before = tape.default_category();
  tape.set_default_category(Category::kWorkspace);
  if (job.max_grad_norm > 0.0) {
    // clip_grad_norm_: one norm per gradient; the scaling is in place.
    std::vector<Tensor> norms;
    for_each_trained([&](const Parameter& p) { norms.push_back(tape.allocate(Shape{}, p.dtype, "gradient norm")); });
    // Dropped layer by layer, so that each layer's segment frees what it made.
    std::size_t i = 0;
    for_each_trained([&](const Parameter&) { norms[i++].reset(); });
  }
  if (row_.step != nullptr) row_.step(*this);
  tape.set_default_category(before);
}

}  // namespace tidemark
