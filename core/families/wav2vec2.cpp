// Wav2Vec2, HuBERT, UniSpeech and Data2Vec: convolutions over the wave, one or several that tell positions, an encoder;
// CTC on letters.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/families/family.hpp"
#include "core/families/wav2vec2.hpp"
#include "core/job/module_pattern.hpp"
#include "core/layers/losses.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/ops/convolution.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

std::vector<Count> read_counts(ConfigFields& fields, std::string_view key, std::initializer_list<Count> standard) {
  std::vector<Count> counts = standard;
  const Value* value = fields.find({key});
  if (value == nullptr || !value->is_array()) return counts;
  counts.clear();
  for (const Value& item : value->items) {
    if (!item.is_integer() || item.integer < 1) {
      fields.error("INVALID_VALUE", key, "This must be a list of positive numbers.");
      return standard;
    }
    counts.push_back(item.integer);
  }
  return counts;
}

// transformers 5.24 models/sew/configuration_sew.py: SEWConfig has other ones where the file says nothing.
void read_wave_convolutions(ConfigFields& fields, Architecture& architecture) {
  if (architecture.model_type == "sew") {
    architecture.conv_dims =
        read_counts(fields, "conv_dim", {64, 128, 128, 128, 128, 256, 256, 256, 256, 512, 512, 512, 512});
    architecture.conv_strides = read_counts(fields, "conv_stride", {5, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1});
    architecture.conv_kernels = read_counts(fields, "conv_kernel", {10, 3, 1, 3, 1, 3, 1, 3, 1, 2, 1, 2, 1});
    return;
  }
  architecture.conv_dims = read_counts(fields, "conv_dim", {512, 512, 512, 512, 512, 512, 512});
  architecture.conv_strides = read_counts(fields, "conv_stride", {5, 2, 2, 2, 2, 2, 2});
  architecture.conv_kernels = read_counts(fields, "conv_kernel", {10, 3, 3, 3, 3, 2, 2});
}

}  // namespace

// Wav2Vec2Model.__init__: the vector is there also where `apply_spec_augment` leaves it unused.
void read_time_mask(ConfigFields& fields, Architecture& architecture) {
  const bool masks = fields.number({"mask_time_prob"}, 0.05) > 0.0;
  architecture.has_mask_token = fields.number({"mask_feature_prob"}, 0.0) > 0.0 || masks;
  architecture.masks_time = fields.flag({"apply_spec_augment"}, true) && masks;
}

