// Prodigy: AdamW that finds its own step size by how far the weights have come from where they began.
#include <string_view>

#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

// Where a weight began is one number if all of it is zero, as LoRA's second factor is.
void create(OptimizerRun& run, const Parameter& p) {
  const bool zeros = std::string_view{p.leaf}.starts_with("lora_B");
  run.keep(p.shape, p.dtype, "s");
  run.keep(zeros ? Shape{} : p.shape, p.dtype, "p0");
  run.keep(p.shape, p.dtype, "exp_avg");
  run.keep(p.shape, p.dtype, "exp_avg_sq");
}

// What its first pass makes (p0 - p, s.abs()) is gone before the second, which makes as much.
void update(OptimizerRun& run, const Parameter& p, Tensor&, StepNames& names) {
  names[0] = run.tape.allocate(p.shape, p.dtype, "denom");
}

constexpr Optimizer kRows[] = {
    {.name = "prodigy",
     .help = "Prodigy, diffusers' and kohya's choice for LoRA: four states of each weight",
     .source = "prodigyopt 1.1.2 prodigyopt/prodigy.py: Prodigy.step",
     .create = create,
     .update = update},
};

}  // namespace

extern const OptimizerRows prodigy_rows;
const OptimizerRows prodigy_rows = kRows;

}  // namespace tidemark
