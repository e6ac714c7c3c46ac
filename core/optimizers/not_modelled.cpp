// Names that Hugging Face's `optim` takes and the engine does not model: a request gets UNSUPPORTED_OPTION.
#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

constexpr Optimizer kRows[] = {
    {.name = "adamw_apex_fused", .help = "NVIDIA apex"},
    {.name = "adamw_torch_xla", .help = "for TPUs"},
    {.name = "adamw_torch_npu_fused", .help = "for Ascend NPUs"},
};

}  // namespace

extern const OptimizerRows not_modelled_rows;
const OptimizerRows not_modelled_rows = kRows;

}  // namespace tidemark
