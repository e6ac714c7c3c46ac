#include "core/optimizers/rows.hpp"

namespace tidemark {

void keep_adam_moments(OptimizerRun& run, const Parameter& p) {
  run.keep(p.shape, run.state_dtype(p), "exp_avg");
  run.keep(p.shape, run.state_dtype(p), "exp_avg_sq");
}

void foreach_sqrt(OptimizerRun& run) {
  for (const bool decaying : {true, false}) {
    for (const Dtype dtype : {Dtype::kFp32, Dtype::kBf16, Dtype::kFp16}) {
      std::vector<Tensor> temporaries;
      run.for_each_trained([&](const Parameter& p) {
        if (OptimizerRun::decays(p) != decaying || p.dtype != dtype) return;
        temporaries.push_back(run.tape.allocate(p.shape, dtype, "_foreach_sqrt"));
      });
      // Dropped layer by layer, so that each layer's segment frees what it made.
      std::size_t i = 0;
      run.for_each_trained([&](const Parameter& p) {
        if (OptimizerRun::decays(p) == decaying && p.dtype == dtype) temporaries[i++].reset();
      });
    }
  }
}

void full_rank_updates(OptimizerRun& run) {
  run.for_each_trained([&](const Parameter& p) {
    if (!is_projected(p)) return;
    Tensor copy = run.tape.allocate(p.shape, Dtype::kFp32, "fp32 copy");
    Tensor full = run.tape.allocate(p.shape, p.dtype, "full-rank update");
  });
}

}  // namespace tidemark
