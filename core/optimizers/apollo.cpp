// APOLLO: AdamW in a random projection of each matrix.
#include <algorithm>

#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

// APOLLO-Mini, which transformers takes when `optim_args` says nothing: trainer.py _setup_low_rank_optimizer.
constexpr Count kRank = 1;

void create(OptimizerRun& run, const Parameter& p) {
  Shape shape = p.shape;
  if (is_projected(p)) shape = Shape{Dim(std::max(p.shape.size(0), p.shape.size(1))), Dim(kRank)};
  run.keep(shape, p.dtype, "exp_avg");
  run.keep(shape, p.dtype, "exp_avg_sq");
}

constexpr Optimizer kRows[] = {
    {.name = "apollo_adamw",
     .help = "APOLLO: AdamW in a random projection",
     .source = "APOLLO apollo_torch/apollo.py (76b3472)",
     .create = create,
     .step = full_rank_updates},
};

}  // namespace

extern const OptimizerRows apollo_rows;
const OptimizerRows apollo_rows = kRows;

}  // namespace tidemark