// transformers 5.12.1 models/wav2vec2/configuration_wav2vec2.py: Wav2Vec2Config; models/hubert: HubertConfig.
void read_wav2vec2_config(ConfigFields& fields, Architecture& architecture) {
  read_frame_dimensions(fields, architecture);
  architecture.vocab_size = fields.count({"vocab_size"}, 32);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  architecture.residual_dropout = fields.probability({"hidden_dropout"}, 0.1);
  architecture.activation_dropout = fields.probability({"activation_dropout"}, 0.1);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.1);
  architecture.feature_dropout = fields.probability({"feat_proj_dropout"}, 0.0);
  architecture.head_dropout = fields.probability({"final_dropout"}, 0.1);
  architecture.norm_before = fields.flag({"do_stable_layer_norm"}, false);
  read_wave_convolutions(fields, architecture);
  architecture.conv_bias = fields.flag({"conv_bias"}, false);
  architecture.group_norm = fields.text({"feat_extract_norm"}, "group") == "group";
  architecture.position_kernel = fields.count({"num_conv_pos_embeddings"}, 128);
  architecture.position_groups = fields.count({"num_conv_pos_embedding_groups"}, 16);
  read_time_mask(fields, architecture);
  architecture.pooler_size = fields.count({"classifier_proj_size"}, 256);
  const std::size_t convolutions = architecture.conv_dims.size();
  if (convolutions == 0 || architecture.conv_strides.size() != convolutions ||
      architecture.conv_kernels.size() != convolutions || convolutions > 64) {
    fields.error("INVALID_VALUE", "conv_dim", "conv_dim, conv_stride and conv_kernel need one entry per convolution.");
    return;
  }
  for (const std::string_view key : {"add_adapter", "use_weighted_layer_sum", "conv_pos_batch_norm"}) {
    if (fields.flag({key}, false)) fields.error("INVALID_VALUE", key, "This part of the model is not modelled.");
  }
  if (!fields.flag({"feat_proj_layer_norm"}, true)) {
    fields.error("INVALID_VALUE", "feat_proj_layer_norm", "A projection without a norm is not modelled.");
  }
  note_layerdrop(fields, "layerdrop", 0.1);
  Architecture extractor = architecture;
  extractor.num_layers = static_cast<Count>(convolutions);
  for (std::size_t i = 0; i < convolutions; ++i) extractor.layer_kinds.push_back(static_cast<std::uint8_t>(i));
  architecture.parts.push_back(std::move(extractor));
  fields.accept({"feat_extract_activation",
                 "feat_quantizer_dropout",
                 "num_feat_extract_layers",
                 "mask_time_length",
                 "mask_time_min_masks",
                 "mask_feature_length",
                 "mask_feature_min_masks",
                 "ctc_loss_reduction",
                 "ctc_zero_infinity",
                 "num_codevectors_per_group",
                 "num_codevector_groups",
                 "contrastive_logits_temperature",
                 "num_negatives",
                 "codevector_dim",
                 "proj_codevector_dim",
                 "diversity_loss_weight",
                 "tdnn_dim",
                 "tdnn_kernel",
                 "tdnn_dilation",
                 "xvector_output_dim",
                 "adapter_kernel_size",
                 "adapter_stride",
                 "num_adapter_layers",
                 "output_hidden_size",
                 "mask_channel_length",
                 "mask_channel_min_space",
                 "mask_channel_other",
                 "mask_channel_prob",
                 "mask_channel_selection",
                 "mask_time_min_space",
                 "mask_time_other",
                 "mask_time_selection",
                 "mask_feature_selection",
                 "gradient_checkpointing",
                 "tokenizer_class",
                 "freeze_feat_extract_train",
                 "no_mask_channel_overlap",
                 "no_mask_time_overlap",
                 "feat_proj_dropout"});
}

