// torch.optim.AdamW in its two implementations.
#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

constexpr const char* kSource = "pytorch 2.6 torch/optim/adam.py: _init_group, _multi_tensor_adam";

void create_fused(OptimizerRun& run, const Parameter& p) {
  run.keep(Shape{}, Dtype::kFp32, "step");  // fused keeps its step counter on the device
  keep_adam_moments(run, p);
}

constexpr Optimizer kRows[] = {
    {.name = "adamw_torch",
     .help = "torch AdamW, foreach: a temporary of one copy of the weights",
     .source = kSource,
     .rule = "adamw",
     .create = keep_adam_moments,
     .step = foreach_sqrt},
    {.name = "adamw_torch_fused",
     .help = "torch AdamW, fused",
     .source = kSource,
     .rule = "adamw",
     .create = create_fused},
};

}  // namespace

extern const OptimizerRows adamw_torch_rows;
const OptimizerRows adamw_torch_rows = kRows;

}  // namespace tidemark
