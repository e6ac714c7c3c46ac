// bitsandbytes' Lion: one moment in 8 or 32 bits, on the card or paged.
#include "core/optimizers/bitsandbytes.hpp"

namespace tidemark {
namespace {

using namespace bitsandbytes;

constexpr Optimizer kRows[] = {
    {.name = "lion_32bit",
     .help = "bitsandbytes Lion",
     .source = kSource,
     .rule = "lion",
     .alias = "lion",
     .create = create_32bit<1>},
    {.name = "lion_8bit",
     .help = "bitsandbytes Lion, 8-bit state",
     .source = kSource,
     .rule = "lion",
     .state_bits = 8,
     .create = create_8bit<1>},
    {.name = "paged_lion_32bit",
     .help = "the same, large states in managed memory",
     .source = kSource,
     .rule = "lion",
     .create = create_paged_32bit<1>,
     .managed = managed_32bit<1>},
    {.name = "paged_lion_8bit",
     .help = "the same, large states in managed memory",
     .source = kSource,
     .rule = "lion",
     .state_bits = 8,
     .create = create_paged_8bit<1>,
     .managed = managed_8bit<1>},
};

}  // namespace

extern const OptimizerRows lion_rows;
const OptimizerRows lion_rows = kRows;

}  // namespace tidemark
