// CAME: Adafactor's factored moment, a first moment, and a factored measure of how far both agree.
#include "core/optimizers/adafactor.hpp"

namespace tidemark {
namespace {

void create(OptimizerRun& run, const Parameter& p) {
  run.keep(p.shape, Dtype::kFp32, "exp_avg");
  keep_factored_moment(run, p.shape);
  if (p.shape.rank > 1) keep_factored_moment(run, p.shape);  // exp_avg_res_row, exp_avg_res_col
}

void update(OptimizerRun& run, const Parameter& p, Tensor&, StepNames& names) {
  auto& [grad, update, residual, approximation, none, no] = names;
  Tape& t = run.tape;
  const auto make = [&](const char* name) { return t.allocate(p.shape, Dtype::kFp32, name); };
  grad.reset();
  if (is_half(p.dtype)) grad = make("grad.float()");
  Tensor before = make("grad ** 2");
  update = make("grad ** 2 + eps");
  before.reset();
  mean_over_rows(run, p.shape);
  update = make("update");
  before = make("update - exp_avg");
  before = make("(update - exp_avg) ** 2");
  residual = make("res");
  before.reset();
  mean_over_rows(run, p.shape);
  if (p.shape.rank > 1) {
    approximation = make("res_approx");
    update = approximation;
  } else {
    update = make("exp_avg.clone()");
  }
  make("-update");
}

constexpr Optimizer kRows[] = {
    {.name = "came_pytorch",
     .help = "CAME: a first moment beside Adafactor's factored ones",
     .source = "came-pytorch 0.1.3 came_pytorch/CAME.py: CAME.step",
     .create = create,
     .update = update},
};

}  // namespace

extern const OptimizerRows came_rows;
const OptimizerRows came_rows = kRows;

}  // namespace tidemark
