#pragma once

#include "core/layers/net.hpp"

namespace tidemark {

/// What Unsloth's loss makes and frees on its way since 2026.10.9, beside the gradient of the states that it keeps:
/// fp32 logits of some rows at a time. `weight`: the head's [V, H]; `tokens`: of all samples, of each of which the last
/// has no label.
/// Source: unsloth_zoo 2026.10.9 fused_losses/fused_linear.py: _ce_impl, _logprobs_impl, _tiled_forward.
void logits_by_rows(Net& net, const Tensor& weight, Count tokens);

}  // namespace tidemark
