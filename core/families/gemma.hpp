#pragma once

#include "core/layers/net.hpp"
#include "core/model/config_fields.hpp"

/// What T5Gemma and T5Gemma 2 have of Gemma 2's and Gemma 3's.
namespace tidemark {

/// Gemma2Config's keys.
void read_gemma2_config(ConfigFields& fields, Architecture& architecture);
/// Gemma3TextConfig's keys.
void read_gemma3_text_config(ConfigFields& fields, Architecture& architecture);
/// Gemma3Config's of pictures, with the tower.
void read_gemma3_pictures(ConfigFields& fields, Architecture& architecture);
/// Gemma3Model.get_image_features: the tower's last hidden state, pooled, normed and projected [n, tokens, H].
Tensor gemma3_features(Net& net);
/// logits / cap, tanh, times cap, where the model has one.
Tensor gemma_softcap(const Net& net, Tensor logits);

}  // namespace tidemark
