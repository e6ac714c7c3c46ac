#include "core/model/denoiser_encoders.hpp"

namespace tidemark {
namespace {

// config.json in text_encoder, text_encoder_2 and text_encoder_3 of stable-diffusion-v1-5, stable-diffusion-2-1,
// stable-diffusion-xl-base-1.0, stable-diffusion-3-medium-diffusers and FLUX.1-dev.
constexpr TextEncoder kClipL = {"text_encoder", 49408, 768, 3072, 12, 0, 0};
constexpr TextEncoder kStable1[] = {kClipL};
constexpr TextEncoder kStable2[] = {{"text_encoder", 49408, 1024, 4096, 23, 0, 0}};
constexpr TextEncoder kStableXl[] = {kClipL, {"text_encoder_2", 49408, 1280, 5120, 32, 1280, 0}};
constexpr TextEncoder kStable3[] = {{"text_encoder", 49408, 768, 3072, 12, 768, 0},
                                    {"text_encoder_2", 49408, 1280, 5120, 32, 1280, 0},
                                    {"text_encoder_3", 32128, 4096, 10240, 24, 0, 64}};
constexpr TextEncoder kFlux[] = {kClipL, {"text_encoder_2", 32128, 4096, 10240, 24, 0, 64}};
// Qwen2.5-VL-7B beside Qwen-Image; Qwen3-4B, Qwen3-8B and Mistral-Small-3.2-24B beside FLUX.2, whose states of three
// layers lie side by side (catalog/models.json has their sizes).
constexpr TextEncoder decoder(Count parameters) {
  return {"text_encoder", 0, 0, 0, 0, 0, 0, parameters};
}
constexpr TextEncoder kQwenImage[] = {decoder(8292166656)};
constexpr TextEncoder kKlein4[] = {decoder(4022468096)}, kKlein9[] = {decoder(8190735360)};
constexpr TextEncoder kFlux2[] = {decoder(24011361280)};
constexpr Count kStates = 3;                                                         // of so many layers
constexpr Count kQwen3Small = 2560, kQwen3 = 4096, kMistral = 5120, kQwen25 = 3584;  // the widths of each

constexpr Count kT5Width = 4096;        // T5-XXL's states
constexpr Count kClipPairWidth = 2048;  // of CLIP-L and CLIP-bigG, side by side
constexpr Count kPooledPair = 2048;     // the pooled states of both, as Stable Diffusion 3 is told them
constexpr Count kPooledOne = 768;       // CLIP-L's, as Flux is

template <std::size_t N>
DenoiserEncoders these(const TextEncoder (&texts)[N], Count latents, bool quant_convs) {
  return {texts, N, latents, quant_convs};
}

}  // namespace

DenoiserEncoders encoders_of(const Denoiser& denoiser) {
  constexpr Count kLatents = 4, kLatentsOf3 = 16, kLatentsOfFlux2 = 32;
  const Count alone = denoiser.pooled_width + denoiser.size_width > 0 ? 0 : denoiser.text_width;
  if (alone == kStates * kQwen3Small) return these(kKlein4, kLatentsOfFlux2, true);
  if (alone == kStates * kQwen3) return these(kKlein9, kLatentsOfFlux2, true);
  if (alone == kStates * kMistral) return these(kFlux2, kLatentsOfFlux2, true);
  if (alone == kQwen25) return {kQwenImage, 1, kLatentsOf3, true, true};
  if (denoiser.text_width == kT5Width && denoiser.pooled_width == kPooledPair)
    return these(kStable3, kLatentsOf3, false);
  if (denoiser.text_width == kT5Width && denoiser.pooled_width == kPooledOne) return these(kFlux, kLatentsOf3, false);
  if (denoiser.text_width == kClipPairWidth && denoiser.size_width > 0) return these(kStableXl, kLatents, true);
  if (denoiser.size_width > 0) return {};
  if (denoiser.text_width == kStable2[0].width) return these(kStable2, kLatents, true);
  if (denoiser.text_width == kClipL.width) return these(kStable1, kLatents, true);
  return {};
}

}  // namespace tidemark
