// Wav2Vec2-BERT: a conformer over frames of a spectrogram, whose attention adds what each query says of distances, and
// behind it a convolution that halves the frames where the configuration asks for one (add_adapter).
#include <algorithm>
#include <string_view>

#include "core/families/family.hpp"
#include "core/families/wav2vec2.hpp"
#include "core/layers/losses.hpp"
#include "core/tape/ops/convolution.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

// The part behind the encoder: Wav2Vec2BertAdapter.
void read_adapter(ConfigFields& fields, Architecture& architecture) {
  Architecture adapter = architecture;
  adapter.num_layers = fields.count({"num_adapter_layers"}, 1);
  adapter.hidden_size = fields.count({"output_hidden_size"}, architecture.hidden_size);
  adapter.head_dim = adapter.hidden_size / std::max<Count>(1, adapter.num_heads);
  adapter.activation = read_activation(fields, {"adapter_act"}, "relu");
  adapter.conv_kernels = {fields.count({"adapter_kernel_size"}, 3)};
  adapter.conv_strides = {fields.count({"adapter_stride"}, 2)};
  if (fields.flag({"add_adapter"}, false)) architecture.parts.push_back(std::move(adapter));
}

// transformers 5.12.1 models/wav2vec2_bert/configuration_wav2vec2_bert.py: Wav2Vec2BertConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_frame_dimensions(fields, architecture);
  architecture.vocab_size = fields.count({"vocab_size"}, 0);
  architecture.activation = read_activation(fields, {"hidden_act"}, "swish");
  architecture.residual_dropout = fields.probability({"hidden_dropout"}, 0.0);
  architecture.activation_dropout = fields.probability({"activation_dropout"}, 0.0);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.feature_dropout = fields.probability({"feat_proj_dropout"}, 0.0);
  architecture.head_dropout = fields.probability({"final_dropout"}, 0.1);
  architecture.embedding_dropout = fields.probability({"conformer_conv_dropout"}, 0.1);
  architecture.conv_dims = {fields.count({"feature_projection_input_dim"}, 160)};
  architecture.conv_kernels = {fields.count({"conv_depthwise_kernel_size"}, 31)};
  architecture.num_buckets =
      fields.count({"left_max_position_embeddings"}, 64) + fields.count({"right_max_position_embeddings"}, 8) + 1;
  architecture.pooler_size = fields.count({"classifier_proj_size"}, 768);
  read_time_mask(fields, architecture);
  note_layerdrop(fields, "layerdrop", 0.1);
  if (fields.text({"position_embeddings_type"}, "relative_key") != "relative_key") {
    fields.error("INVALID_VALUE", "position_embeddings_type", "Only \"relative_key\" is modelled.");
  }
  for (const std::string_view key : {"use_weighted_layer_sum", "use_intermediate_ffn_before_adapter"}) {
    if (fields.flag({key}, false)) fields.error("INVALID_VALUE", key, "This part of the model is not modelled.");
  }
  read_adapter(fields, architecture);
  fields.accept({"mask_time_length", "mask_time_min_masks", "mask_feature_length", "mask_feature_min_masks",
                 "ctc_loss_reduction", "ctc_zero_infinity", "tdnn_dim", "tdnn_kernel", "tdnn_dilation",
                 "xvector_output_dim", "rotary_embedding_base", "max_source_positions"});
}

constexpr const char* kProjection =
    "transformers 5.12 models/wav2vec2_bert/modeling_wav2vec2_bert.py: Wav2Vec2BertFeatureProjection.forward";
constexpr const char* kEncoder =
    "transformers 5.12 models/wav2vec2_bert/modeling_wav2vec2_bert.py: Wav2Vec2BertEncoder.forward";
constexpr const char* kLayer =
    "transformers 5.12 models/wav2vec2_bert/modeling_wav2vec2_bert.py: Wav2Vec2BertEncoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/wav2vec2_bert/modeling_wav2vec2_bert.py: Wav2Vec2BertSelfAttention.forward";
constexpr const char* kConvolution =
    "transformers 5.12 models/wav2vec2_bert/modeling_wav2vec2_bert.py: Wav2Vec2BertConvolutionModule.forward";
constexpr const char* kFeedForward =
    "transformers 5.12 models/wav2vec2_bert/modeling_wav2vec2_bert.py: Wav2Vec2BertFeedForward.forward";
constexpr const char* kAdapter =
    "transformers 5.12 models/wav2vec2_bert/modeling_wav2vec2_bert.py: Wav2Vec2BertAdapterLayer.forward";
constexpr const char* kClassifier =
    "transformers 5.12 models/wav2vec2_bert/modeling_wav2vec2_bert.py: "
    "Wav2Vec2BertForSequenceClassification.forward";

