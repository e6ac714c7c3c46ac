// torch.optim.Adagrad.
#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

void create(OptimizerRun& run, const Parameter& p) {
  run.keep(p.shape, p.dtype, "sum");
}

// _multi_tensor_adagrad: without weight decay the scaled gradients are a copy, beside the roots.
void step(OptimizerRun& run) {
  foreach_temporaries(run, {"_foreach_sqrt", "_foreach_mul"});
}

constexpr Optimizer kRows[] = {
    {.name = "adagrad",
     .help = "torch Adagrad",
     .source = "pytorch 2.6 torch/optim/adagrad.py",
     .create = create,
     .step = step},
};

}  // namespace

extern const OptimizerRows adagrad_rows;
const OptimizerRows adagrad_rows = kRows;

}  // namespace tidemark
