// Parakeet with a CTC head: convolutions over spectra, conformer blocks whose attention is told distances, letters.
#include <algorithm>
#include <bit>
#include <string>

#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/families/wav2vec2.hpp"
#include "core/tape/ops/convolution.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kSubsampling =
    "transformers 5.12 models/parakeet/modeling_parakeet.py: ParakeetEncoderSubsamplingConv2D.forward";
constexpr const char* kPositions =
    "transformers 5.12 models/parakeet/modeling_parakeet.py: ParakeetEncoderRelPositionalEncoding.forward";
constexpr const char* kFeedForward =
    "transformers 5.12 models/parakeet/modeling_parakeet.py: ParakeetEncoderFeedForward.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/parakeet/modeling_parakeet.py: ParakeetEncoderAttention.forward";
constexpr const char* kConvolution =
    "transformers 5.12 models/parakeet/modeling_parakeet.py: ParakeetEncoderConvolutionModule.forward";
constexpr const char* kBlock = "transformers 5.12 models/parakeet/modeling_parakeet.py: ParakeetEncoderBlock.forward";
constexpr const char* kEncoder = "transformers 5.12 models/parakeet/modeling_parakeet.py: ParakeetEncoder.forward";
constexpr const char* kHead = "transformers 5.12 models/parakeet/modeling_parakeet.py: ParakeetForCTC.forward";

// The steps of ParakeetEncoderSubsamplingConv2D: each channel's convolution, and one over all of them.
constexpr const char* kConvolutions[][2] = {{"encoder.subsampling.layers.0", nullptr},
                                            {"encoder.subsampling.layers.2", "encoder.subsampling.layers.3"},
                                            {"encoder.subsampling.layers.5", "encoder.subsampling.layers.6"},
                                            {"encoder.subsampling.layers.8", "encoder.subsampling.layers.9"}};

// transformers 5.12.1 models/parakeet/configuration_parakeet.py: ParakeetEncoderConfig, ParakeetCTCConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  ConfigFields encoder(required_object(fields, "encoder_config"), fields.path() + "/encoder_config", fields.issues());
  read_tower_sizes(encoder, architecture, 1024, 24, 8, 4096);
  architecture.activation = read_activation(encoder, {"hidden_act"}, "silu");
  architecture.attention_bias = encoder.flag({"attention_bias"}, true);
  architecture.conv_bias = encoder.flag({"convolution_bias"}, true);
  architecture.position_kernel = encoder.count({"conv_kernel_size"}, 9);
  architecture.encoder_stride = encoder.count({"subsampling_conv_stride"}, 2);
  architecture.patch_size = encoder.count({"subsampling_conv_kernel_size"}, 3);
  architecture.pooler_size = encoder.count({"subsampling_conv_channels"}, 256);
  architecture.num_channels = encoder.count({"num_mel_bins"}, 80);
  architecture.conv_dims = {architecture.num_channels};
  architecture.conv_kernels = {architecture.patch_size};
  const auto factor = static_cast<std::uint64_t>(encoder.count({"subsampling_factor"}, 8));
  const auto steps = static_cast<std::size_t>(std::bit_width(factor)) - 1;  // int(math.log2(factor))
  if (steps > std::size(kConvolutions)) {
    encoder.error("INVALID_VALUE", "subsampling_factor",
                  "At most " + std::to_string(std::size(kConvolutions)) + " steps are modelled, a factor of 16.", "16");
  }
  architecture.conv_strides.assign(steps, architecture.encoder_stride);
  architecture.residual_dropout = encoder.probability({"dropout"}, 0.1);
  architecture.embedding_dropout = encoder.probability({"dropout_positions"}, 0.0);
  architecture.activation_dropout = encoder.probability({"activation_dropout"}, 0.1);
  architecture.attention_dropout = encoder.probability({"attention_dropout"}, 0.1);
  note_layerdrop(encoder, "layerdrop", 0.1);
  encoder.accept({"model_type", "max_position_embeddings", "scale_input", "num_key_value_heads"});
  encoder.report_unread("parakeet_encoder");
  architecture.vocab_size = fields.count({"vocab_size"}, 1025);
  architecture.positions_by_token = false;
  fields.accept({"ctc_loss_reduction", "ctc_zero_infinity"});
}

Count behind(const Architecture& a, Count length, std::size_t convolutions) {
  for (std::size_t i = 0; i < convolutions; ++i) {
    length = (length + 2 * ((a.patch_size - 1) / 2) - a.patch_size) / a.conv_strides[i] + 1;
  }
  return length;
}

// ParakeetFeatureExtractor: a spectrum every 160 samples, and a mask that leaves out the last one.
Count spectra(const Net& net) {
  constexpr Count kHop = 160;
  return wave_samples(net) / kHop + 1;
}

void inputs(Net& net) {
  const Count frames = spectra(net);
  net.S = Dim(std::max<Count>(1, behind(net.arch, frames, net.arch.conv_strides.size())));
  net.T = Dim(net.B.n() * net.S.n());
  net.input_ids =
      net.tape.allocate(Shape{net.B, Dim(frames), Dim(net.arch.num_channels)}, net.weight_dtype(3), "input_features");
  net.attention_mask = net.tape.allocate(Shape{net.B, Dim(frames)}, Dtype::kInt64, "attention_mask");
  wave_labels(net);
}