namespace {

constexpr const char* kConv = "transformers 5.12 models/wav2vec2/modeling_wav2vec2.py: Wav2Vec2FeatureEncoder.forward";
constexpr const char* kProjection =
    "transformers 5.12 models/wav2vec2/modeling_wav2vec2.py: Wav2Vec2FeatureProjection.forward";
constexpr const char* kMask =
    "transformers 5.12 models/wav2vec2/modeling_wav2vec2.py: Wav2Vec2Model._mask_hidden_states";
constexpr const char* kPositions =
    "transformers 5.12 models/wav2vec2/modeling_wav2vec2.py: Wav2Vec2PositionalConvEmbedding.forward";
constexpr const char* kPositionLayer =
    "transformers 5.24 models/data2vec/modeling_data2vec_audio.py: Data2VecAudioPositionalConvLayer.forward";
constexpr const char* kSqueezed = "transformers 5.24 models/sew/modeling_sew.py: SEWEncoder.forward";
constexpr const char* kEncoder = "transformers 5.12 models/wav2vec2/modeling_wav2vec2.py: Wav2Vec2Encoder.forward";
constexpr const char* kAttention = "transformers 5.12 models/wav2vec2/modeling_wav2vec2.py: Wav2Vec2Attention.forward";
constexpr const char* kFeedForward =
    "transformers 5.12 models/wav2vec2/modeling_wav2vec2.py: Wav2Vec2FeedForward.forward";
constexpr const char* kLayer = "transformers 5.12 models/wav2vec2/modeling_wav2vec2.py: Wav2Vec2EncoderLayer.forward";
constexpr const char* kCtcHead = "transformers 5.12 models/wav2vec2/modeling_wav2vec2.py: Wav2Vec2ForCTC.forward";
constexpr const char* kClassifier =
    "transformers 5.12 models/wav2vec2/modeling_wav2vec2.py: Wav2Vec2ForSequenceClassification.forward";

/// What the class calls the modules outside its layers.
struct Names {
  const char *mask, *convolutions, *norm, *projection, *positions, *position_weight, *encoder_norm, *layers;
};
#define TIDEMARK_NAMES(body)                                                                                 \
  {                                                                                                          \
    body ".masked_spec_embed", body ".feature_extractor.conv_layers", body ".feature_projection.layer_norm", \
        body ".feature_projection.projection", body ".encoder.pos_conv_embed.conv",                          \
        body ".encoder.pos_conv_embed.conv.parametrizations.weight", body ".encoder.layer_norm",             \
        body ".encoder.layers"                                                                               \
  }
constexpr Names kWav2Vec2 = TIDEMARK_NAMES("wav2vec2");
constexpr Names kHubert = TIDEMARK_NAMES("hubert");
constexpr Names kWavlm = TIDEMARK_NAMES("wavlm");
constexpr Names kUniSpeech = TIDEMARK_NAMES("unispeech");
constexpr Names kUniSpeechSat = TIDEMARK_NAMES("unispeech_sat");
constexpr Names kData2Vec = TIDEMARK_NAMES("data2vec_audio");
constexpr Names kConformer = TIDEMARK_NAMES("wav2vec2_conformer");
constexpr Names kSew = {"sew.masked_spec_embed",
                        "sew.feature_extractor.conv_layers",
                        "sew.layer_norm",
                        "sew.feature_projection",
                        "sew.encoder.pos_conv_embed.conv",
                        "sew.encoder.pos_conv_embed.conv.parametrizations.weight",
                        "sew.encoder.layer_norm",
                        "sew.encoder.layers"};
#undef TIDEMARK_NAMES

bool is_wavlm(const Net& net) {
  return net.arch.model_type == "wavlm";
}

const Names& names_of(const Net& net) {
  const std::string& type = net.arch.model_type;
  if (type == "unispeech") return kUniSpeech;
  if (type == "data2vec-audio") return kData2Vec;
  if (type == "wav2vec2-conformer") return kConformer;
  if (type == "sew") return kSew;
  if (type == "unispeech-sat") return kUniSpeechSat;
  return type == "hubert" ? kHubert : is_wavlm(net) ? kWavlm : kWav2Vec2;
}

Count frames_behind(const Architecture& a, Count samples, std::size_t convolutions) {
  for (std::size_t i = 0; i < convolutions; ++i) samples = (samples - a.conv_kernels[i]) / a.conv_strides[i] + 1;
  return samples;
}

}  // namespace

Count wave_samples(const Net& net) {
  const double seconds = net.job.audio_seconds > 0.0 ? net.job.audio_seconds : 10.0;
  return static_cast<Count>(std::llround(seconds * 16000.0));
}

void wave_labels(Net& net) {
  if (net.arch.head == Head::kSequenceClassification) {
    net.labels = net.tape.allocate(Shape{net.B}, Dtype::kInt64, "labels");
  } else if (net.arch.head == Head::kCtc) {
    const Count letters = net.job.decoder_sequence_length > 0 ? net.job.decoder_sequence_length : 64;
    net.labels = net.tape.allocate(Shape{net.B, Dim(letters)}, Dtype::kInt64, "labels");
  }
}

void wave_inputs(Net& net) {
  const Count samples = wave_samples(net);
  net.S = Dim(std::max<Count>(1, frames_behind(net.arch, samples, net.arch.conv_dims.size())));
  net.T = Dim(net.B.n() * net.S.n());
  net.input_ids = given_pixels(net, Shape{net.B, Dim(samples)}, "input_values");
  wave_labels(net);
}

