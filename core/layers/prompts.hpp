#pragma once

#include "core/layers/net.hpp"

namespace tidemark {

/// What PEFT's forward does before the model's where a prompt is learned (prompt tuning, P-tuning): virtual tokens
/// before the samples' [B, S, H], and labels and mask as long as that.
Tensor behind_prompt(Net& net, Tensor embeds);

/// The attention mask, where the batch has one, covers so many virtual tokens, too.
void lengthen_mask(Net& net, Dim tokens);

/// The same of prefix tuning, as the decoder's loop over its layers begins: the layers' first keys and values, in a
/// cache that attention finds and goes on with.
void begin_with_prefix(Net& net, const LayerPlan::Stack& stack);

/// The outputs go, and the cache with them.
void let_prefix_go(Net& net);

}  // namespace tidemark
