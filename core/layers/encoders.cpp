#include "core/layers/encoders.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "core/layers/diffusion.hpp"
#include "core/layers/model_call.hpp"
#include "core/model/denoiser_encoders.hpp"
#include "core/tape/ops/convolution.hpp"

namespace tidemark {
namespace {

constexpr const char* kClip = "transformers 5.12 models/clip/modeling_clip.py: CLIPTextModel.__init__";
constexpr const char* kT5 = "transformers 5.12 models/t5/modeling_t5.py: T5EncoderModel.__init__";
constexpr const char* kDecoder = "transformers 5.12 modeling_utils.py: PreTrainedModel.from_pretrained";
constexpr const char* kVae = "diffusers 0.42 models/autoencoders/autoencoder_kl.py: AutoencoderKL.encode";
constexpr const char* kCausal =
    "diffusers 0.42 models/autoencoders/autoencoder_kl_qwenimage.py: QwenImageEncoder3d.forward";
constexpr const char* kEncoder = "diffusers 0.42 models/autoencoders/vae.py: Encoder.forward";
constexpr const char* kBlock = "diffusers 0.42 models/unets/unet_2d_blocks.py: DownEncoderBlock2D.forward";
constexpr const char* kResnet = "diffusers 0.42 models/resnet.py: ResnetBlock2D.forward";
constexpr const char* kAttention = "diffusers 0.42 models/attention_processor.py: AttnProcessor2_0.__call__";
constexpr const char* kSample = "diffusers 0.42 models/autoencoders/vae.py: DiagonalGaussianDistribution.sample";

// vae/config.json of every repository that denoiser_encoders.cpp names: block_out_channels, layers_per_block (the way
// back has one more), norm_num_groups.
constexpr Count kWidths[] = {128, 256, 512, 512};
constexpr Count kResnets = 2, kGroups = 32, kColours = 3;

/// Frozen weights of one dtype, each a buffer, in the order that the modules are made.
class Frozen {
 public:
  Frozen(Tape& tape, const char* module, Dtype dtype) : tape_(tape), module_(module), dtype_(dtype) {}

  Dtype dtype() const { return dtype_; }

  Tensor weight(const Shape& shape) {
    tape_.buffer(module_, shape.numel() * size_of(dtype_), Category::kWeights);
    return tape_.part_of_buffer(shape, dtype_);
  }
  void linear(Count out, Count in, bool bias = true) {
    weight(Shape{Dim(out), Dim(in)});
    if (bias) weight(Shape{Dim(out)});
  }
  void norm(Count width, bool bias = true) {
    weight(Shape{Dim(width)});
    if (bias) weight(Shape{Dim(width)});
  }
  void convolution(Count out, Count in, Count kernel) {
    weight(Shape{Dim(out), Dim(in), Dim(kernel), Dim(kernel)});
    weight(Shape{Dim(out)});
  }

