// GaLore: AdamW in a low-rank projection of each matrix.
#include <algorithm>

#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

// Rank that transformers passes when `optim_args` says nothing: trainer.py _setup_low_rank_optimizer.
constexpr Count kRank = 128;

void create(OptimizerRun& run, const Parameter& p) {
  if (!is_projected(p)) {
    run.keep(p.shape, p.dtype, "exp_avg");
    run.keep(p.shape, p.dtype, "exp_avg_sq");
    return;
  }
  const Count small = std::min(p.shape.size(0), p.shape.size(1));
  const Count large = std::max(p.shape.size(0), p.shape.size(1));
  const Dim rank(std::min(kRank, small));
  run.keep(Shape{Dim(small), rank}, p.dtype, "projector");
  run.keep(Shape{Dim(large), rank}, p.dtype, "exp_avg");
  run.keep(Shape{Dim(large), rank}, p.dtype, "exp_avg_sq");
}

constexpr Optimizer kRows[] = {
    {.name = "galore_adamw",
     .help = "GaLore: AdamW in a low-rank projection",
     .source = "GaLore galore_torch/adamw.py, galore_projector.py (2cc66f8)",
     .create = create,
     .step = full_rank_updates},
};

}  // namespace

extern const OptimizerRows galore_rows;
const OptimizerRows galore_rows = kRows;

}  // namespace tidemark
