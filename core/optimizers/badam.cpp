// BAdam by layers: AdamW on fp32 copies of the one layer that is trained for a while.
#include <vector>

#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

void create(OptimizerRun& run, const Parameter& p) {
  run.keep(p.shape, Dtype::kFp32, "param_hp");
  run.keep(Shape{}, Dtype::kFp32, "step");
  run.keep(p.shape, Dtype::kFp32, "exp_avg");
  run.keep(p.shape, Dtype::kFp32, "exp_avg_sq");
}

// _grad_to_hp makes each gradient fp32 and lets it go; all of these stand while the copies are stepped and copied back.
void step(OptimizerRun& run) {
  std::vector<Tensor> wide;
  run.for_each_trained([&](Parameter& p) {
    if (p.dtype == Dtype::kFp32) return;  // .float() is the gradient itself
    wide.push_back(run.tape.allocate(p.shape, Dtype::kFp32, "grad.float()"));
    p.grad.reset();
  });
  std::size_t i = 0;
  run.for_each_trained([&](const Parameter& p) {
    if (p.dtype == Dtype::kFp32) return;
    run.tape.scratch({{p.shape.numel() * size_of(p.dtype), "param_hp.to(dtype)"}});
  });
  run.for_each_trained([&](const Parameter& p) {
    if (p.dtype != Dtype::kFp32) wide[i++].reset();
  });
}

constexpr Optimizer kRows[] = {
    {.name = "badam",
     .help = "BAdam, a layer after the other, as LLaMA-Factory's badam_mode layer",
     .source = "badam 1.4 block_optim.py: BlockOptimizer.step_single_gpu",
     .create = create,
     .step = step,
     .groups = ParameterGroups::kNamed},
};

}  // namespace

extern const OptimizerRows badam_rows;
const OptimizerRows badam_rows = kRows;

}  // namespace tidemark