 private:
  Tape& tape_;
  const char* module_;
  Dtype dtype_;
};

// -- text encoders ---------------------------------------------------------------------------------------------------

void hold_clip(Tape& t, const TextEncoder& text, Dtype dtype) {
  constexpr Count kPositions = 77;
  Scope in(t, text.name, kClip);
  Frozen held(t, text.name, dtype);
  held.weight(Shape{Dim(text.vocabulary), Dim(text.width)});
  held.weight(Shape{Dim(kPositions), Dim(text.width)});
  t.buffer("position_ids", kPositions * size_of(Dtype::kInt64));
  for (Count layer = 0; layer < text.layers; ++layer) {
    for (int projection = 0; projection < 4; ++projection) held.linear(text.width, text.width);
    held.norm(text.width);
    held.linear(text.inner, text.width);
    held.linear(text.width, text.inner);
    held.norm(text.width);
  }
  held.norm(text.width);
  if (text.projected > 0) held.linear(text.projected, text.width, false);
}

void hold_t5(Tape& t, const TextEncoder& text, Dtype dtype) {
  constexpr Count kBuckets = 32;
  Scope in(t, text.name, kT5);
  Frozen held(t, text.name, dtype);
  held.weight(Shape{Dim(text.vocabulary), Dim(text.width)});
  for (Count layer = 0; layer < text.layers; ++layer) {
    for (int projection = 0; projection < 4; ++projection) held.linear(text.width, text.width, false);
    if (layer == 0) held.weight(Shape{Dim(kBuckets), Dim(text.relative_heads)});
    held.norm(text.width, false);
    for (int gate = 0; gate < 2; ++gate) held.linear(text.inner, text.width, false);
    held.linear(text.width, text.inner, false);
    held.norm(text.width, false);
  }
  held.norm(text.width, false);
}

void hold_text(Tape& t, const TextEncoder& text, Dtype dtype) {
  if (text.parameters == 0) return text.relative_heads > 0 ? hold_t5(t, text, dtype) : hold_clip(t, text, dtype);
  Scope in(t, text.name, kDecoder);
  t.buffer(text.name, text.parameters * size_of(dtype), Category::kWeights);
}

// -- the autoencoder -------------------------------------------------------------------------------------------------

Tensor grouped(Frozen& vae, Tensor x) {
  const Shape channels{x.dim(1)};
  Tensor weight = vae.weight(channels);
  return group_norm(std::move(x), std::move(weight), vae.weight(channels), kGroups);
}

// nn.Conv2d that keeps the picture's size.
Tensor convolved(Frozen& vae, Tensor x, Count out, Count kernel) {
  const Dim height = x.dim(2), width = x.dim(3);
  Tensor weight = vae.weight(Shape{Dim(out), x.dim(1), Dim(kernel), Dim(kernel)});
  return convolution(std::move(x), std::move(weight), vae.weight(Shape{Dim(out)}), {height, width});
}

Tensor resnet(Net& net, Frozen& vae, Tensor input, Count out) {
  Scope in(net.tape, "", kResnet);
  Tensor h = grouped(vae, input);
  h = silu(std::move(h));
  h = convolved(vae, std::move(h), out, 3);
  h = grouped(vae, std::move(h));
  h = silu(std::move(h));
  h = convolved(vae, std::move(h), out, 3);
  if (input.size(1) != out) input = convolved(vae, std::move(input), out, 1);
  const Tensor sum = add(input, h);
  return mul_scalar(sum);  // / output_scale_factor
}

// Downsample2D with a padding of its own on two sides.
Tensor halved(Net& net, Frozen& vae, const Tensor& x) {
  const Dim out = x.dim(1), height(x.size(2) / 2), width(x.size(3) / 2);
  Tensor weight = vae.weight(Shape{out, out, Dim(3), Dim(3)});
  Tensor bias = vae.weight(Shape{out});
  const Shape edged{x.dim(0), out, Dim(x.size(2) + 1), Dim(x.size(3) + 1)};
  Tensor padded = net.tape.allocate(edged, x.dtype(), "constant_pad_nd");
  return convolution(std::move(padded), std::move(weight), std::move(bias), {height, width});
}

Tensor block(Net& net, Frozen& vae, const Tensor& sample, std::size_t i) {
  Scope in(net.tape, "", kBlock);
  Tensor hidden = sample;
  for (Count k = 0; k < kResnets; ++k) hidden = resnet(net, vae, hidden, kWidths[i]);
  return i + 1 < std::size(kWidths) ? halved(net, vae, hidden) : hidden;
}

// Attention of one head over all places.
Tensor attended(Net& net, Frozen& vae, const Tensor& residual) {
  Scope in(net.tape, "", kAttention);
  const Dim places(residual.size(2) * residual.size(3)), width = residual.dim(1);
  const Shape rows{residual.dim(0), places, width}, heads{residual.dim(0), Dim(1), places, width};
  Tensor h = grouped(vae, residual);
  vae.linear(width.n(), width.n());
  Tensor q = view(net.tape.allocate(rows, vae.dtype(), "addmm"), heads);
  vae.linear(width.n(), width.n());
  Tensor k = view(net.tape.allocate(rows, vae.dtype(), "addmm"), heads);
  vae.linear(width.n(), width.n());
  Tensor v = view(net.tape.allocate(rows, vae.dtype(), "addmm"), heads);
  h = scaled_dot_product_attention(net, q, k, v, {}, 0.0, false, false);
  vae.linear(width.n(), width.n());
  h = net.tape.allocate(rows, vae.dtype(), "addmm");
  h = net.tape.allocate(residual.shape(), vae.dtype(), "clone");
  h = add(std::move(h), residual);
  return mul_scalar(std::move(h));
}

// The way back has weights and never runs.
void hold_decoder(Frozen& vae, const DenoiserEncoders& encoders) {
  const auto resnet_of = [&](Count in, Count out) {
    vae.norm(in);
    vae.convolution(out, in, 3);
    vae.norm(out);
    vae.convolution(out, out, 3);
    if (in != out) vae.convolution(out, in, 1);
  };
  const Count deepest = kWidths[std::size(kWidths) - 1];
  if (encoders.quant_convs) vae.convolution(encoders.latents, encoders.latents, 1);
  vae.convolution(deepest, encoders.latents, 3);
  resnet_of(deepest, deepest);
  vae.norm(deepest);
  for (int projection = 0; projection < 4; ++projection) vae.linear(deepest, deepest);
  resnet_of(deepest, deepest);
  Count width = deepest;
  for (std::size_t i = std::size(kWidths); i-- > 0;) {
    for (Count k = 0; k <= kResnets; ++k, width = kWidths[i]) resnet_of(width, kWidths[i]);
    if (i > 0) vae.convolution(width, width, 3);
  }
  vae.norm(width);
  vae.convolution(kColours, width, 3);
}

Tensor encoded(Net& net, Frozen& vae, const Tensor& pixels, const DenoiserEncoders& encoders) {
  Tensor sample;
  {
    Scope in(net.tape, "", kEncoder);
    sample = convolved(vae, pixels, kWidths[0], 3);
    for (std::size_t i = 0; i < std::size(kWidths); ++i) sample = block(net, vae, sample, i);
    const Count deepest = kWidths[std::size(kWidths) - 1];
    sample = resnet(net, vae, std::move(sample), deepest);
    sample = attended(net, vae, sample);
    sample = resnet(net, vae, std::move(sample), deepest);
    sample = grouped(vae, std::move(sample));
    sample = silu(std::move(sample));
    sample = convolved(vae, std::move(sample), 2 * encoders.latents, 3);
  }
  if (encoders.quant_convs) sample = convolved(vae, std::move(sample), 2 * encoders.latents, 1);
  return sample;
}

// -- Qwen-Image's autoencoder ----------------------------------------------------------------------------------------

/// AutoencoderKLQwenImage.encode of one frame, without gradients. Each convolution of 3 x 3 x 3 keeps a copy of its
/// input for the frames that follow, and these are there until the encoder returns.
class CausalEncoder {
 public:
  CausalEncoder(Net& net, Frozen& vae) : net_(net), vae_(vae) {}

