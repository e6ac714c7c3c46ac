#include "core/layers/norms.hpp"

namespace tidemark {
namespace {

constexpr const char* kGemma = "transformers 5.12 models/gemma/modeling_gemma.py: GemmaRMSNorm.forward";
constexpr const char* kOlmo2 = "transformers 5.12 models/olmo2/modeling_olmo2.py: Olmo2RMSNorm.forward";
constexpr const char* kHelium = "transformers 5.12 models/helium/modeling_helium.py: HeliumRMSNorm.forward";
constexpr const char* kOlmo = "transformers 5.12 models/olmo/modeling_olmo.py: OlmoLayerNorm.forward";
constexpr const char* kCohere = "transformers 5.12 models/cohere/modeling_cohere.py: CohereLayerNorm.forward";
constexpr const char* kNemotron = "transformers 5.12 models/nemotron/modeling_nemotron.py: NemotronLayerNorm1P.forward";
constexpr const char* kLlama4 = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4TextRMSNorm.forward";
constexpr const char* kLlama4L2 = "transformers 5.12 models/llama4/modeling_llama4.py: Llama4TextL2Norm.forward";

/// x · rsqrt(mean(x²) + eps), x in fp32.
Tensor normalised(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tensor r = power(x);
  r = mean_last(std::move(r));
  r = add_scalar(std::move(r));
  r = rsqrt(std::move(r));
  return mul(x, std::move(r));
}

}  // namespace

Tensor gemma_norm(Net& net, const char* name, Tensor x_in, bool in_place) {
  Scope in(net.tape, name, kGemma);
  const Tensor x = std::move(x_in);
  Tensor weight = net.parameter(name, "weight", Shape{x.dim(-1)});
  if (net.job.liger_rms_norm) return liger_rms_norm(x, std::move(weight), in_place);
  Tensor output = to(x, Dtype::kFp32);
  output = normalised(std::move(output));
  weight = to(std::move(weight), Dtype::kFp32);
  weight = add_scalar(std::move(weight));
  output = mul(std::move(output), std::move(weight));
  return to(std::move(output), x.dtype());
}

Tensor olmo2_norm(Net& net, const char* name, Tensor x_in, bool by_liger) {
  Scope in(net.tape, name, kOlmo2);
  const Dtype input_dtype = x_in.dtype();
  Tensor weight = net.parameter(name, "weight", Shape{x_in.dim(-1)});
  if (net.job.liger_rms_norm && by_liger) return liger_rms_norm(std::move(x_in), std::move(weight), false);
  Tensor h = to(std::move(x_in), Dtype::kFp32);
  MeanSquare square = mean_square(h);
  h = mul(std::move(h), std::move(square.root));
  Tensor scaled = mul(std::move(weight), h);
  return to(std::move(scaled), input_dtype);
}

Tensor helium_norm(Net& net, const char* name, Tensor x_in) {
  Scope in(net.tape, name, kHelium);
  const Dtype input_dtype = x_in.dtype();
  Tensor weight = net.parameter(name, "weight", Shape{x_in.dim(-1)});
  Tensor h = to(std::move(x_in), Dtype::kFp32);
  MeanSquare square = mean_square(h);
  h = mul(std::move(h), std::move(square.root));
  weight = to(std::move(weight), Dtype::kFp32);
  Tensor scaled = mul(std::move(weight), h);
  return to(std::move(scaled), input_dtype);
}

Tensor olmo_norm(Net& net, const char* name, Tensor x_in) {
  Scope in(net.tape, name, kOlmo);
  const Dtype input_dtype = x_in.dtype();
  Tensor h = to(std::move(x_in), Dtype::kFp32);
  h = layer_norm(std::move(h), {}, {});
  return to(std::move(h), input_dtype);
}

Tensor cohere_norm(Net& net, const char* name, Tensor x_in, bool per_head) {
  Scope in(net.tape, name, kCohere);
  const Dtype input_dtype = x_in.dtype();
  const Shape weights = per_head ? Shape{x_in.dim(-2), x_in.dim(-1)} : Shape{x_in.dim(-1)};
  Tensor weight = net.parameter(name, "weight", weights);
  Tensor h = to(std::move(x_in), Dtype::kFp32);
  const Tensor mean = mean_last(h);
  Tensor variance = sub(h, mean);
  variance = power(std::move(variance));
  variance = mean_last(std::move(variance));
  Tensor centred = sub(h, mean);
  Tensor r = add_scalar(variance);
  r = rsqrt(std::move(r));
  h = mul(std::move(centred), std::move(r));
  weight = to(std::move(weight), Dtype::kFp32);
  h = mul(std::move(weight), std::move(h));
  return to(std::move(h), input_dtype);
}

Tensor nemotron_norm(Net& net, const char* name, Tensor x_in) {
  Scope in(net.tape, name, kNemotron);
  Tensor x = std::move(x_in);
  Tensor weight = net.parameter(name, "weight", Shape{x.dim(-1)});
  Tensor bias = net.parameter(name, "bias", Shape{x.dim(-1)});
  weight = add_scalar(std::move(weight));
  const auto autocast = net.tape.autocast();
  if (autocast) {
    // torch.amp.autocast_mode._cast: plain casts, kept in no cache.
    x = to(std::move(x), *autocast);
    weight = to(std::move(weight), *autocast);
    bias = to(std::move(bias), *autocast);
  }
  net.tape.set_autocast(std::nullopt);
  x = layer_norm(std::move(x), std::move(weight), std::move(bias));
  net.tape.set_autocast(autocast);
  return x;
}

Tensor l2_norm(Net& net, const char* name, Tensor x_in) {
  Scope in(net.tape, name, kLlama4L2);
  const Tensor x = std::move(x_in);
  Tensor h = to(x, Dtype::kFp32);
  h = normalised(std::move(h));
  return to(std::move(h), x.dtype());
}

Tensor llama4_norm(Net& net, const char* name, Tensor x_in) {
  Scope in(net.tape, name, kLlama4);
  const Tensor x = std::move(x_in);
  const Tensor weight = net.parameter(name, "weight", Shape{x.dim(-1)});
  Tensor h = to(x, Dtype::kFp32);
  h = normalised(std::move(h));
  h = to(std::move(h), x.dtype());
  return mul(h, weight);
}

}  // namespace tidemark
