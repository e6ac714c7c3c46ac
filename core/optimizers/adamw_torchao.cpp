// torchao's AdamW with states of 8 and 4 bits, and of fp8.
#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

// 8-bit states in blocks of 256, 4-bit in blocks of 128, from 4096 elements on; what does not divide keeps its dtype.
constexpr const char* kSource = "torchao optim/adam.py: AdamW8bit, AdamW4bit (36027d8)";
constexpr Count kMinimum = 4096;

// `codes`: of the table that the states' bits lead into; fp8 has none (torchao 0.18 optim/subclass_fp8.py
// OptimStateFp8).
template <int bits, Count codes>
void create(OptimizerRun& run, const Parameter& p) {
  constexpr Count kBlock = bits == 4 ? 128 : 256;
  const Count n = p.shape.numel();
  for (const char* name : {"exp_avg", "exp_avg_sq"}) {
    if (n < kMinimum || n % kBlock != 0) {
      run.keep(p.shape, run.state_dtype(p), name);
      continue;
    }
    run.keep(Shape{Dim(n * bits / 8)}, Dtype::kUint8, name);
    run.keep(Shape{Dim(n / kBlock)}, Dtype::kFp32, "scale");
    if (codes > 0) run.keep(Shape{Dim(codes)}, Dtype::kFp32, "qmap");
  }
}

constexpr Optimizer kRows[] = {
    {.name = "ao_adamw_fp8",
     .help = "torchao, fp8 states",
     .source = "torchao 0.18 optim/adam.py: AdamWFp8",
     .rule = "adamw",
     .state_bits = 8,
     .create = create<8, 0>},
    {.name = "adamw_torch_8bit",
     .help = "torchao, 8-bit states",
     .source = kSource,
     .rule = "adamw",
     .state_bits = 8,
     .create = create<8, 256>},
    {.name = "adamw_torch_4bit",
     .help = "torchao, 4-bit states",
     .source = kSource,
     .rule = "adamw",
     .state_bits = 4,
     .create = create<4, 16>},
};

}  // namespace

extern const OptimizerRows adamw_torchao_rows;
const OptimizerRows adamw_torchao_rows = kRows;

}  // namespace tidemark