namespace {

Tensor convolution_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kConv);
  const auto i = static_cast<std::size_t>(net.layer_index);
  const Dim channels = hidden.dim(1), out(net.arch.conv_dims[i]);
  const Tensor weight = net.parameter("conv", "weight", Shape{out, channels, Dim(net.arch.conv_kernels[i])});
  Tensor bias;
  if (net.arch.conv_bias) bias = net.parameter("conv", "bias", Shape{out});
  const Count frames = (hidden.size(2) - net.arch.conv_kernels[i]) / net.arch.conv_strides[i] + 1;
  Tensor h = convolution(std::move(hidden), weight, bias, {Dim(frames)});
  if (net.arch.group_norm) {
    if (i > 0) return gelu(std::move(h));
    Scope norm(net.tape, "layer_norm", kConv);
    const Tensor scale = net.parameter("layer_norm", "weight", Shape{out});
    const Tensor shift = net.parameter("layer_norm", "bias", Shape{out});
    h = group_norm(std::move(h), scale, shift, out.n());
  } else {
    h = transpose(std::move(h), 1, 2);
    h = net.layer_norm("layer_norm", std::move(h));
    h = transpose(std::move(h), 1, 2);
  }
  return gelu(std::move(h));
}

void keep_gradient(Tape& t, Node& n, Tensor* g, Tensor*) {
  t.hold(&n, g[0]);
}

// "hidden_states.requires_grad = True", but for freeze_feature_encoder(), which a `freeze` of its convolutions stands
// for.
bool wave_requires_grad(const Net& net, const Names& names) {
  if (net.job.method == Method::kLora || net.job.method == Method::kQlora || net.treatments == nullptr) return true;
  const std::string weight = std::string(names.convolutions) + ".0.conv.weight";
  return std::none_of(net.job.freeze.begin(), net.job.freeze.end(), [&weight](const std::string& text) {
    std::string error;
    const auto pattern = NamePattern::compile(text, error);
    return pattern && pattern->names(weight);
  });
}

Tensor features(Net& net, const Names& names) {
  Scope in(net.tape, "feature_extractor", kConv);
  Tensor wave = unsqueeze(net.input_ids, 1);
  if (wave_requires_grad(net, names)) {
    wave.change().requires_grad = true;
    net.tape.tell_hooked_output();
    Node* const leaf = net.tape.record("AccumulateGrad", keep_gradient, {&wave});
    net.tape.attach(leaf, wave);
  }
  Net& extractor = net.part(net.arch.parts.front(), net.B, wave.dim(2));
  return extractor.layers({names.convolutions, extractor.arch.num_layers, convolution_layer}, std::move(wave));
}

void index_put_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  if (n.needs(0)) r[0] = t.allocate(elementwise_shape({&g[0]}), g[0].dtype(), "index_put_backward");
  if (n.needs(1)) r[1] = t.allocate(n.input_shapes[1], g[0].dtype(), "index_backward");
}

}  // namespace

// SpecAugment: stretches of time become the one learned vector, in place. Which, is drawn anew at each step.
Tensor mask_time(Net& net, const char* name, Tensor hidden) {
  if (!net.arch.has_mask_token) return hidden;
  Scope in(net.tape, name, kMask);
  Tape& t = net.tape;
  Tensor vector = net.parameter(name, "masked_spec_embed", Shape{net.H});
  if (!net.arch.masks_time) return hidden;
  vector = to(std::move(vector), hidden.dtype());
  const Tensor mask = t.allocate(Shape{net.B, net.S}, Dtype::kBool, "mask_time_indices");
  Node* const n = t.record("index_put_", index_put_backward, {&hidden, &vector});
  t.save(n, mask);
  hidden.leave_graph();
  t.attach(n, hidden);
  return hidden;
}

