#pragma once

#include "core/layers/program.hpp"

/// What denoisers of diffusion models share. Latents and the text encoders' states are on the device as inputs, as
/// diffusers' training scripts have them once they are cached: neither the VAE nor a text encoder is there.
namespace tidemark {

/// Pixels per side that one place of a latent stands for: the VAEs of Stable Diffusion and Flux halve three times.
inline constexpr Count kPixelsOfLatent = 8;

/// Rows and columns of the job's latents.
struct LatentSize {
  Count height = 0, width = 0;
};
LatentSize latent_size(const Net& net);

/// A tensor of the batch, in the dtype that the scripts cast latents and embeddings to.
Tensor conditioned_input(Net& net, const Shape& shape, const char* name);
/// Timesteps.forward of `count` numbers: [count, width] in fp32.
Tensor sinusoids(Net& net, Count count, Count width);
/// TimestepEmbedding.forward, PixArtAlphaTextProjection.forward: linear, SiLU, linear.
Tensor embedded(Net& net, const char* first, const char* second, Tensor x, Dim width);
/// CombinedTimestepTextProjEmbeddings.forward, with a guidance's embedding where the model has one. The pooled states
/// of the text are the last of net.more_inputs.
Tensor time_and_text(Net& net);

/// What the condition says of one norm: shifts, scales and gates [B, H], `count` of them.
Pieces modulation(Net& net, const char* linear, const Tensor& condition, int count);
/// norm(x) * (1 + scale[:, None]) + shift[:, None]
Tensor modulated(Tensor normed, const Tensor& scale, const Tensor& shift);
/// AdaLayerNormContinuous.forward
Tensor continuous_norm(Net& net, const char* linear, const char* norm, Tensor x);
/// gate.unsqueeze(1) * x
Tensor gated(const Tensor& gate, Tensor x);
/// FeedForward.forward of activation "gelu-approximate": linear, GELU, linear.
Tensor gelu_feed_forward(Net& net, const char* up, const char* down, Tensor x);

/// Attention runs in scaled_dot_product_attention alone.
inline constexpr AttentionSupport kDiffusersAttention = {true, false, false, false};

/// The head of every class here: mse_loss(prediction.float(), target.float()), net.labels being the target.
extern const HeadForward kDenoisingHeads[1];

}  // namespace tidemark
