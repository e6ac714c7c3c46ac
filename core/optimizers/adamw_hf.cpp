// transformers' own AdamW, gone in version 5.
#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

void step(OptimizerRun& run) {
  run.for_each_trained(
      [&](const Parameter& p) { Tensor denominator = run.tape.allocate(p.shape, p.dtype, "exp_avg_sq.sqrt()"); });
}

constexpr Optimizer kRows[] = {
    {.name = "adamw_hf",
     .help = "transformers' own AdamW, one parameter at a time; gone in version 5",
     .source = "transformers 4.46 optimization.py: AdamW.step",
     .create = keep_adam_moments,
     .step = step},
};

}  // namespace

extern const OptimizerRows adamw_hf_rows;
const OptimizerRows adamw_hf_rows = kRows;

}  // namespace tidemark
