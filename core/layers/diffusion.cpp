#include "core/layers/diffusion.hpp"

#include <utility>

namespace tidemark {
namespace {

constexpr const char* kEmbeddings = "diffusers 0.42 models/embeddings.py: CombinedTimestepTextProjEmbeddings.forward";
constexpr const char* kRotation = "diffusers 0.42 models/embeddings.py: apply_rotary_emb";
constexpr const char* kNorm = "diffusers 0.42 models/normalization.py: RMSNorm.forward";
constexpr const char* kTorchNorm = "pytorch aten/src/ATen/native/layer_norm.cpp: rms_norm_composite";
constexpr const char* kLoss = "diffusers 0.42 examples/dreambooth: F.mse_loss(model_pred.float(), target.float())";

Outputs denoising(Net& net, const Program&, Tensor prediction_in) {
  Scope in(net.tape, "loss", kLoss);
  const Tensor prediction = std::move(prediction_in);
  Tensor wide = to(prediction, Dtype::kFp32);
  Tensor target = to(net.labels, Dtype::kFp32);
  Outputs out;
  out.loss = mse_loss(std::move(wide), std::move(target));
  return out;
}

}  // namespace

constinit const HeadForward kDenoisingHeads[1] = {{Head::kDenoising, denoising}};

LatentSize latent_size(const Net& net) {
  const TrainingJob& job = net.job;
  const Count height = job.image_height > 0 ? job.image_height : net.arch.image_size;
  const Count width = job.image_height > 0 ? job.image_width : net.arch.image_size;
  return {height / kPixelsOfLatent, width / kPixelsOfLatent};
}

Tensor conditioned_input(Net& net, const Shape& shape, const char* name) {
  return net.tape.allocate(shape, net.job.recipe.autocast.value_or(net.weight_dtype(2)), name);
}

Tensor sinusoids(Net& net, Count count, Count width) {
  return net.tape.allocate(Shape{Dim(count), Dim(width)}, Dtype::kFp32, "cat");
}

Tensor embedded(Net& net, const char* first, const char* second, Tensor x, Dim width, bool bias) {
  Tensor h = net.linear(first, std::move(x), width, bias);
  h = silu(std::move(h));
  return net.linear(second, std::move(h), width, bias);
}

Tensor embedded_time(Net& net, const char* first, const char* second, Dtype dtype, bool bias) {
  constexpr Count kColumns = 256;  // of every Timesteps
  return embedded(net, first, second, to(sinusoids(net, net.B.n(), kColumns), dtype), net.H, bias);
}

Tensor time_and_text(Net& net) {
  Scope in(net.tape, "time_text_embed", kEmbeddings);
  const Tensor& pooled = net.more_inputs.back();
  Tensor told = embedded_time(net, "time_text_embed.timestep_embedder.linear_1",
                              "time_text_embed.timestep_embedder.linear_2", pooled.dtype());
  if (net.arch.denoiser.guided) {
    Tensor guidance = embedded_time(net, "time_text_embed.guidance_embedder.linear_1",
                                    "time_text_embed.guidance_embedder.linear_2", pooled.dtype());
    told = add(std::move(told), std::move(guidance));
  }
  Tensor text =
      embedded(net, "time_text_embed.text_embedder.linear_1", "time_text_embed.text_embedder.linear_2", pooled, net.H);
  return add(std::move(told), std::move(text));
}

Pieces modulation(Net& net, const char* linear, const Tensor& condition, int count, bool bias) {
  Tensor h = net.linear(linear, silu(condition), Dim(count * net.H.n()), bias);
  return split(std::move(h), 1, std::vector<Dim>(static_cast<std::size_t>(count), net.H));
}

Tensor modulated(Tensor normed, const Tensor& scale, const Tensor& shift) {
  Tensor factor = add_scalar(unsqueeze(scale, 1));
  Tensor x = mul(std::move(normed), std::move(factor));
  return add(std::move(x), unsqueeze(shift, 1));
}

Tensor continuous_norm(Net& net, const char* linear, const char* norm, Tensor x, bool bias) {
  const Pieces told = modulation(net, linear, net.shared.condition, 2, bias);
  return modulated(net.layer_norm(norm, std::move(x), false), told.part[0], told.part[1]);
}

Tensor gated(const Tensor& gate, Tensor x) {
  return mul(unsqueeze(gate, 1), std::move(x));
}

Tensor gelu_feed_forward(Net& net, const char* up, const char* down, Tensor x) {
  Tensor h = net.linear(up, std::move(x), net.F, true);
  h = gelu(std::move(h));
  return net.linear(down, std::move(h), net.H, true);
}

Tensor in_heads(Net& net, Tensor x) {
  const Shape heads{x.dim(0), x.dim(1), net.A, net.hd};
  return view(std::move(x), heads);
}

Tensor diffusers_norm(Net& net, const char* name, Tensor x_in) {
  Scope in(net.tape, name, kNorm);
  Tensor x = std::move(x_in);
  const Tensor weight = net.parameter(name, "weight", Shape{x.dim(-1)});
  Tensor inverse = power(to(x, Dtype::kFp32));
  const Tensor variance = mean_last(std::move(inverse));
  inverse = rsqrt(add_scalar(variance));
  x = mul(std::move(x), std::move(inverse));
  if (is_half(weight.dtype())) x = to(std::move(x), weight.dtype());
  return mul(std::move(x), weight);
}

// Fused kernels take no mixture of dtypes; the records are of this composite.
Tensor head_norm(Net& net, const char* name, Tensor x_in) {
  Scope in(net.tape, name, kTorchNorm);
  Tensor x = std::move(x_in);
  Tensor weight = net.parameter(name, "weight", Shape{net.hd});
  if (net.tape.autocast()) {  // on autocast's fp32 list
    weight = to(std::move(weight), Dtype::kFp32);
    x = to(std::move(x), Dtype::kFp32);
  }
  const Dtype dtype = x.dtype();
  const Tensor wide = to(std::move(x), Dtype::kFp32);
  Tensor inverse = mean_last(power(wide));
  inverse = rsqrt(std::move(inverse));
  Tensor h = mul(wide, std::move(inverse));
  h = mul(std::move(h), std::move(weight));
  return to(std::move(h), dtype);
}

Tensor turned(Net& net, const Tensor& x) {
  Scope in(net.tape, "attn", kRotation);
  Tensor rotated;
  {
    const Pieces pair = unbind(view(x, Shape{x.dim(0), x.dim(1), x.dim(2), Dim(net.hd.n() / 2), Dim(2)}), -1);
    rotated = neg(pair.part[1]);
    rotated = stack_last(std::move(rotated), pair.part[0]);
    rotated = view(std::move(rotated), x.shape());
  }
  Tensor a = mul(to(x, Dtype::kFp32), net.shared.cos);
  Tensor b = mul(to(rotated, Dtype::kFp32), net.shared.sin);
  Tensor out = add(std::move(a), std::move(b));
  return to(std::move(out), x.dtype());
}

Tensor attended(Net& net, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  Tensor first = transpose(q, 1, 2), second = transpose(k, 1, 2), third = transpose(v, 1, 2);
  Tensor out =
      scaled_dot_product_attention(net, std::move(first), std::move(second), std::move(third), mask, 0.0, false, false);
  out = transpose(std::move(out), 1, 2);
  const Shape rows{out.dim(0), out.dim(1), net.H};
  return to(reshape(std::move(out), rows), q.dtype());
}

Tensor clipped(Tensor x) {
  return x.dtype() == Dtype::kFp16 ? clamp(std::move(x)) : x;
}

}  // namespace tidemark
