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
Tensor embedded(Net& net, const char* first, const char* second, Tensor x, Dim width, bool bias = true);
/// Timesteps.forward and the TimestepEmbedding of that, in the dtype of what the model is handed.
Tensor embedded_time(Net& net, const char* first, const char* second, Dtype dtype, bool bias = true);
/// CombinedTimestepTextProjEmbeddings.forward, with a guidance's embedding where the model has one. The pooled states
/// of the text are the last of net.more_inputs.
Tensor time_and_text(Net& net);

/// What the condition says of one norm: shifts, scales and gates [B, H], `count` of them.
Pieces modulation(Net& net, const char* linear, const Tensor& condition, int count, bool bias = true);
/// norm(x) * (1 + scale[:, None]) + shift[:, None]
Tensor modulated(Tensor normed, const Tensor& scale, const Tensor& shift);
/// AdaLayerNormContinuous.forward
Tensor continuous_norm(Net& net, const char* linear, const char* norm, Tensor x, bool bias = true);
/// gate.unsqueeze(1) * x
Tensor gated(const Tensor& gate, Tensor x);
/// FeedForward.forward of activation "gelu-approximate": linear, GELU, linear.
Tensor gelu_feed_forward(Net& net, const char* up, const char* down, Tensor x);

/// The places of the picture and those of the text, which attend together.
struct Streams {
  Tensor picture, text;
};
/// [B, places, H] as [B, places, A, hd].
Tensor in_heads(Net& net, Tensor x);
/// RMSNorm of diffusers, over x's last dimension.
Tensor diffusers_norm(Net& net, const char* name, Tensor x);
/// torch.nn.RMSNorm over each head.
Tensor head_norm(Net& net, const char* name, Tensor x);
/// Neighbouring columns turn as pairs, in fp32, by net.shared.cos and sin. x is [B, places, A, hd].
Tensor turned(Net& net, const Tensor& x);
/// Rows of what q, k, v [B, places, A, hd] attend to: [B, places, H] in q's dtype.
Tensor attended(Net& net, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask = {});
/// fp16 overflows: hidden_states.clip(-65504, 65504).
Tensor clipped(Tensor x);

/// Attention runs in scaled_dot_product_attention alone.
inline constexpr AttentionSupport kDiffusersAttention = {true, false, false, false};

/// The head of every class here: mse_loss(prediction.float(), target.float()), net.labels being the target.
extern const HeadForward kDenoisingHeads[1];

}  // namespace tidemark
