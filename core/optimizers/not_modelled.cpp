// Names that Hugging Face's `optim` takes and the engine does not model: a request gets UNSUPPORTED_OPTION.
#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

constexpr Optimizer kRows[] = {
    {.name = "adamw_apex_fused", .help = "NVIDIA apex"},
    {.name = "adamw_anyprecision", .help = "torchdistx"},
    {.name = "rmsprop_bnb", .help = "bitsandbytes RMSprop"},
    {.name = "rmsprop_bnb_8bit", .help = "bitsandbytes RMSprop, 8-bit state"},
    {.name = "rmsprop_bnb_32bit", .help = "bitsandbytes RMSprop, fp32 state"},
    {.name = "galore_adamw_8bit", .help = "GaLore, 8-bit states"},
    {.name = "galore_adafactor", .help = "GaLore with Adafactor"},
    {.name = "galore_adamw_layerwise", .help = "GaLore, one layer at a time"},
    {.name = "apollo_adamw_layerwise", .help = "APOLLO, one layer at a time"},
    {.name = "lomo", .help = "LOMO"},
    {.name = "adalomo", .help = "AdaLomo"},
    {.name = "grokadamw", .help = "GrokAdamW"},
    {.name = "ao_adamw_fp8", .help = "torchao, fp8 states"},
    {.name = "adamw_torch_xla", .help = "for TPUs"},
    {.name = "adamw_torch_npu_fused", .help = "for Ascend NPUs"},
    {.name = "galore_adamw_8bit_layerwise", .help = "GaLore, 8-bit states, one layer at a time"},
    {.name = "galore_adafactor_layerwise", .help = "GaLore with Adafactor, one layer at a time"},
    {.name = "q_galore_adamw8bit", .help = "Q-GaLore"},
    {.name = "came_pytorch", .help = "CAME"},
    {.name = "adopt_adamw", .help = "ADOPT"},
    {.name = "optimi_adamw", .help = "optimi's AdamW"},
    {.name = "dion", .help = "Dion"},
    {.name = "badam", .help = "BAdam"},
};

}  // namespace

extern const OptimizerRows not_modelled_rows;
const OptimizerRows not_modelled_rows = kRows;

}  // namespace tidemark