  Tensor encoded(const Tensor& pixels, Count out) {
    Scope in(net_.tape, "", kCausal);
    constexpr Count kDepths[] = {96, 192, 384, 384};  // base_dim x dim_mult; in front of them, base_dim
    constexpr std::size_t kLevels = std::size(kDepths);
    Tensor x = keeping(pixels, kDepths[0]);
    for (std::size_t i = 0; i < kLevels; ++i) {
      for (Count k = 0; k < kResnets; ++k) x = residual(x, kDepths[i]);
      if (i + 1 < kLevels) x = halved(x, i > 0);
    }
    x = residual(x, kDepths[kLevels - 1]);
    x = attended(x);
    x = residual(x, kDepths[kLevels - 1]);
    x = silu(normed(x));
    x = keeping(x, out);
    kept_.clear();
    vae_.weight(Shape{Dim(kDecoderNumbers)});
    return causal(x, out, 1);
  }

 private:
  static constexpr Count kDecoderNumbers = 73295603;  // of its decoder and post_quant_conv, which never run

  Tensor made(const Tensor& like, Count channels, Count height, Count width, const char* op) {
    return net_.tape.allocate(Shape{like.dim(0), Dim(channels), Dim(height), Dim(width)}, vae_.dtype(), op);
  }
  void declare(Count out, Count in, Count numbers) {
    vae_.weight(Shape{Dim(out), Dim(in), Dim(numbers)});
    vae_.weight(Shape{Dim(out)});
  }
  // QwenImageRMS_norm.forward
  Tensor normed(const Tensor& x) {
    vae_.weight(Shape{x.dim(1)});
    Tensor normal;
    {
      const Tensor wide = to(x, Dtype::kFp32);
      normal = net_.tape.allocate(x.shape(), Dtype::kFp32, "div");
    }
    normal = to(std::move(normal), vae_.dtype());
    Tensor scaled = mul_scalar(normal);
    scaled = mul_scalar(std::move(scaled));  // by gamma
    return add_scalar(std::move(scaled));
  }
  // QwenImageCausalConv3d.forward: the frames before the first are zeros.
  Tensor causal(const Tensor& x, Count out, Count kernel) {
    const Count edge = kernel - 1, height = x.size(2), width = x.size(3);
    declare(out, x.size(1), kernel * kernel * kernel);
    const Tensor padded = made(x, x.size(1), kernel * (height + edge), width + edge, "constant_pad_nd");
    return made(x, out, height, width, "convolution");
  }
  Tensor keeping(const Tensor& x, Count out) {
    kept_.push_back(clone(x));
    return causal(x, out, 3);
  }
  // QwenImageResidualBlock.forward
  Tensor residual(const Tensor& input, Count out) {
    const Tensor h = input.size(1) == out ? input : causal(input, out, 1);
    Tensor x = normed(input);
    x = silu(std::move(x));
    x = keeping(x, out);
    x = normed(x);
    x = silu(std::move(x));
    x = keeping(x, out);
    return add(std::move(x), h);
  }
  // QwenImageResample.forward of "downsample2d", and of "downsample3d" on the first frame.
  Tensor halved(const Tensor& x, bool over_time) {
    const Count width = x.size(1);
    declare(width, width, 9);
    Tensor out;
    {
      const Tensor padded = made(x, width, x.size(2) + 1, x.size(3) + 1, "constant_pad_nd");
      out = made(x, width, x.size(2) / 2, x.size(3) / 2, "convolution");
    }
    if (!over_time) return out;
    declare(width, width, 3);  // time_conv
    kept_.push_back(clone(out));
    return out;
  }
  // QwenImageAttentionBlock.forward
  Tensor attended(const Tensor& identity) {
    const Count width = identity.size(1), places = identity.size(2) * identity.size(3);
    Tensor x = normed(identity);
    declare(3 * width, width, 1);
    Tensor qkv = made(x, 3 * width, x.size(2), x.size(3), "convolution");
    qkv = net_.tape.allocate(Shape{x.dim(0), Dim(1), Dim(places), Dim(3 * width)}, vae_.dtype(), "clone");
    const Pieces heads = split(std::move(qkv), 3, {Dim(width), Dim(width), Dim(width)});
    x = scaled_dot_product_attention(net_, heads.part[0], heads.part[1], heads.part[2], {}, 0.0, false, false);
    x = made(identity, width, identity.size(2), identity.size(3), "clone");
    declare(width, width, 1);
    x = made(identity, width, identity.size(2), identity.size(3), "convolution");
    return add(std::move(x), identity);
  }

