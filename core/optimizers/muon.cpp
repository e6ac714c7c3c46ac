// Muon for matrices, AdamW for the rest.
#include <algorithm>

#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

bool is_matrix(const Parameter& p) {
  return p.shape.rank == 2 && !p.is_embedding;
}

void create(OptimizerRun& run, const Parameter& p) {
  run.keep(p.shape, p.dtype, "momentum_buffer");
  if (!is_matrix(p)) run.keep(p.shape, p.dtype, "exp_avg_sq");
}

void step(OptimizerRun& run) {
  run.for_each_trained([&](const Parameter& p) {
    if (!is_matrix(p)) return;
    Tape& t = run.tape;
    const Dim small(std::min(p.shape.size(0), p.shape.size(1)));
    // _zeropower_via_newtonschulz: X, its successor, the Gram matrix and its update, in bf16; then the update.
    Tensor update = t.allocate(p.shape, p.dtype, "nesterov update");
    Tensor x = t.allocate(p.shape, Dtype::kBf16, "X");
    Tensor gram = t.allocate(Shape{small, small}, Dtype::kBf16, "gram matrix");
    Tensor gram_update = t.allocate(Shape{small, small}, Dtype::kBf16, "gram update");
    Tensor next = t.allocate(p.shape, Dtype::kBf16, "X (next)");
  });
  foreach_sqrt_of(run, [](const Parameter& p) { return !is_matrix(p); });  // torch.optim.AdamW of the rest
}

constexpr Optimizer kRows[] = {
    {.name = "muon",
     .help = "Muon for matrices, AdamW for the rest",
     .source = "pytorch 2.9 torch/optim/_muon.py",
     .create = create,
     .step = step},
};

}  // namespace

extern const OptimizerRows muon_rows;
const OptimizerRows muon_rows = kRows;

}  // namespace tidemark
