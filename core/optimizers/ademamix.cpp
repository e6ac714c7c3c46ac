// bitsandbytes' AdEMAMix: AdamW with a second, slow average of the gradient, kept beside the fast one in `state1`.
#include "core/optimizers/bitsandbytes.hpp"

namespace tidemark {
namespace {

using namespace bitsandbytes;

constexpr const char* kAdemamix = "bitsandbytes 0.50 optim/ademamix.py: AdEMAMix.init_state";

/// `state1` holds both averages, so it is twice as large; so are its scales. The scales stay on the device.
template <int bits, bool paged>
void create(OptimizerRun& run, const Parameter& p) {
  const Count n = p.shape.numel();
  const bool eight = bits == 8 && keeps_8bit(p);
  const Dtype dtype = eight ? Dtype::kUint8 : Dtype::kFp32;
  if (eight) run.keep(Shape{Dim(2), Dim(blocks(n))}, Dtype::kFp32, "absmax1");
  if (eight) run.keep(Shape{Dim(blocks(n))}, Dtype::kFp32, "absmax2");
  if (paged && is_paged(p)) return;
  run.keep(Shape{Dim(2), Dim(n)}, dtype, "state1");
  run.keep(p.shape, dtype, "state2");
}

template <int bits>
Bytes managed(const Parameter& p) {
  const Bytes element = bits == 8 && keeps_8bit(p) ? 1 : size_of(Dtype::kFp32);
  return is_paged(p) ? 3 * element * p.shape.numel() : 0;
}

constexpr Optimizer kRows[] = {
    {.name = "ademamix",
     .help = "bitsandbytes AdEMAMix, fp32 states",
     .source = kAdemamix,
     .create = create<32, false>},
    {.name = "ademamix_8bit",
     .help = "bitsandbytes AdEMAMix, 8-bit block-wise states",
     .source = kAdemamix,
     .state_bits = 8,
     .create = create<8, false>},
    {.name = "paged_ademamix_32bit",
     .help = "the same, large states in managed memory",
     .source = kAdemamix,
     .create = create<32, true>,
     .managed = managed<32>},
    {.name = "paged_ademamix_8bit",
     .help = "the same, large states in managed memory",
     .source = kAdemamix,
     .state_bits = 8,
     .create = create<8, true>,
     .managed = managed<8>},
};

}  // namespace

extern const OptimizerRows ademamix_rows;
const OptimizerRows ademamix_rows = kRows;

}  // namespace tidemark
