// torch.optim.AdamW in its two implementations; ADOPT, which divides by the root of the step before; AnyPrecisionAdamW.
#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

constexpr const char* kSource = "pytorch 2.6 torch/optim/adam.py: _init_group, _multi_tensor_adam";

void create_fused(OptimizerRun& run, const Parameter& p) {
  run.keep(Shape{}, Dtype::kFp32, "step");  // fused keeps its step counter on the device
  keep_adam_moments(run, p);
}

// Both lists of a group live at once; the very first step makes neither.
void step_adopt(OptimizerRun& run) {
  foreach_temporaries(run, {"_foreach_sqrt", "_foreach_div"});
}

void create_any_precision(OptimizerRun& run, const Parameter& p) {
  run.keep(p.shape, Dtype::kFp32, "exp_avg");
  run.keep(p.shape, Dtype::kFp32, "exp_avg_sq");
}

// centered_variance = (exp_avg_sq.sqrt() / correction).add_(eps)
void update_any_precision(OptimizerRun& run, const Parameter& p, Tensor&, StepNames& names) {
  const Tensor root = run.tape.allocate(p.shape, Dtype::kFp32, "sqrt");
  names[0] = run.tape.allocate(p.shape, Dtype::kFp32, "centered_variance");
}

constexpr Optimizer kRows[] = {
    {.name = "adopt_adamw",
     .help = "ADOPT, foreach: temporaries of two copies of the weights",
     .source = "axolotl 067b021 utils/optimizers/adopt.py: _multi_tensor_adopt",
     .create = keep_adam_moments,
     .step = step_adopt},
    {.name = "adamw_anyprecision",
     .help = "torchdistx, states in fp32",
     .source = "torchdistx 9c1b9f5 optimizers/anyprecision_optimizer.py: AnyPrecisionAdamW.step",
     .rule = "adamw",
     .create = create_any_precision,
     .update = update_any_precision},
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