namespace {

void weight_norm_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  for (int i = 0; i < 2; ++i) {
    if (n.needs(i)) r[i] = t.allocate(n.input_shapes[i], n.input_dtypes[i], "weight_norm_backward");
  }
}

// torch.nn.utils.parametrizations.weight_norm(dim=2): _weight_norm_interface.
Tensor normed_weight(Net& net, const char* name) {
  constexpr const char* kSource = "torch.nn.utils.parametrizations: _WeightNorm.forward";
  Scope in(net.tape, name, kSource);
  Tape& t = net.tape;
  const Dim kernel(net.arch.position_kernel);
  const Shape shape{net.H, Dim(net.H.n() / net.arch.position_groups), kernel};
  t.tell_no_input();
  const Tensor g = net.parameter(name, "original0", Shape{Dim(1), Dim(1), kernel});
  const Tensor v = net.parameter(name, "original1", shape);
  Node* const n = t.record("weight_norm", weight_norm_backward, {&v, &g});
  t.save(n, v);
  t.save(n, g);
  Tensor weight = t.allocate(shape, v.dtype(), "weight_norm");
  const Tensor norms = t.allocate(Shape{Dim(1), Dim(1), kernel}, Dtype::kFp32, "weight_norm norms");
  t.save(n, norms);
  t.attach(n, weight);
  return weight;
}

Tensor position_embeddings(Net& net, const Names& names, const Tensor& hidden) {
  Scope in(net.tape, names.positions, kPositions);
  Tensor x = transpose(hidden, 1, 2);
  {
    const Tensor weight = normed_weight(net, names.position_weight);
    const Tensor bias = net.parameter(names.positions, "bias", Shape{net.H});
    const Count kernel = net.arch.position_kernel, stride = std::max<Count>(1, net.arch.encoder_stride);
    const Count places = (net.S.n() + 2 * (kernel / 2) - kernel) / stride + 1;
    x = convolution(std::move(x), weight, bias, {Dim(places)});
    if (kernel % 2 == 0) x = narrow(std::move(x), 2, 0, Dim(places - 1));
  }
  x = gelu(std::move(x));
  return transpose(std::move(x), 1, 2);
}

// Data2Vec's: several, each with a norm that has no weights.
Tensor position_layer(Net& net, Tensor x) {
  Scope in(net.tape, "", kPositionLayer);
  const Count kernel = net.arch.position_kernel, even = kernel % 2 == 0 ? 1 : 0;
  const Shape shape{net.H, Dim(net.H.n() / net.arch.position_groups), Dim(kernel)};
  const Tensor weight = net.parameter("conv", "weight", shape);
  const Tensor bias = net.parameter("conv", "bias", Shape{net.H});
  x = convolution(std::move(x), weight, bias, {Dim(net.S.n() + even)});
  if (even != 0) x = narrow(std::move(x), 2, 0, net.S);
  x = net.layer_norm("layer_norm", transpose(std::move(x), 1, 2), false, false);
  return gelu(transpose(std::move(x), 1, 2));
}

Tensor position_layers(Net& net, const Tensor& hidden) {
  Net& part = net.part(net.arch.parts[1], net.B, net.S);
  const Stack stack{"data2vec_audio.encoder.pos_conv_embed.layers", part.arch.num_layers, position_layer, false};
  return transpose(part.layers(stack, transpose(hidden, 1, 2)), 1, 2);
}

Tensor into_heads(const Net& net, Tensor x) {
  const Shape four{net.B, net.S, net.A, net.hd};
  return transpose(view(std::move(x), four), 1, 2);
}

Tensor attend(Net& net, const Tensor& x) {
  Scope in(net.tape, "attention", kAttention);
  const Tensor q = into_heads(net, net.linear("attention.q_proj", x, net.H, true));
  Tensor k = net.linear("attention.k_proj", x, net.H, true);
  Tensor v = net.linear("attention.v_proj", x, net.H, true);
  k = into_heads(net, std::move(k));
  v = into_heads(net, std::move(v));
  Tensor out = attention(net, q, k, v, encoder_attention(net));
  return net.linear("attention.out_proj", std::move(out), net.H, true);
}