constexpr const char* kBody = "wav2vec2_bert";

// SeamlessM4TFeatureExtractor: spectra of 400 samples, 160 apart, in pairs; the last one is filled up.
Count frames_of(const Net& net) {
  constexpr Count kWindow = 400, kHop = 160, kPair = 2;
  const Count spectra = std::max<Count>(0, wave_samples(net) - kWindow) / kHop + 1;
  return (spectra + kPair - 1) / kPair;
}

// The processor always returns a mask, of ones where nothing is padded.
void inputs(Net& net) {
  net.S = Dim(frames_of(net));
  net.T = Dim(net.B.n() * net.S.n());
  net.input_ids =
      net.tape.allocate(Shape{net.B, net.S, Dim(net.arch.conv_dims[0])}, net.weight_dtype(3), "input_features");
  net.attention_mask = net.tape.allocate(Shape{net.B, net.S}, Dtype::kInt64, "attention_mask");
  wave_labels(net);
}

// hidden_states.masked_fill(~attention_mask.bool().unsqueeze(-1), 0.0)
Tensor silenced(Net& net, Tensor hidden) {
  const Shape rows{net.B, net.S};
  Tensor mask = net.tape.allocate(rows, Dtype::kBool, "bool");
  mask = net.tape.allocate(rows, Dtype::kBool, "bitwise_not");
  return masked_fill(std::move(hidden), unsqueeze(std::move(mask), 2));
}

/// Where a feed-forward's matrices are.
struct FeedForward {
  const char *module, *up, *down;
};
constexpr FeedForward kFirst = {"ffn1", "ffn1.intermediate_dense", "ffn1.output_dense"};
constexpr FeedForward kSecond = {"ffn2", "ffn2.intermediate_dense", "ffn2.output_dense"};
constexpr FeedForward kAdapters = {"ffn", "ffn.intermediate_dense", "ffn.output_dense"};

Tensor feed_forward(Net& net, const FeedForward& names, const Tensor& x) {
  Scope in(net.tape, names.module, kFeedForward);
  Tensor h = net.linear(names.up, x, net.F, true);
  h = activate(net.arch.activation, std::move(h));
  h = dropout(std::move(h), net.arch.activation_dropout);
  h = net.linear(names.down, std::move(h), net.H, true);
  return dropout(std::move(h), net.arch.residual_dropout);
}

// hidden_states * 0.5 + residual
Tensor half_of(Net& net, const char* norm, const FeedForward& names, Tensor hidden) {
  const Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm(norm, residual);
  h = feed_forward(net, names, h);
  Tensor half = mul_scalar(h);  // one expression: what it halves has a name until the sum takes it
  return add(std::move(half), residual);
}

}  // namespace

Tensor conformer_half(Net& net, bool first, Tensor hidden) {
  return first ? half_of(net, "ffn1_layer_norm", kFirst, std::move(hidden))
               : half_of(net, "ffn2_layer_norm", kSecond, std::move(hidden));
}

namespace {

/// What a method's names hold until it returns.
struct Distances {
  Tensor distance, table, weights;
};

// torch.einsum("bhld,lrd->bhlr", query, positional_embedding): a product for each query's place.
Tensor by_distance(Net& net, const Tensor& q, Distances& names) {
  constexpr const char* kTable = "self_attn.distance_embedding";
  const Shape square{net.S, net.S};
  names.distance = net.tape.allocate(square, Dtype::kInt64, "sub");
  names.distance = net.tape.allocate(square, Dtype::kInt64, "clamp");
  const Tensor ids = net.tape.allocate(square, Dtype::kInt64, "add");
  names.table = net.embedding(kTable, ids, Dim(net.arch.num_buckets), net.hd);
  names.table = to(std::move(names.table), q.dtype());
  Tensor places = reshape(permute(q, {2, 0, 1, 3}), Shape{net.S, Dim(net.B.n() * net.A.n()), net.hd});
  Tensor h = matmul(std::move(places), transpose(names.table, 1, 2));
  names.weights = permute(view(std::move(h), Shape{net.S, net.B, net.A, net.S}), {1, 2, 0, 3});
  return mul_scalar(names.weights);
}

Tensor attend(Net& net, const Tensor& x, const Tensor& mask, bool by_place) {
  Scope in(net.tape, "self_attn", kAttention);
  const Shape four{net.B, x.dim(1), net.A, net.hd};
  const auto heads = [&](const char* name) { return transpose(view(net.linear(name, x, net.H, true), four), 1, 2); };
  const Tensor q = heads("self_attn.linear_q"), k = heads("self_attn.linear_k"), v = heads("self_attn.linear_v");
  Distances names;
  if (!runs_eagerly(net)) {  // sdpa_attention.py create_position_bias_mask
    AttentionOptions options = encoder_attention(net);
    options.mask = mask;
    if (by_place) {
      Tensor bias = by_distance(net, q, names);
      if (mask.defined()) bias = add(std::move(bias), mask);
      options.mask = contiguous(std::move(bias));
    }
    Tensor h = attention(net, q, k, v, options);
    return net.linear("self_attn.linear_out", std::move(h), net.H, true);
  }
  net.attention_kernel = "eager";
  Tensor scores = matmul(q, transpose(k, 2, 3));
  scores = mul_scalar(std::move(scores));
  if (by_place) {
    Tensor more = by_distance(net, q, names);
    scores = add(std::move(scores), std::move(more));
  }
  if (mask.defined()) scores = add(std::move(scores), mask);
  Tensor probs = softmax(scores);
  probs = dropout(std::move(probs), net.arch.attention_dropout);
  Tensor h = matmul(probs, v);
  net.attn_weights = std::move(probs);
  h = reshape(transpose(std::move(h), 1, 2), Shape{net.B, x.dim(1), net.H});
  return net.linear("self_attn.linear_out", std::move(h), net.H, true);
}

}  // namespace

