#pragma once

#include <cstddef>

#include "core/model/architecture.hpp"

/// What belongs to a denoiser in its pipeline: the text encoders and the autoencoder that its weights were trained
/// beside. Told by the widths of what the denoiser is handed (model_index.json of each repository on the hub).
namespace tidemark {

/// A text encoder by its dimensions.
struct TextEncoder {
  const char* name = "";     ///< what the pipeline calls it
  Count vocabulary = 0;      ///< rows of its token table
  Count width = 0;           ///< H
  Count inner = 0;           ///< F
  Count layers = 0;          ///< L
  Count projected = 0;       ///< columns of CLIPTextModelWithProjection's result; 0: plain CLIPTextModel
  Count relative_heads = 0;  ///< heads of T5's position bias; 0: CLIP, whose positions are learned
  Count parameters = 0;      ///< of a decoder, whose sizes are not told one by one; 0: CLIP or T5
};

/// The encoders beside one kind of denoiser.
struct DenoiserEncoders {
  const TextEncoder* texts = nullptr;  ///< in the pipeline's order
  std::size_t count = 0;               ///< of them; 0: not known
  Count latents = 0;                   ///< channels of the autoencoder's latents
  bool quant_convs = false;            ///< AutoencoderKL's quant_conv and post_quant_conv
  bool causal = false;                 ///< Qwen-Image's autoencoder, whose convolutions are over frames, too
};
DenoiserEncoders encoders_of(const Denoiser& denoiser);

}  // namespace tidemark