Tensor feed_forward(Net& net, const Tensor& x) {
  Scope in(net.tape, "feed_forward", kFeedForward);
  Tensor h = net.linear("feed_forward.intermediate_dense", x, net.F, true);
  h = activate(net.arch.activation, std::move(h));
  h = dropout(std::move(h), net.arch.activation_dropout);
  h = net.linear("feed_forward.output_dense", std::move(h), net.H, true);
  return dropout(std::move(h), net.arch.residual_dropout);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const bool first = net.arch.norm_before;
  Tensor h;
  const Tensor residual = std::move(hidden);
  {
    const Tensor x = first ? net.layer_norm("layer_norm", residual) : residual;
    h = is_wavlm(net) ? wavlm_attention(net, x) : attend(net, x);
  }
  h = dropout(std::move(h), net.arch.residual_dropout);
  h = add(residual, std::move(h));
  if (!first) h = net.layer_norm("layer_norm", std::move(h));
  Tensor forwarded;
  {
    const Tensor x = first ? net.layer_norm("final_layer_norm", h) : h;
    forwarded = feed_forward(net, x);
  }
  h = add(std::move(h), std::move(forwarded));
  return first ? h : net.layer_norm("final_layer_norm", std::move(h));
}

}  // namespace

Tensor wave_projected(Net& net, Tensor& extracted) {
  const Names& names = names_of(net);
  extracted = transpose(features(net, names), 1, 2);
  Tensor hidden;
  {
    Scope in(net.tape, "feature_projection", kProjection);
    const bool squeezes = net.arch.encoder_stride > 0;
    Tensor normed = net.layer_norm(names.norm, extracted);
    if (!squeezes || normed.size(2) != net.H.n()) {
      hidden = net.linear(names.projection, normed, net.H, true);
    } else {
      hidden = normed;
    }
    if (squeezes) normed = hidden;  // SEW's one name for all of these
    hidden = dropout(std::move(hidden), net.arch.feature_dropout);
    if (net.arch.model_type != "hubert") extracted = normed;  // Wav2Vec2's and WavLM's projection returns it, too
  }
  return mask_time(net, names.mask, std::move(hidden));
}

namespace {

// SEWEncoder.forward: frames are pooled before the layers, and as many again behind them.
Tensor squeezed(Net& net, const Names& names, Tensor hidden) {
  Scope in(net.tape, "encoder", kSqueezed);
  const Count factor = net.arch.encoder_stride;
  Tensor positions = position_embeddings(net, names, hidden);
  const Dim pooled(net.S.n() / factor), frames(std::min(pooled.n(), positions.size(1)));
  Tensor h = average_pool(unsqueeze(transpose(std::move(hidden), 1, 2), 2), Dim(1), pooled);
  const Tensor few = transpose(view(std::move(h), Shape{net.B, net.H, pooled}), 1, 2);
  h = add(narrow(few, 1, 0, frames), narrow(positions, 1, 0, frames));
  h = net.layer_norm(names.encoder_norm, std::move(h));
  h = dropout(std::move(h), net.arch.residual_dropout);
  Net& part = net.part(net.arch, net.B, frames);
  const bool collects = net.arch.head == Head::kSequenceClassification;
  part.hands_out_all = collects;
  h = part.layers({names.layers, net.arch.num_layers, layer, true, Phase::kLoss}, std::move(h));
  part.hands_out_all = false;
  net.handed_out = std::move(part.handed_out);
  part.handed_out.clear();
  if (collects) net.handed_out.emplace_back(net.tape.instance(), h);  // the last one's is not what the model returns
  {
    Tensor wide = net.linear("sew.encoder.upsample.projection", std::move(h), Dim(net.H.n() * factor), true);
    h = gelu(std::move(wide));
  }
  h = view(std::move(h), Shape{net.B, Dim(frames.n() * factor), net.H});
  const Count missing = net.S.n() - frames.n() * factor;
  if (missing <= 0) return h;
  h = view(std::move(h), Shape{net.B, Dim(frames.n() * factor * net.H.n())});  // rows lie one behind another
  h = pad_last(std::move(h), missing * net.H.n());
  return view(std::move(h), Shape{net.B, net.S, net.H});
}

}  // namespace

