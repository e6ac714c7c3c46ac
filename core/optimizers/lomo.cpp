// LOMO and AdaLomo: each weight is updated in backward, when the next gradient is there, and its own gradient goes.
#include <algorithm>

#include "core/optimizers/adafactor.hpp"

namespace tidemark {
namespace {

void create_none(OptimizerRun&, const Parameter&) {}

/// `zeros(shape[0])` and `zeros(shape[1])`, whatever else a weight has.
void keep_row_and_column(OptimizerRun& run, Shape shape) {
  shape.rank = std::min(shape.rank, 2);
  shape.make_contiguous();
  keep_factored_moment(run, shape);
}

void create_factored(OptimizerRun& run, const Parameter& p) {
  keep_row_and_column(run, p.shape);
}

/// __init__ goes over all of the model's parameters; packed weights of 4 bits are a column of bytes.
void create_for_frozen(OptimizerRun& run, const Parameter& p) {
  const bool packed = p.storage_bytes != p.shape.numel() * size_of(p.dtype);
  keep_row_and_column(run, packed ? Shape{Dim(p.storage_bytes), Dim(1)} : p.shape);
}

/// `grad_fp32 = p.grad.to(float32); p.grad = None`: of fp32 gradients the same tensor.
void widen(OptimizerRun& run, const Parameter& p, Tensor& gradient) {
  if (is_half(p.dtype)) gradient = run.tape.allocate(p.shape, Dtype::kFp32, "grad_fp32");
}

void update(OptimizerRun& run, const Parameter& p, Tensor& gradient, StepNames&) {
  widen(run, p, gradient);
  if (is_half(p.dtype)) run.tape.allocate(p.shape, Dtype::kFp32, "p_fp32");
}

void update_adaptive(OptimizerRun& run, const Parameter& p, Tensor& gradient, StepNames&) {
  Tape& t = run.tape;
  widen(run, p, gradient);
  Tensor square = t.allocate(p.shape, Dtype::kFp32, "grad_fp32 ** 2");
  Tensor update = t.allocate(p.shape, Dtype::kFp32, "update");
  square.reset();
  mean_over_rows(run, p.shape);
  update = t.allocate(p.shape, Dtype::kFp32, "update");
  if (is_half(p.dtype)) t.allocate(p.shape, Dtype::kFp32, "p_fp32");
}

constexpr Optimizer kRows[] = {
    {.name = "lomo",
     .help = "LOMO: plain steps in backward, no states",
     .source = "lomo-optim 0.1.1 lomo_optim/lomo.py: Lomo.fuse_update",
     .create = create_none,
     .update = update,
     .in_backward = true,
     .one_behind = true},
    {.name = "adalomo",
     .help = "AdaLomo: the same with a factored second moment",
     .source = "lomo-optim 0.1.1 lomo_optim/adalomo.py: AdaLomo.fuse_update",
     .create = create_factored,
     .create_frozen = create_for_frozen,
     .update = update_adaptive,
     .groups = ParameterGroups::kNamed,
     .in_backward = true,
     .one_behind = true},
};

}  // namespace

extern const OptimizerRows lomo_rows;
const OptimizerRows lomo_rows = kRows;

}  // namespace tidemark
