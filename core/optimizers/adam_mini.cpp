// Adam-mini: one second moment per row.
#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

void create(OptimizerRun& run, const Parameter& p) {
  run.keep(p.shape, p.dtype, "exp_avg");
  run.keep(p.is_embedding ? Shape{p.shape.dim(0), Dim(1)} : Shape{p.shape.dim(0)}, p.dtype, "vmean");
}

constexpr Optimizer kRows[] = {
    {.name = "adam_mini",
     .help = "Adam-mini: one second moment per head or neuron",
     .source = "Adam-mini adam_mini.py",
     .create = create},
};

}  // namespace

extern const OptimizerRows adam_mini_rows;
const OptimizerRows adam_mini_rows = kRows;

}  // namespace tidemark
