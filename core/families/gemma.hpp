#pragma once

#include "core/layers/net.hpp"
#include "core/model/config_fields.hpp"

/// What T5Gemma has of Gemma 2's.
namespace tidemark {

/// Gemma2Config's keys.
void read_gemma2_config(ConfigFields& fields, Architecture& architecture);
/// logits / cap, tanh, times cap, where the model has one.
Tensor gemma_softcap(const Net& net, Tensor logits);

}  // namespace tidemark
