#pragma once

#include "core/layers/net.hpp"

namespace tidemark {

/// What PEFT's forward does before the model's where a prompt is learned (prompt tuning, P-tuning): virtual tokens
/// before the samples' [B, S, H], and labels and mask as long as that.
Tensor behind_prompt(Net& net, Tensor embeds);

}  // namespace tidemark