// nn.Conv2d; `apart`: each channel is its own.
Tensor convolved(Net& net, const char* name, Tensor x, Dim out, Count kernel, Dim height, Dim width, bool apart) {
  Scope in(net.tape, name, kSubsampling);
  const Tensor weight = net.parameter(name, "weight", Shape{out, apart ? Dim(1) : x.dim(1), Dim(kernel), Dim(kernel)});
  Tensor shift = net.parameter(name, "bias", Shape{out});
  return scale_in_place(convolution(std::move(x), weight, std::move(shift), {height, width}));  // what is masked
}

Tensor subsample(Net& net) {
  Scope in(net.tape, "encoder.subsampling", kSubsampling);
  const Dim channels(net.arch.pooler_size);
  Tensor x = unsqueeze(net.input_ids, 1);
  for (std::size_t i = 0; i < net.arch.conv_strides.size(); ++i) {
    const Dim height(behind(net.arch, spectra(net), i + 1)), width(behind(net.arch, net.arch.num_channels, i + 1));
    x = convolved(net, kConvolutions[i][0], std::move(x), channels, net.arch.patch_size, height, width, i > 0);
    if (i > 0) x = convolved(net, kConvolutions[i][1], std::move(x), channels, 1, height, width, false);
    x = relu(std::move(x));
  }
  const Dim wide(channels.n() * x.size(3));
  x = reshape(transpose(std::move(x), 1, 2), Shape{net.B, net.S, wide});
  return net.linear("encoder.subsampling.linear", std::move(x), net.H, true);
}

// Sines and cosines of all distances, of each recording.
Tensor positions(Net& net, Dtype dtype) {
  Scope in(net.tape, "encoder.encode_positions", kPositions);
  net.tape.buffer("encoder.encode_positions.inv_freq", net.H.n() / 2 * size_of(Dtype::kFp32));
  const Dim distances(2 * net.S.n() - 1), half(net.H.n() / 2);
  const Tensor freqs = net.tape.allocate(Shape{net.B, distances, half}, Dtype::kFp32, "bmm");
  const Tensor sin = net.tape.allocate(freqs.shape(), Dtype::kFp32, "sin");
  const Tensor cos = net.tape.allocate(freqs.shape(), Dtype::kFp32, "cos");
  return to(net.tape.allocate(Shape{net.B, distances, net.H}, Dtype::kFp32, "stack"), dtype);
}

/// Where a feed-forward's modules are.
struct FeedForward {
  const char *module, *norm, *up, *down;
};
constexpr FeedForward kFirst = {"feed_forward1", "norm_feed_forward1", "feed_forward1.linear1",
                                "feed_forward1.linear2"};
constexpr FeedForward kSecond = {"feed_forward2", "norm_feed_forward2", "feed_forward2.linear1",
                                 "feed_forward2.linear2"};

// hidden_states + 0.5 * ff(norm(hidden_states))
Tensor half_of(Net& net, const FeedForward& names, const Tensor& hidden) {
  Tensor h = net.layer_norm(names.norm, hidden);
  {
    Scope in(net.tape, names.module, kFeedForward);
    const bool bias = net.arch.attention_bias;
    h = activate(net.arch.activation, net.linear(names.up, std::move(h), net.F, bias));
    h = dropout(std::move(h), net.arch.activation_dropout);
    h = net.linear(names.down, std::move(h), net.H, bias);
  }
  h = mul_scalar(std::move(h));
  return add(hidden, std::move(h));
}

// Scores of distances: a product with all of them, of which each query's row is shifted to its own.
Tensor by_distance(Net& net, const Tensor& q) {
  const Dim distances(2 * net.S.n() - 1), padded(2 * net.S.n());
  Tensor keys = net.linear("self_attn.relative_k_proj", net.shared.bias, net.Q);
  keys = permute(view(std::move(keys), Shape{net.B, distances, net.A, net.hd}), {0, 2, 3, 1});
  Tensor scores = matmul(q, std::move(keys));
  scores = view(pad_last(std::move(scores), 1), Shape{net.B, net.A, padded, net.S});
  scores = view(narrow(std::move(scores), 2, 1, distances), Shape{net.B, net.A, net.S, distances});
  scores = mul_scalar(narrow(std::move(scores), 3, 0, net.S));
  Tensor hidden = net.tape.allocate(Shape{net.B, Dim(1), net.S, net.S}, Dtype::kBool, "logical_not");
  return masked_fill_in_place(std::move(scores), std::move(hidden));
}