Tensor wav2vec2_forward(Net& net) {
  const Names& names = names_of(net);
  Tensor extracted;
  Tensor hidden = wave_projected(net, extracted);
  if (net.arch.encoder_stride > 0) {
    const Tensor entered = hidden;
    return squeezed(net, names, std::move(hidden));
  }
  Scope in(net.tape, "encoder", kEncoder);
  const Tensor entered = hidden;  // a name of Wav2Vec2Model.forward, and `positions` one of its encoder's
  const bool several = net.arch.parts.size() > 1;
  const Tensor positions = several ? position_layers(net, hidden) : position_embeddings(net, names, hidden);
  hidden = add(std::move(hidden), positions);
  if (!net.arch.norm_before) hidden = net.layer_norm(names.encoder_norm, std::move(hidden));
  hidden = dropout(std::move(hidden), net.arch.residual_dropout);
  Stack stack{names.layers, net.arch.num_layers, layer};
  stack.then = Phase::kLoss;
  // filter_output_hidden_states (transformers 5.24 backbone_utils.py), here since 5.16: its classifiers always collect
  // what layers return.
  net.hands_out_all = net.arch.head == Head::kSequenceClassification && net.job.framework.at_least(5, 16);
  hidden = net.layers(stack, std::move(hidden));
  net.hands_out_all = false;
  net.shared.bias.reset();
  if (net.arch.norm_before) hidden = net.layer_norm(names.encoder_norm, std::move(hidden));
  return hidden;
}

namespace {

// LossCTC.cu: log_beta beside the gradient of all log-probabilities.
void ctc_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  const Tensor& log_alpha = n.saved_tensor(1);
  r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "ctc_loss_backward");
  t.scratch({{log_alpha.numel() * 4, "log_beta"}});
}

}  // namespace

Tensor ctc_loss(Net& net, Tensor log_probs_in) {
  Scope in(net.tape, "loss", "torch.nn.functional: ctc_loss (aten/src/ATen/native/cuda/LossCTC.cu)");
  Tape& t = net.tape;
  const Tensor log_probs = std::move(log_probs_in);
  Node* const n = t.record("ctc_loss", ctc_backward, {&log_probs});
  t.save(n, log_probs);
  const Tensor log_alpha =
      t.allocate(Shape{net.B, log_probs.dim(0), Dim(2 * net.labels.size(1) + 1)}, Dtype::kFp32, "ctc_loss log_alpha");
  Tensor losses = t.allocate(Shape{net.B}, Dtype::kFp32, "ctc_loss");
  t.attach(n, losses);
  t.save(n, log_alpha);
  return mean_all(std::move(losses));
}

Outputs wave_ctc(Net& net, const Program&, Tensor hidden_in) {
  Scope in(net.tape, "", kCtcHead);
  const Tensor hidden = dropout(std::move(hidden_in), net.arch.head_dropout);
  Tensor logits = net.classifier("lm_head", hidden, net.V, true);
  Tensor ones;
  if (!net.attention_mask.defined()) ones = net.tape.allocate(net.input_ids.shape(), Dtype::kInt64, "ones_like");
  const Tensor log_probs = transpose(log_softmax(logits, Dtype::kFp32), 0, 1);
  Outputs out;
  out.loss = ctc_loss(net, log_probs);
  out.rest = {std::move(logits)};
  return out;
}

