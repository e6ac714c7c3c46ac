// torch.optim.Adagrad.
#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

void create(OptimizerRun& run, const Parameter& p) {
  run.keep(p.shape, p.dtype, "sum");
}

constexpr Optimizer kRows[] = {
    {.name = "adagrad",
     .help = "torch Adagrad",
     .source = "pytorch 2.6 torch/optim/adagrad.py",
     .create = create,
     .step = foreach_sqrt},
};

}  // namespace

extern const OptimizerRows adagrad_rows;
const OptimizerRows adagrad_rows = kRows;

}  // namespace tidemark
