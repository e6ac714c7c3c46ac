// torch.optim.Adagrad.
#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

void create(OptimizerRun& run, const Parameter& p) {
  run.keep(p.shape, p.dtype, "sum");
}

// Adagrad.__init__ makes them for all that it is given, whether a gradient comes or not.
void create_at_once(OptimizerRun& run, const Parameter& p) {
  if (p.requires_grad) create(run, p);
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
     .create_frozen = create_at_once,
     .step = step},
};

}  // namespace

extern const OptimizerRows adagrad_rows;
const OptimizerRows adagrad_rows = kRows;

}  // namespace tidemark