namespace {

Outputs classification(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kClassifier);
  const Dim width(net.arch.pooler_size);
  Tensor projected = net.classifier("projector", std::move(hidden), width, true);
  Tensor pooled = mean_last(transpose(std::move(projected), 1, 2));
  pooled = view(std::move(pooled), Shape{net.B, width});
  Tensor logits = net.classifier("classifier", std::move(pooled), Dim(net.arch.num_labels), true);
  Outputs out;
  out.loss = plain_cross_entropy(net, logits);
  out.rest = {std::move(logits)};
  net.let_handed_out_go();
  return out;
}

// UniSpeechSatModel.__init__: the vector that masks time is always there.
void read_sat_config(ConfigFields& fields, Architecture& architecture) {
  read_wav2vec2_config(fields, architecture);
  architecture.has_mask_token = true;
}

// transformers 5.24 models/data2vec/configuration_data2vec_audio.py: Data2VecAudioConfig.
void read_data2vec_config(ConfigFields& fields, Architecture& architecture) {
  read_wav2vec2_config(fields, architecture);
  architecture.norm_before = architecture.group_norm = false;
  architecture.position_kernel = fields.count({"conv_pos_kernel_size"}, 19);
  if (architecture.parts.empty()) return;
  architecture.parts.front().group_norm = false;
  Architecture positions = architecture;
  positions.parts.clear();
  positions.num_layers = fields.count({"num_conv_pos_embeddings"}, 5);
  architecture.parts.push_back(std::move(positions));
}

// transformers 5.24 models/sew/configuration_sew.py: SEWConfig. `encoder_stride`: frames that become one.
void read_sew_config(ConfigFields& fields, Architecture& architecture) {
  read_wav2vec2_config(fields, architecture);
  architecture.norm_before = false;
  architecture.encoder_stride = fields.count({"squeeze_factor"}, 2);
}

constexpr ClassFacts kFacts = {
    .text_input = false, .input_embeddings = false, .no_split = NoSplit::kNone, .made_first = "encoder.layer_norm"};
constexpr ClassFacts kHubertFacts = {.text_input = false, .input_embeddings = false};

}  // namespace

const HeadForward kWaveHeads[3] = {
    {Head::kCtc, wave_ctc}, {Head::kSequenceClassification, classification}, {Head::kNone, body_alone}};

const Program kWav2Vec2Program = {wav2vec2_forward, nullptr, kWaveHeads, OwnLoss::kFp32, {}, wave_inputs};

const Family kRows[] = {
    {"wav2vec2", "Wav2Vec2", "Wav2Vec2ForCTC", kWav2Vec2Classes, read_wav2vec2_config, &kWav2Vec2Program,
     "wav2vec2.encoder.layers", kFacts},
    {"hubert", "Hubert", "HubertForCTC", kWav2Vec2Classes, read_wav2vec2_config, &kWav2Vec2Program,
     "hubert.encoder.layers", kHubertFacts},
    {"unispeech", "UniSpeech", "UniSpeechForCTC", kWav2Vec2Classes, read_wav2vec2_config, &kWav2Vec2Program,
     "unispeech.encoder.layers", kFacts},
    {"unispeech-sat", "UniSpeechSat", "UniSpeechSatForCTC", kWav2Vec2Classes, read_sat_config, &kWav2Vec2Program,
     "unispeech_sat.encoder.layers", kFacts},
    {"data2vec-audio", "Data2VecAudio", "Data2VecAudioForCTC", kWav2Vec2Classes, read_data2vec_config,
     &kWav2Vec2Program, "data2vec_audio.encoder.layers", kFacts},
    {"sew", "SEW", "SEWForCTC", kWav2Vec2Classes, read_sew_config, &kWav2Vec2Program, "sew.encoder.layers", kFacts},
};

extern const FamilyRows wav2vec2_rows;
const FamilyRows wav2vec2_rows = kRows;

}  // namespace tidemark
