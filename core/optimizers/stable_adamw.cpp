// torch-optimi's AdamW and StableAdamW, as axolotl and transformers call them: Triton kernels in place, Kahan summation
// of 16-bit weights.
#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

void create_adamw(OptimizerRun& run, const Parameter& p) {
  keep_adam_moments(run, p);
  if (is_half(p.dtype)) {
    run.keep(p.shape, p.dtype, "kahan_comp");
  } else {
    run.keep(Shape{Dim(1)}, Dtype::kUint8, "kahan_comp");
  }
}

void create(OptimizerRun& run, const Parameter& p) {
  create_adamw(run, p);
  run.keep(Shape{}, p.dtype, "eps_sq");
  run.keep(Shape{Dim(1)}, Dtype::kFp32, "mean_square");
}

constexpr Optimizer kRows[] = {
    {.name = "stable_adamw",
     .help = "StableAdamW: AdamW with Adafactor's clipped update; keeps a compensation of 16-bit weights",
     .source = "torch-optimi 0.3.3 optimi/stableadamw.py: StableAdamW._init_state, _triton_stableadamw",
     .create = create},
    {.name = "optimi_adamw",
     .help = "torch-optimi AdamW: keeps a compensation of 16-bit weights",
     .source = "torch-optimi 0.3.3 optimi/adamw.py: AdamW._init_state",
     .create = create_adamw},
};

}  // namespace

extern const OptimizerRows stable_adamw_rows;
const OptimizerRows stable_adamw_rows = kRows;

}  // namespace tidemark