  Net& net_;
  Frozen& vae_;
  std::vector<Tensor> kept_;
};

void encode_pictures(Net& net, const DenoiserEncoders& encoders, Dtype dtype) {
  Scope in(net.tape, "vae", kVae);
  const LatentSize size = latent_size(net);
  const Shape picture{net.B, Dim(kColours), Dim(size.height * kPixelsOfLatent), Dim(size.width * kPixelsOfLatent)};
  net.pixel_values = net.tape.allocate(picture, Dtype::kFp32, "pixel_values");
  net.image_hidden_states = to(net.pixel_values, dtype);  // a name of the loop's
  Frozen vae(net.tape, "vae", dtype);
  Tensor parameters;
  if (encoders.causal) {
    parameters = CausalEncoder(net, vae).encoded(net.image_hidden_states, 2 * encoders.latents);
  } else {
    parameters = encoded(net, vae, net.image_hidden_states, encoders);
    hold_decoder(vae, encoders);
  }
  Scope in_sample(net.tape, "", kSample);
  const Shape half{net.B, Dim(encoders.latents), parameters.dim(2), parameters.dim(3)};
  constexpr const char* kNames[] = {"clamp", "exp", "exp", "normal_", "mul", "add"};
  std::vector<Tensor> made;
  for (const char* name : kNames) made.push_back(net.tape.allocate(half, dtype, name));
}

}  // namespace

void encode_batch(Net& net) {
  if (net.job.vae == Vae::kCached && !net.job.text_encoders) return;
  Tape& t = net.tape;
  const DenoiserEncoders encoders = encoders_of(net.arch.denoiser);
  const Dtype mixed = net.job.recipe.autocast.value_or(net.weight_dtype(2));
  const WithoutGradients quiet(t);
  const std::optional<Dtype> autocast = t.autocast();  // which the denoiser alone runs under
  t.set_autocast(std::nullopt);
  if (net.job.vae != Vae::kCached) {
    encode_pictures(net, encoders, net.job.vae == Vae::kWide ? Dtype::kFp32 : mixed);
  }
  for (std::size_t i = 0; net.job.text_encoders && i < encoders.count; ++i) {
    hold_text(t, encoders.texts[i], mixed);
  }
  t.set_autocast(autocast);
}

}  // namespace tidemark
