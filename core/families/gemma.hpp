#pragma once

#include "core/families/shared.hpp"

/// What others have of Gemma's files.
namespace tidemark {

/// Gemma2Config's keys.
void read_gemma2_config(ConfigFields& fields, Architecture& architecture);
/// logits / cap, tanh, times cap, where the model has one.
Tensor gemma_softcap(const Net& net, Tensor logits);
/// GemmaDecoderLayer.forward with another norm, attention and feed-forward; `second`: the norm before the latter.
Tensor normed_layer(Net& net, Tensor hidden, const char* source, Norm norm, Branch attention, Branch feed_forward,
                    const char* second = "post_attention_layernorm");

}  // namespace tidemark