Tensor frame_convolution(Net& net, const char* name, Tensor x, Dim out, Count kernel, Dim frames, bool bias,
                         bool apart) {
  Scope in(net.tape, name, kConvolution);
  const Tensor weight = net.parameter(name, "weight", Shape{out, apart ? Dim(1) : x.dim(1), Dim(kernel)});
  Tensor shift;
  if (bias) shift = net.parameter(name, "bias", Shape{out});
  return convolution(std::move(x), weight, std::move(shift), {frames});
}

Tensor conformer_frames(Net& net, Tensor normed) {
  Tensor h = activate(net.arch.activation, std::move(normed));
  h = frame_convolution(net, "conv_module.pointwise_conv2", std::move(h), net.H, 1, net.S, false, false);
  h = dropout(std::move(h), net.arch.embedding_dropout);
  return transpose(std::move(h), 1, 2);
}

namespace {

Tensor conv_module(Net& net, const Tensor& x) {
  Scope in(net.tape, "conv_module", kConvolution);
  const Count kernel = net.arch.conv_kernels[0];
  const Dim twice(2 * net.H.n());
  Tensor h = net.layer_norm("conv_module.layer_norm", x);
  h = transpose(silenced(net, std::move(h)), 1, 2);
  h = frame_convolution(net, "conv_module.pointwise_conv1", std::move(h), twice, 1, net.S, false, false);
  h = gated_channels(std::move(h));
  h = pad_last(std::move(h), kernel - 1);
  h = frame_convolution(net, "conv_module.depthwise_conv", std::move(h), net.H, kernel, net.S, false, true);
  h = net.layer_norm("conv_module.depthwise_layer_norm", transpose(std::move(h), 1, 2));
  return conformer_frames(net, transpose(std::move(h), 1, 2));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = conformer_half(net, true, std::move(hidden));
  Tensor h = net.layer_norm("self_attn_layer_norm", residual);
  h = attend(net, h, net.shared.causal_mask, true);
  h = dropout(std::move(h), net.arch.attention_dropout);
  h = add(std::move(h), residual);
  residual = h;
  h = conv_module(net, h);
  h = add(residual, std::move(h));
  residual.reset();
  h = conformer_half(net, false, std::move(h));
  h = net.layer_norm("final_layer_norm", std::move(h));
  net.return_weights();
  return h;
}

// Frames become fewer: nn.Conv1d, nn.GLU.
Tensor pooled(Net& net, const char* norm, const char* name, Tensor x) {
  Tensor h = transpose(net.layer_norm(norm, std::move(x)), 1, 2);
  const Count kernel = net.arch.conv_kernels[0], stride = net.arch.conv_strides[0];
  const Dim frames((h.size(2) + 2 * (stride / 2) - kernel) / stride + 1);
  h = frame_convolution(net, name, std::move(h), Dim(2 * net.H.n()), kernel, frames, true, false);
  return transpose(gated_channels(std::move(h)), 1, 2);
}

Tensor adapter_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kAdapter);
  Tensor residual = pooled(net, "residual_layer_norm", "residual_conv", hidden);
  Tensor h = pooled(net, "self_attn_layer_norm", "self_attn_conv", std::move(hidden));
  const Tensor mask = bidirectional_mask(net, h, true, h.dim(1), h.dim(1));
  h = attend(net, h, mask, false);
  h = dropout(std::move(h), net.arch.embedding_dropout);
  h = add(std::move(h), residual);
  residual = h;
  h = net.layer_norm("ffn_layer_norm", std::move(h));
  h = feed_forward(net, kAdapters, h);
  net.attn_weights.reset();
  return add(std::move(h), residual);
}

