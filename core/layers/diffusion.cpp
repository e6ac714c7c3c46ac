#include "core/layers/diffusion.hpp"

#include <utility>

namespace tidemark {
namespace {

constexpr const char* kEmbeddings = "diffusers 0.42 models/embeddings.py: CombinedTimestepTextProjEmbeddings.forward";
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

Tensor embedded(Net& net, const char* first, const char* second, Tensor x, Dim width) {
  Tensor h = net.linear(first, std::move(x), width, true);
  h = silu(std::move(h));
  return net.linear(second, std::move(h), width, true);
}

Tensor time_and_text(Net& net) {
  constexpr Count kColumns = 256;  // of both Timesteps
  Scope in(net.tape, "time_text_embed", kEmbeddings);
  const Tensor& pooled = net.more_inputs.back();
  Tensor told = to(sinusoids(net, net.B.n(), kColumns), pooled.dtype());
  told = embedded(net, "time_text_embed.timestep_embedder.linear_1", "time_text_embed.timestep_embedder.linear_2",
                  std::move(told), net.H);
  if (net.arch.denoiser.guided) {
    Tensor guidance = to(sinusoids(net, net.B.n(), kColumns), pooled.dtype());
    guidance = embedded(net, "time_text_embed.guidance_embedder.linear_1", "time_text_embed.guidance_embedder.linear_2",
                        std::move(guidance), net.H);
    told = add(std::move(told), std::move(guidance));
  }
  Tensor text =
      embedded(net, "time_text_embed.text_embedder.linear_1", "time_text_embed.text_embedder.linear_2", pooled, net.H);
  return add(std::move(told), std::move(text));
}

Pieces modulation(Net& net, const char* linear, const Tensor& condition, int count) {
  Tensor h = net.linear(linear, silu(condition), Dim(count * net.H.n()), true);
  return split(std::move(h), 1, std::vector<Dim>(static_cast<std::size_t>(count), net.H));
}

Tensor modulated(Tensor normed, const Tensor& scale, const Tensor& shift) {
  Tensor factor = add_scalar(unsqueeze(scale, 1));
  Tensor x = mul(std::move(normed), std::move(factor));
  return add(std::move(x), unsqueeze(shift, 1));
}

Tensor continuous_norm(Net& net, const char* linear, const char* norm, Tensor x) {
  const Pieces told = modulation(net, linear, net.shared.condition, 2);
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

}  // namespace tidemark
