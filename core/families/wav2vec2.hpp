#pragma once

#include "core/families/family.hpp"

/// What WavLM has of Wav2Vec2's: all but its attention.
namespace tidemark {

void read_wav2vec2_config(ConfigFields& fields, Architecture& architecture);
Tensor wav2vec2_forward(Net& net);
/// Waves, and as many letters as the request says.
void wave_inputs(Net& net);
/// Their heads: letters, a classifier of the whole wave, none.
extern const HeadForward kWaveHeads[3];
/// WavLMAttention.forward (wavlm.cpp)
Tensor wavlm_attention(Net& net, const Tensor& hidden);

}  // namespace tidemark
