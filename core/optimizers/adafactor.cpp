// transformers' Adafactor: a factored second moment, no first.
#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

void create(OptimizerRun& run, const Parameter& p) {
  if (p.shape.rank < 2) return run.keep(p.shape, Dtype::kFp32, "exp_avg_sq");
  run.keep(Shape{p.shape.dim(0)}, Dtype::kFp32, "exp_avg_sq_row");
  run.keep(Shape{p.shape.dim(1)}, Dtype::kFp32, "exp_avg_sq_col");
}

void step(OptimizerRun& run) {
  run.for_each_trained([&](const Parameter& p) {
    Tape& t = run.tape;
    const bool half = p.dtype != Dtype::kFp32;
    Tensor grad, p32;
    if (half) grad = t.allocate(p.shape, Dtype::kFp32, "grad.float()");
    if (half) p32 = t.allocate(p.shape, Dtype::kFp32, "p.float()");
    Tensor update = t.allocate(p.shape, Dtype::kFp32, "grad ** 2");
    update = t.allocate(p.shape, Dtype::kFp32, "update");
    update = t.allocate(p.shape, Dtype::kFp32, "update");
    Tensor negative = t.allocate(p.shape, Dtype::kFp32, "-update");
  });
}

constexpr Optimizer kRows[] = {
    {.name = "adafactor",
     .help = "transformers' Adafactor: factored second moment",
     .source = "transformers 5.12 optimization.py: Adafactor.step",
     .create = create,
     .step = step},
};

}  // namespace

extern const OptimizerRows adafactor_rows;
const OptimizerRows adafactor_rows = kRows;

}  // namespace tidemark
