// torch.optim.SGD.
#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

constexpr const char* kSource = "pytorch 2.6 torch/optim/sgd.py";

void create_nothing(OptimizerRun&, const Parameter&) {}

void create_momentum(OptimizerRun& run, const Parameter& p) {
  run.keep(p.shape, p.dtype, "momentum_buffer");
}

constexpr Optimizer kRows[] = {
    {.name = "sgd", .help = "torch SGD without momentum", .source = kSource, .create = create_nothing},
    {.name = "sgd_momentum", .help = "torch SGD with momentum", .source = kSource, .create = create_momentum},
};

}  // namespace

extern const OptimizerRows sgd_rows;
const OptimizerRows sgd_rows = kRows;

}  // namespace tidemark
