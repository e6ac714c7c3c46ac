// Norms, rotations and activations that several families share.
#include "core/layers/net.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

constexpr const char* kRmsNorm = "transformers 5.12 models/llama/modeling_llama.py: LlamaRMSNorm.forward";
constexpr const char* kRotary = "transformers 5.12 models/llama/modeling_llama.py: LlamaRotaryEmbedding.forward";

}  // namespace

Tensor rotate_half(Tensor x_in) {
  const Tensor x = std::move(x_in);
  const Count half = x.size(-1) / 2;
  Tensor x1 = narrow(x, -1, 0, Dim(half));
  Tensor x2 = narrow(x, -1, half, Dim(half));
  Tensor negative = neg(x2);
  return cat({&negative, &x1}, -1);
}

MeanSquare mean_square(Tensor x) {
  MeanSquare square;
  square.variance = power(std::move(x));
  square.variance = mean_last(std::move(square.variance));
  square.root = add_scalar(square.variance);
  square.root = rsqrt(std::move(square.root));
  return square;
}

Tensor rms_norm(Net& net, const char* name, Tensor x_in) {
  Scope in(net.tape, name, kRmsNorm);
  Tensor x = net.arrived(name, std::move(x_in));
  Tensor weight = net.parameter(name, "weight", Shape{x.dim(-1)});
  if (net.job.liger_rms_norm) return liger_rms_norm(std::move(x), std::move(weight));
  return normed_by(std::move(weight), std::move(x));
}

Tensor normed_by(Tensor weight, Tensor x) {
  const Dtype input_dtype = x.dtype();
  Tensor h = to(std::move(x), Dtype::kFp32);
  MeanSquare square = mean_square(h);
  h = mul(std::move(h), std::move(square.root));
  Tensor n = to(h, input_dtype);
  return mul(std::move(weight), std::move(n));
}

void make_position_ids(Net& net) {
  net.shared.position_ids = net.tape.allocate(Shape{rows_of_positions(net), net.S}, Dtype::kInt64, "position_ids");
  // A model that sees a part of the sequence is given them with its batch, and so is one of packed rows.
  if (net.job.tensor.has_dtensors() || net.job.packing) net.more_inputs.push_back(net.shared.position_ids);
}

void rotary_tables(Net& net, Dtype dtype, Count dim) {
  Scope in(net.tape, "rotary_emb", kRotary);
  Tape& t = net.tape;
  const std::int16_t card = t.card();
  if (net.is_laid()) t.go_to_card(static_cast<std::int16_t>(net.job.pipeline.rotary));
  t.buffer("rotary_emb.inv_freq", dim / 2 * 4);
  t.buffer("rotary_emb.original_inv_freq", dim / 2 * 4);
  const Dim rows = rows_of_positions(net);
  const Shape table{rows, net.S, Dim(dim)};
  Tensor positions = t.allocate(Shape{rows, Dim(1), net.S}, Dtype::kFp32, "position_ids.float()");
  Tensor freqs = t.allocate(Shape{rows, Dim(dim / 2), net.S}, Dtype::kFp32, "bmm");
  if (net.job.framework.at_least(5, 19)) positions.reset();  // a product of the two in place of their matrix product
  Tensor emb = t.allocate(table, Dtype::kFp32, "cat");
  Tensor cos = t.allocate(table, Dtype::kFp32, "cos");
  cos = t.allocate(table, Dtype::kFp32, "mul");
  Tensor sin = t.allocate(table, Dtype::kFp32, "sin");
  sin = t.allocate(table, Dtype::kFp32, "mul");
  net.shared.cos = to(cos, dtype);
  net.shared.sin = to(sin, dtype);
  t.go_to_card(card);
}

void rotary_tables_by_kind(Net& net, Dtype dtype) {
  rotary_tables_by_kind(net, dtype, net.arch.rotary_dim);
}

void rotary_tables_by_kind(Net& net, Dtype dtype, Count local) {
  bool sliding = false, full = false;
  for (Count i = 0; i < net.arch.num_layers; ++i) (net.is_sliding_layer(i) ? sliding : full) = true;
  if (sliding) {
    rotary_tables(net, dtype, local);
    net.shared.local_cos = std::move(net.shared.cos);
    net.shared.local_sin = std::move(net.shared.sin);
  }
  if (full) rotary_tables(net, dtype, net.arch.rotary_dim);
}

Tensor rotate(Net& net, Tensor x_in) {
  const Tensor x = std::move(x_in);
  const bool local = net.shared.local_cos.defined() && net.is_sliding_layer(net.layer_index);
  const Tensor& cos_table = local ? net.shared.local_cos : net.shared.cos;
  const Tensor& sin_table = local ? net.shared.local_sin : net.shared.sin;
  if (net.job.liger_rope) return liger_rope(x, cos_table, sin_table);
  return rotate_by(x, unsqueeze(cos_table, 1), unsqueeze(sin_table, 1));
}

Tensor rotate_by(Tensor x_in, const Tensor& cos, const Tensor& sin) {
  const Tensor x = std::move(x_in);
  Tensor straight = mul(x, cos);
  Tensor turned = rotate_half(x);
  turned = mul(std::move(turned), sin);
  return add(std::move(straight), std::move(turned));
}

Tensor activate(Activation activation, Tensor x_in) {
  Tensor x = std::move(x_in);
  switch (activation) {
    case Activation::kSilu:
      return silu(std::move(x));
    case Activation::kRelu:
      return relu(std::move(x));
    case Activation::kQuickGelu: {
      // input * torch.sigmoid(1.702 * input)
      Tensor s = mul_scalar(x);
      s = sigmoid(std::move(s));
      return mul(std::move(x), std::move(s));
    }
    case Activation::kGeluNew: {
      // activations.py NewGELUActivation:
      // 0.5 * input * (1.0 + tanh(sqrt(2/pi) * (input + 0.044715 * pow(input, 3))))
      Tensor half = mul_scalar(x);
      Tensor inner = power(x);
      inner = mul_scalar(std::move(inner));
      inner = add(x, std::move(inner));
      inner = mul_scalar(std::move(inner));
      inner = tanh(std::move(inner));
      inner = add_scalar(std::move(inner));
      return mul(std::move(half), std::move(inner));
    }
    case Activation::kGeluFast: {
      // 0.5 * input * (1.0 + tanh(input * 0.7978845608 * (1.0 + 0.044715 * input * input)))
      Tensor half = mul_scalar(x);
      Tensor left = mul_scalar(x);
      Tensor right = mul_scalar(x);
      right = mul(std::move(right), x);
      right = add_scalar(std::move(right));
      left = mul(std::move(left), std::move(right));
      left = tanh(std::move(left));
      left = add_scalar(std::move(left));
      return mul(std::move(half), std::move(left));
    }
    case Activation::kRelu2: {
      // `input` and `relu_applied` are names of the method: both live until it returns.
      const Tensor relu_applied = relu(x);
      return power(relu_applied);
    }
    default:
      break;
  }
  return gelu(std::move(x));
}

}  // namespace tidemark
