#pragma once

#include "core/blocks/net.hpp"

namespace tidemark {

/// The loss of a causal language model, from logits: transformers loss/loss_utils.py ForCausalLMLoss, and what older
/// releases did (framework.version). The logits may stay alive in the caller's `outputs`.
Tensor causal_lm_loss(Net& net, Tensor logits);

/// Liger's fused linear cross entropy, from hidden states and the head's weight.
Tensor liger_fused_loss(Net& net, Tensor hidden, Tensor weight);

}  // namespace tidemark
