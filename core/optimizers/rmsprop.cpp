// RMSprop: torch's, and bitsandbytes' with one state in 8 or 32 bits.
#include "core/optimizers/bitsandbytes.hpp"

namespace tidemark {
namespace {

void create(OptimizerRun& run, const Parameter& p) {
  run.keep(p.shape, p.dtype, "square_avg");
}

constexpr Optimizer kRows[] = {
    {.name = "rmsprop",
     .help = "torch RMSprop",
     .source = "pytorch 2.6 torch/optim/rmsprop.py",
     .create = create,
     .step = foreach_sqrt},
    {.name = "rmsprop_bnb_32bit",
     .help = "bitsandbytes RMSprop",
     .source = bitsandbytes::kSource,
     .alias = "rmsprop_bnb",
     .create = bitsandbytes::create_32bit<1>},
    {.name = "rmsprop_bnb_8bit",
     .help = "bitsandbytes RMSprop, 8-bit state",
     .source = bitsandbytes::kSource,
     .state_bits = 8,
     .create = bitsandbytes::create_8bit<1>},
};

}  // namespace

extern const OptimizerRows rmsprop_rows;
const OptimizerRows rmsprop_rows = kRows;

}  // namespace tidemark
