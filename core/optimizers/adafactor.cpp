// transformers' Adafactor: a factored second moment, no first.
#include "core/optimizers/adafactor.hpp"

#include "core/tape/reduction.hpp"

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

// _approx_sq_grad, or exp_avg_sq.rsqrt() where nothing is factored.
Tensor scaled_update(Tape& t, const Shape& shape) {
  const int rank = shape.rank;
  Tensor rows, columns;
  if (rank >= 2) rows = t.allocate(without(shape, rank - 1), Dtype::kFp32, "r_factor");
  if (rank >= 2) columns = t.allocate(without(shape, rank - 2), Dtype::kFp32, "c_factor");
  return t.allocate(shape, Dtype::kFp32, "update");
}

void update(OptimizerRun& run, const Parameter& p, Tensor&, StepNames& names) {
  auto& [grad, parameter, update, none, no, nil] = names;
  Tape& t = run.tape;
  const auto make = [&](const char* name) { return t.allocate(p.shape, Dtype::kFp32, name); };
  grad = is_half(p.dtype) ? make("grad.float()") : Tensor();
  parameter = is_half(p.dtype) ? make("p.float()") : Tensor();
  Tensor square = make("grad ** 2");
  update = make("grad ** 2 + eps");
  square.reset();
  mean_over_rows(run, p.shape);
  update = scaled_update(t, p.shape);
  make("-update");
}

constexpr Optimizer kRows[] = {
    {.name = "adafactor",
     .help = "transformers' Adafactor: factored second moment",
     .source = "transformers 5.12 optimization.py: Adafactor.step",
     .create = create,
     .update = update},
};

}  // namespace

void mean_over_rows(const OptimizerRun& run, const Shape& shape) {
  if (shape.rank != 2) return;
  const Reduction columns = reduction_of(shape.size(1), run.job.compute_capability);
  const Count blocks = blocks_of(shape.size(0), columns);
  if (blocks == 0) return;
  run.tape.scratch(
      {{columns.partial * blocks, "mean (partial sums of blocks)"}, {columns.semaphores, "mean (semaphores)"}});
}

// Convolutions and stacked experts have more than two dimensions: all but the last, all but the one before.
void keep_factored_moment(OptimizerRun& run, const Shape& shape) {
  if (shape.rank < 2) return run.keep(shape, Dtype::kFp32, "exp_avg_sq");
  run.keep(without(shape, shape.rank - 1), Dtype::kFp32, "exp_avg_sq_row");
  run.keep(without(shape, shape.rank - 2), Dtype::kFp32, "exp_avg_sq_col");
}

extern const OptimizerRows adafactor_rows;
const OptimizerRows adafactor_rows = kRows;

}  // namespace tidemark
