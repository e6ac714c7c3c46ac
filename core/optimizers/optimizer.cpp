#include "core/optimizers/optimizer.hpp"

#include <utility>

#include "core/optimizers/low_rank.hpp"

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
  const auto create_frozen = job.keeps_states_of_frozen ? row_.create : row_.create_frozen;
  for (std::size_t i = 0; create_frozen != nullptr && i < tape.parameters().size(); ++i) {
    const Parameter& p = tape.parameters()[i];
    if (p.reached || !p.counts) continue;
    tape.begin_segment(Phase::kOptimizer, p.instance);
    const Scope in(tape, p.module, row_.source);
    create_frozen(*this, p);
  }
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
  step_alone();
  tape.set_default_category(before);
}

void OptimizerRun::step_alone() {
  if (row_.step != nullptr) row_.step(*this);
  if (row_.update != nullptr && !job.optimizer_in_backward) update_one_by_one();
}

namespace {

/// What a name of a loop held, to be made again.
struct HeldName {
  std::size_t name;  ///< whose
  Shape shape;
  Dtype dtype;
};

// What the names alone hold; gradients stay where they are.
std::vector<HeldName> let_go(StepNames& names) {
  std::vector<HeldName> held;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Tensor last = std::move(names[i]);
    if (last.defined() && last.is_alone()) held.push_back({i, last.shape(), last.dtype()});
  }
  return held;
}

// torch 2.14 csrc/autograd/engine.cpp: the hook of a linear layer's bias runs before that of its weight, whose gradient
// has its transposition's node to pass.
bool comes_before(const Tape& tape, std::int32_t parameter, std::int32_t waiting) {
  if (waiting < 0) return false;
  const Parameter& bias = tape.parameters()[static_cast<std::size_t>(parameter)];
  const Parameter& weight = tape.parameters()[static_cast<std::size_t>(waiting)];
  return std::string_view{bias.leaf} == "bias" && weight.shape.rank == 2 && weight.module == bias.module &&
         weight.instance == bias.instance;
}

}  // namespace

// Each layer's segment frees what it made, so what the names of the loop hold goes at its end, and is there again as
// the next layer's begins.
void OptimizerRun::update_one_by_one() {
  std::vector<Parameter*> visited;
  for_each_trained([&](Parameter& p) { visited.push_back(&p); });
  StepNames names;
  std::vector<HeldName> held;
  std::size_t at = 0;
  for_each_trained([&](Parameter& p) {
    for (const HeldName& h : held) names[h.name] = tape.allocate(h.shape, h.dtype, "held of the parameter before");
    held.clear();
    row_.update(*this, p, p.grad, names);
    if (++at < visited.size() && visited[at]->instance == p.instance) return;
    held = let_go(names);
  });
}

void OptimizerRun::take_gradient(std::int32_t parameter, Tensor gradient) {
  if (!row_.one_behind || comes_before(tape, parameter, behind_)) return update(parameter, std::move(gradient));
  finish_backward();
  behind_ = parameter;
  waiting_ = std::move(gradient);
}

void OptimizerRun::finish_backward() {
  if (behind_ >= 0) update(std::exchange(behind_, -1), std::move(waiting_));
}

void OptimizerRun::update(std::int32_t parameter, Tensor gradient) {
  if (row_.update == nullptr) return;
  const Category before = tape.default_category();
  tape.set_default_category(Category::kWorkspace);
  Tensor held = std::move(gradient);
  StepNames names;
  const Parameter& p = tape.parameters()[static_cast<std::size_t>(parameter)];
  Scope in(tape, p.module, row_.source);
  row_.update(*this, p, held, names);
  tape.set_default_category(before);
}

bool OptimizerRun::is_first(const Parameter& p) const {
  switch (row_.groups) {
    case ParameterGroups::kDecay:
      return decays(p);
    case ParameterGroups::kNamed:
      return true;
    default:
      return !is_projected(*this, p);
  }
}

}  // namespace tidemark
