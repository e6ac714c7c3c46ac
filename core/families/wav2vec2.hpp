#pragma once

#include "core/families/family.hpp"

/// What WavLM has of Wav2Vec2's, all but its attention, and Wav2Vec2-BERT.
namespace tidemark {

void read_wav2vec2_config(ConfigFields& fields, Architecture& architecture);
Tensor wav2vec2_forward(Net& net);
/// Wav2Vec2Model.forward up to its encoder: convolutions, projection, masks; `extracted` is a name of its to the end.
Tensor wave_projected(Net& net, Tensor& extracted);
/// A conformer's first or last feed-forward: half of what it makes, and what it was given (wav2vec2_bert.cpp).
Tensor conformer_half(Net& net, bool first, Tensor hidden);
/// nn.Conv1d of `out` channels to `frames`; `apart`: each channel is its own.
Tensor frame_convolution(Net& net, const char* name, Tensor x, Dim out, Count kernel, Dim frames, bool bias,
                         bool apart);
/// What a conformer's convolutions end with, behind their norm: [B, H, S] becomes [B, S, H].
Tensor conformer_frames(Net& net, Tensor normed);
/// Waves, and as many letters as the request says.
void wave_inputs(Net& net);
/// What a head asks for: of a CTC head as many letters as the request says, or 64.
void wave_labels(Net& net);
/// Samples of a recording at 16 kHz; ten seconds where nothing is said.
Count wave_samples(const Net& net);
/// Which of SpecAugment's masks there are.
void read_time_mask(ConfigFields& fields, Architecture& architecture);
/// Wav2Vec2Model._mask_hidden_states; `name`: of its vector.
Tensor mask_time(Net& net, const char* name, Tensor hidden);
/// torch.nn.functional.ctc_loss of [frames, B, V].
Tensor ctc_loss(Net& net, Tensor log_probs);
/// Wav2Vec2ForCTC.forward
Outputs wave_ctc(Net& net, const Program& program, Tensor hidden);
/// Their heads: letters, a classifier of the whole wave, none.
extern const HeadForward kWaveHeads[3];
/// WavLMAttention.forward (wavlm.cpp)
Tensor wavlm_attention(Net& net, const Tensor& hidden);

}  // namespace tidemark