Tensor attend(Net& net, const Tensor& x) {
  Scope in(net.tape, "self_attn", kAttention);
  const bool bias = net.arch.attention_bias;
  const Tensor q = split_heads(net, net.linear("self_attn.q_proj", x, net.Q, bias), net.A, net.hd);
  const Tensor k = split_heads(net, net.linear("self_attn.k_proj", x, net.Q, bias), net.A, net.hd);
  const Tensor v = split_heads(net, net.linear("self_attn.v_proj", x, net.Q, bias), net.A, net.hd);
  const auto biased = [&](const char* leaf) {
    Tensor row = net.parameter("self_attn", leaf, Shape{net.A, net.hd});
    return add(q, view(std::move(row), Shape{Dim(1), net.A, Dim(1), net.hd}));
  };
  const Tensor by_content = biased("bias_u"), by_place = biased("bias_v");
  AttentionOptions options;
  options.mask = by_distance(net, by_place);
  options.dropout = net.arch.attention_dropout;
  options.causal = false;
  const Tensor out = attention(net, by_content, k, v, options);
  return net.linear("self_attn.o_proj", out, net.H, bias);
}

// nn.Conv1d to as many frames.
Tensor convolved_frames(Net& net, const char* name, Tensor x, Dim out, Count kernel, bool apart) {
  Scope in(net.tape, name, kConvolution);
  const Tensor weight = net.parameter(name, "weight", Shape{out, apart ? Dim(1) : x.dim(1), Dim(kernel)});
  Tensor shift;
  if (net.arch.conv_bias) shift = net.parameter(name, "bias", Shape{out});
  return convolution(std::move(x), weight, std::move(shift), {net.S});
}

Tensor convolve(Net& net, const Tensor& x) {
  Scope in(net.tape, "conv", kConvolution);
  Tensor h = convolved_frames(net, "conv.pointwise_conv1", transpose(x, 1, 2), Dim(2 * net.H.n()), 1, false);
  h = gated_channels(std::move(h));
  {
    const Tensor inverted = net.tape.allocate(Shape{net.B, Dim(1), net.S, net.S}, Dtype::kBool, "bitwise_not");
    const Tensor rows = net.tape.allocate(Shape{net.B, Dim(1), net.S}, Dtype::kBool, "all");
    h = masked_fill(std::move(h), rows);
  }
  h = convolved_frames(net, "conv.depthwise_conv", std::move(h), net.H, net.arch.position_kernel, true);
  h = net.batch_norm("conv.norm", std::move(h));
  h = activate(net.arch.activation, std::move(h));
  return transpose(convolved_frames(net, "conv.pointwise_conv2", std::move(h), net.H, 1, false), 1, 2);
}

Tensor block(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "", kBlock);
  const Tensor residual = std::move(hidden_in);
  Tensor hidden = half_of(net, kFirst, residual);
  const Tensor normed = net.layer_norm("norm_self_att", hidden);
  const Tensor attended = attend(net, normed);
  hidden = add(std::move(hidden), attended);
  const Tensor convolved = convolve(net, net.layer_norm("norm_conv", hidden));
  hidden = add(std::move(hidden), convolved);
  hidden = half_of(net, kSecond, hidden);
  return net.layer_norm("norm_out", std::move(hidden));
}

Tensor forward(Net& net) {
  Scope in(net.tape, "encoder", kEncoder);
  Tensor hidden = mul_scalar(subsample(net));
  net.shared.bias = dropout(positions(net, hidden.dtype()), net.arch.embedding_dropout);
  hidden = dropout(std::move(hidden), net.arch.residual_dropout);
  net.model_locals = {net.shared.bias};
  net.shared.causal_mask = net.tape.allocate(Shape{net.B, Dim(1), net.S, net.S}, Dtype::kBool, "and");
  Stack stack{"encoder.layers", net.arch.num_layers, block};
  stack.then = Phase::kLoss;
  hidden = net.layers(stack, std::move(hidden));
  net.shared = {};
  net.model_locals.clear();
  return hidden;
}

Outputs letters(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  const Tensor weight = net.parameter("ctc_head", "weight", Shape{net.V, net.H, Dim(1)});
  Tensor shift = net.parameter("ctc_head", "bias", Shape{net.V});
  Tensor logits = convolution(transpose(std::move(hidden), 1, 2), weight, std::move(shift), {net.S});
  logits = transpose(std::move(logits), 1, 2);
  const Tensor log_probs = transpose(log_softmax(logits, Dtype::kFp32), 0, 1);
  Outputs out;
  out.loss = ctc_loss(net, log_probs);
  out.rest = {std::move(logits)};
  return out;
}

constexpr HeadForward kHeads[] = {{Head::kCtc, letters}};
constexpr ClassSuffix kClasses[] = {{"ForCTC", Head::kCtc}};

const Program kProgram = {.forward = forward, .heads = kHeads, .inputs = inputs, .attention = kNoFlash};

constexpr ClassFacts kFacts = {.text_input = false, .input_embeddings = false, .says_width = false};

}  // namespace

const Family kRows[] = {
    {"parakeet_ctc", "Parakeet", "ParakeetForCTC", kClasses, read_config, &kProgram, "encoder.layers", kFacts},
};

extern const FamilyRows parakeet_rows;
const FamilyRows parakeet_rows = kRows;

}  // namespace tidemark
