// Schedule-free AdamW, RAdam and SGD: the iterate z in place of the first moment.
#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

constexpr const char* kAdamw = "schedulefree 1.4.1 adamw_schedulefree.py: AdamWScheduleFree.step";
constexpr const char* kRadam = "schedulefree 1.4.1 radam_schedulefree.py: RAdamScheduleFree.step";
constexpr const char* kSgd = "schedulefree 1.4.1 sgd_schedulefree.py: SGDScheduleFree.step";

void create_iterate(OptimizerRun& run, const Parameter& p) {
  run.keep(p.shape, p.dtype, "z");
}

void create(OptimizerRun& run, const Parameter& p) {
  create_iterate(run, p);
  run.keep(p.shape, p.dtype, "exp_avg_sq");
}

/// The foreach form divides into one denominator a parameter for a whole group. The loop's variable holds a group's
/// until the next group's are there, so that both lists live at once; the gradient is normalised in place.
void step(OptimizerRun& run) {
  std::vector<Tensor> denominators;
  run.for_each_trained(
      [&](const Parameter& p) { denominators.push_back(run.tape.allocate(p.shape, p.dtype, "denom")); });
  std::size_t i = 0;
  run.for_each_trained([&](const Parameter&) { denominators[i++].reset(); });
}

constexpr Optimizer kRows[] = {
    {.name = "schedule_free_adamw", .help = "schedule-free AdamW", .source = kAdamw, .create = create, .step = step},
    {.name = "schedule_free_radam", .help = "schedule-free RAdam", .source = kRadam, .create = create, .step = step},
    {.name = "schedule_free_sgd", .help = "schedule-free SGD", .source = kSgd, .create = create_iterate},
};

}  // namespace

extern const OptimizerRows schedule_free_rows;
const OptimizerRows schedule_free_rows = kRows;

}  // namespace tidemark