Tensor adapted(Net& net, Tensor hidden) {
  Net& adapter = net.part(net.arch.parts.front(), net.B, net.S);
  if (adapter.H.n() != net.H.n()) {
    hidden = net.linear("wav2vec2_bert.adapter.proj", std::move(hidden), adapter.H, true);
    hidden = net.layer_norm("wav2vec2_bert.adapter.proj_layer_norm", std::move(hidden));
  }
  return adapter.layers({"wav2vec2_bert.adapter.layers", adapter.arch.num_layers, adapter_layer, false},
                        std::move(hidden));
}

// (1.0 - attention_mask) * finfo.min, expanded over queries
Tensor additive_mask(Net& net, Dtype dtype) {
  const Shape row{net.B, Dim(1), Dim(1), net.S};
  Tensor mask = net.tape.allocate(row, dtype, "rsub");
  mask = net.tape.allocate(row, dtype, "mul");
  return expand(std::move(mask), Shape{net.B, Dim(1), net.S, net.S});
}

Tensor forward(Net& net) {
  Tensor hidden;
  {
    Scope in(net.tape, "feature_projection", kProjection);
    const Tensor normed = net.layer_norm("wav2vec2_bert.feature_projection.layer_norm", net.input_ids);
    net.model_locals.push_back(normed);
    hidden = net.linear("wav2vec2_bert.feature_projection.projection", normed, net.H, true);
    hidden = dropout(std::move(hidden), net.arch.feature_dropout);
  }
  hidden = mask_time(net, kBody, std::move(hidden));
  Scope in(net.tape, "encoder", kEncoder);
  net.model_locals.push_back(hidden);
  hidden = silenced(net, std::move(hidden));
  net.shared.causal_mask = additive_mask(net, hidden.dtype());
  hidden = dropout(std::move(hidden), net.arch.residual_dropout);
  Stack stack{"wav2vec2_bert.encoder.layers", net.arch.num_layers, layer};
  if (net.arch.parts.empty()) stack.then = Phase::kLoss;
  hidden = net.layers(stack, std::move(hidden));
  return net.arch.parts.empty() ? hidden : adapted(net, std::move(hidden));
}

Outputs classification(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kClassifier);
  const Dim width(net.arch.pooler_size);
  Tensor projected = net.classifier("projector", std::move(hidden), width, true);
  const Shape all{net.B, net.S, width};
  const Tensor padded = net.tape.allocate(all, Dtype::kBool, "repeat");
  {
    const Tensor zero = net.tape.allocate(Shape{Dim(1)}, projected.dtype(), "scalar_tensor");
    projected = put_marked(std::move(projected), net.tape.allocate(all, Dtype::kBool, "bitwise_not"), zero);
  }
  Tensor mean = sum_rows(std::move(projected));
  mean = div(std::move(mean), net.tape.allocate(Shape{net.B, Dim(1)}, Dtype::kInt64, "sum"));
  Tensor logits = net.classifier("classifier", std::move(mean), Dim(net.arch.num_labels), true);
  Outputs out;
  out.loss = plain_cross_entropy(net, logits);
  out.rest = {std::move(logits)};
  return out;
}

void check(const Architecture& architecture, const TrainingJob&, Issues& issues) {
  if (architecture.head == Head::kCtc && architecture.vocab_size == 0) {
    issues.push_back({"MISSING_FIELD", Severity::kError, "/config/vocab_size",
                      "CTC scores letters, and the class asks for their number: set \"vocab_size\" to it.", ""});
  }
  if (architecture.head == Head::kSequenceClassification && !architecture.parts.empty()) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/config/add_adapter",
                      "The class takes no adapter: set \"add_adapter\" to false.", ""});
  }
}

constexpr HeadForward kHeads[] = {
    {Head::kCtc, wave_ctc}, {Head::kSequenceClassification, classification}, {Head::kNone, body_alone}};

// transformers 5.16 models/wav2vec2_bert/modeling_wav2vec2_bert.py: _supports_sdpa.
const Program kProgram = {
    .forward = forward, .heads = kHeads, .inputs = inputs, .attention = sdpa_alone_since(16), .check = check};

constexpr ClassFacts kFacts = {.flex_attention = false,
                               .text_input = false,
                               .input_embeddings = false,
                               .no_split = NoSplit::kNone,
                               .named_anew_since = 13};

}  // namespace

const Family kRows[] = {
    {"wav2vec2-bert", "Wav2Vec2Bert", "Wav2Vec2BertForCTC", kWav2Vec2Classes, read_config, &kProgram,
     "wav2vec2_bert.encoder.layers", kFacts},
};

extern const FamilyRows wav2vec2_bert_rows;
const FamilyRows wav2vec2_bert_rows = kRows;

}  // namespace tidemark
