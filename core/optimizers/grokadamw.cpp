// GrokAdamW: AdamW beside a slow average of the gradient; its states wait in host memory between steps.
#include <utility>

#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

void create(OptimizerRun&, const Parameter&) {}

Bytes host(const Parameter& p) {
  return 3 * size_of(p.dtype) * p.shape.numel();  // exp_avg, exp_avg_sq, grok_ema
}

void update(OptimizerRun& run, const Parameter& p, Tensor&, StepNames& names) {
  auto& [exp_avg, exp_avg_sq, grok_ema, grok_grad, none, no] = names;
  Tape& t = run.tape;
  // Both are made before either name is bound.
  Tensor first = t.allocate(p.shape, p.dtype, "exp_avg.to(device)");
  Tensor second = t.allocate(p.shape, p.dtype, "exp_avg_sq.to(device)");
  exp_avg = std::move(first);
  exp_avg_sq = std::move(second);
  grok_ema = t.allocate(p.shape, p.dtype, "grok_ema.to(device)");
  Tensor scaled = t.allocate(p.shape, p.dtype, "lamb * grok_ema");
  grok_grad = t.allocate(p.shape, p.dtype, "grok_grad");
  scaled.reset();
  t.allocate(p.shape, p.dtype, "exp_avg_sq.sqrt()");
}

constexpr Optimizer kRows[] = {
    {.name = "grokadamw",
     .help = "GrokAdamW: three states of each weight in host memory",
     .source = "grokadamw 0.1.2 grokadamw/grokadamw.py: GrokAdamW._update_group",
     .create = create,
     .update = update,
     .managed = host},
};

}  // namespace

extern const OptimizerRows grokadamw_rows;
const OptimizerRows grokadamw_rows = kRows;

}  // namespace tidemark
