// torch.optim.RMSprop.
#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

void create(OptimizerRun& run, const Parameter& p) {
  run.keep(p.shape, p.dtype, "square_avg");
}

constexpr Optimizer kRows[] = {
    {.name = "rmsprop",
     .help = "torch RMSprop",
     .source = "pytorch 2.6 torch/optim/rmsprop.py",
     .create = create,
     .step = foreach_sqrt},
};

}  // namespace

extern const OptimizerRows rmsprop_rows;
const OptimizerRows rmsprop_rows = kRows;

}  // namespace tidemark
