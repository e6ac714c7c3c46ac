// transformers' Adafactor: a factored second moment, no first.
#include "core/optimizers/adafactor.hpp"

namespace tidemark {

namespace {

Shape without(const Shape& shape, int dim) {
  Shape rest;
  for (int i = 0; i < shape.rank; ++i) {
    if (i != dim) rest.dims[rest.rank++] = shape.dim(i);
  }
  rest.make_contiguous();
  return rest;
}

void create(OptimizerRun& run, const Parameter& p) {
  keep_factored_moment(run, p.shape);
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
    {
      const int rank = p.shape.rank;
      Tensor rows, columns;
      if (rank >= 2) rows = t.allocate(without(p.shape, rank - 1), Dtype::kFp32, "r_factor");
      if (rank >= 2) columns = t.allocate(without(p.shape, rank - 2), Dtype::kFp32, "c_factor");
      update = t.allocate(p.shape, Dtype::kFp32, "update");
    }
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

// Convolutions and stacked experts have more than two dimensions: all but the last, all but the one before.
void keep_factored_moment(OptimizerRun& run, const Shape& shape) {
  if (shape.rank < 2) return run.keep(shape, Dtype::kFp32, "exp_avg_sq");
  run.keep(without(shape, shape.rank - 1), Dtype::kFp32, "exp_avg_sq_row");
  run.keep(without(shape, shape.rank - 2), Dtype::kFp32, "exp_avg_sq_col");
}

extern const OptimizerRows adafactor_rows;
const OptimizerRows adafactor_rows = kRows;

}  // namespace tidemark
