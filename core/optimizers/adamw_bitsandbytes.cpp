// bitsandbytes' AdamW: two moments in 8 or 32 bits, on the card or paged.
#include "core/optimizers/bitsandbytes.hpp"

namespace tidemark {
namespace {

using namespace bitsandbytes;

constexpr Optimizer kRows[] = {
    {.name = "adamw_8bit",
     .help = "bitsandbytes, 8-bit block-wise states",
     .source = kSource,
     .rule = "adamw",
     .state_bits = 8,
     .alias = "adamw_bnb_8bit",
     .create = create_8bit<2>},
    {.name = "paged_adamw_8bit",
     .help = "the same, large states in managed memory",
     .source = kSource,
     .rule = "adamw",
     .state_bits = 8,
     .create = create_paged_8bit<2>,
     .managed = managed_8bit<2>},
    {.name = "adamw_bnb_32bit",
     .help = "bitsandbytes, fp32 states",
     .source = kSource,
     .rule = "adamw",
     .alias = "adamw_32bit",
     .create = create_32bit<2>},
    {.name = "paged_adamw_32bit",
     .help = "the same, large states in managed memory",
     .source = kSource,
     .rule = "adamw",
     .alias = "paged_adamw",
     .create = create_paged_32bit<2>,
     .managed = managed_32bit<2>},
};

}  // namespace

extern const OptimizerRows adamw_bitsandbytes_rows;
const OptimizerRows adamw_bitsandbytes_rows = kRows;

}  // namespace tidemark
