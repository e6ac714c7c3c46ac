// Wav2Vec2-Conformer: Wav2Vec2's convolutions, and a conformer whose attention adds what a query says of distances, or
// turns what queries and keys are made of.
#include <algorithm>

#include "core/families/family.hpp"
#include "core/families/wav2vec2.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/ops/convolution.hpp"

namespace tidemark {
namespace {

// transformers 5.24 models/wav2vec2_conformer/configuration_wav2vec2_conformer.py: Wav2Vec2ConformerConfig.
// `num_buckets`: rows of the table of distances; `rotary_dim`: columns of a head that turn.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_wav2vec2_config(fields, architecture);
  const Count kernel = fields.count({"conv_depthwise_kernel_size"}, 31);
  if (kernel % 2 == 0) {
    fields.error("INVALID_VALUE", "conv_depthwise_kernel_size", "The class takes an odd number alone.");
  }
  architecture.ssm.kernel = kernel;
  architecture.embedding_dropout = fields.probability({"conformer_conv_dropout"}, 0.1);
  const Count positions = fields.count({"max_source_positions"}, 5000);
  const bool none = fields.find({"position_embeddings_type"}) != nullptr && !fields.has({"position_embeddings_type"});
  const std::string kind = none ? "" : fields.text({"position_embeddings_type"}, "relative");
  if (kind == "relative") {
    architecture.num_buckets = 2 * positions - 1;
  } else if (kind == "rotary") {
    architecture.rotary_dim = architecture.head_dim;
  } else if (!none) {
    fields.error("INVALID_VALUE", "position_embeddings_type",
                 "\"relative\", \"rotary\" and null are what the class knows.");
  }
  if (architecture.head == Head::kCtc && !fields.has({"vocab_size"})) {
    fields.error("MISSING_FIELD", "vocab_size",
                 "CTC scores letters, and the class asks for their number: set \"vocab_size\" to it.");
  }
  fields.accept({"rotary_embedding_base"});
}

constexpr const char* kEncoder =
    "transformers 5.24 models/wav2vec2_conformer/modeling_wav2vec2_conformer.py: Wav2Vec2ConformerEncoder.forward";
constexpr const char* kLayer =
    "transformers 5.24 models/wav2vec2_conformer/modeling_wav2vec2_conformer.py: Wav2Vec2ConformerEncoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.24 models/wav2vec2_conformer/modeling_wav2vec2_conformer.py: "
    "Wav2Vec2ConformerSelfAttention.forward";
constexpr const char* kRelative =
    "transformers 5.24 models/wav2vec2_conformer/modeling_wav2vec2_conformer.py: _apply_relative_position_encoding";
constexpr const char* kConvolution =
    "transformers 5.24 models/wav2vec2_conformer/modeling_wav2vec2_conformer.py: "
    "Wav2Vec2ConformerConvolutionModule.forward";

// Scores of distances, a product with all of them of which each query's row is shifted to its own; q gets a bias of its
// own.
Tensor by_distance(Net& net, Tensor& q) {
  Scope in(net.tape, "", kRelative);
  const Dim distances(2 * net.S.n() - 1), one(1);
  const auto bias = [&](const char* leaf) {
    return view(net.parameter("self_attn", leaf, Shape{net.A, net.hd}), Shape{one, net.A, one, net.hd});
  };
  Tensor keys = net.linear("self_attn.linear_pos", net.shared.bias, net.H);
  keys = permute(view(std::move(keys), Shape{one, distances, net.A, net.hd}), {0, 2, 3, 1});
  const Tensor by_place = add(q, bias("pos_bias_v"));
  Tensor scores = matmul(by_place, keys);
  scores = view(pad_last(std::move(scores), 1), Shape{net.B, net.A, Dim(2 * net.S.n()), net.S});
  scores = view(narrow(std::move(scores), 2, 1, distances), Shape{net.B, net.A, net.S, distances});
  scores = mul_scalar(narrow(std::move(scores), 3, 0, net.S));
  q = add(std::move(q), bias("pos_bias_u"));
  return scores;
}

// _apply_rotary_embedding, of the hidden states.
Tensor turned(Net& net, const Tensor& x) {
  const Dim half(net.hd.n() / 2);
  const Tensor h = transpose(view(x, Shape{net.B, net.S, net.A, net.hd}), 0, 1);
  const Tensor begin = narrow(h, -1, 0, half);
  Tensor rotated;
  {
    const Tensor end = neg(narrow(h, -1, half.n(), half));
    rotated = cat({&end, &begin}, -1);
  }
  Tensor out = mul(h, net.shared.cos);
  Tensor other = mul(rotated, net.shared.sin);
  out = add(std::move(out), std::move(other));
  return view(transpose(std::move(out), 0, 1), Shape{net.B, net.S, net.H});
}

Tensor attend(Net& net, const Tensor& x) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor of_places = net.arch.rotary_dim > 0 ? turned(net, x) : x;
  Tensor q = split_heads(net, net.linear("self_attn.linear_q", of_places, net.H, true), net.A, net.hd);
  const Tensor k = split_heads(net, net.linear("self_attn.linear_k", of_places, net.H, true), net.A, net.hd);
  const Tensor v = split_heads(net, net.linear("self_attn.linear_v", x, net.H, true), net.A, net.hd);
  AttentionOptions options = encoder_attention(net);
  if (net.arch.num_buckets > 0) options.mask = by_distance(net, q);
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.linear_out", std::move(out), net.H, true);
}

Tensor convolve(Net& net, const Tensor& x) {
  Scope in(net.tape, "conv_module", kConvolution);
  const Dim twice(2 * net.H.n());
  Tensor h = transpose(net.layer_norm("conv_module.layer_norm", x), 1, 2);
  h = frame_convolution(net, "conv_module.pointwise_conv1", std::move(h), twice, 1, net.S, false, false);
  h = gated_channels(std::move(h));
  h = frame_convolution(net, "conv_module.depthwise_conv", std::move(h), net.H, net.arch.ssm.kernel, net.S, false,
                        true);
  h = net.batch_norm("conv_module.batch_norm", std::move(h));
  return conformer_frames(net, std::move(h));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = conformer_half(net, true, std::move(hidden));
  Tensor h = net.layer_norm("self_attn_layer_norm", residual);
  h = attend(net, h);
  h = dropout(std::move(h), net.arch.attention_dropout);
  h = add(std::move(h), residual);
  residual = h;
  h = convolve(net, h);
  h = add(residual, std::move(h));
  residual.reset();
  h = conformer_half(net, false, std::move(h));
  return net.layer_norm("final_layer_norm", std::move(h));
}

// What the encoder hands to its layers: a part of a buffer, which the first forward casts to the states' dtype; or
// tables that stay from one forward to the next.
void make_positions(Net& net, Dtype dtype) {
  if (net.arch.num_buckets > 0) {
    const Dim distances(2 * net.S.n() - 1);
    net.tape.buffer("encoder.embed_positions.pe",
                    std::max(net.arch.num_buckets, distances.n()) * net.H.n() * size_of(dtype));
    net.shared.bias = net.tape.part_of_buffer(Shape{Dim(1), distances, net.H}, dtype);
  }
  if (net.arch.rotary_dim > 0) {
    const Shape table{net.S, Dim(1), Dim(1), net.hd};
    net.tape.buffer("encoder.embed_positions.inv_freq", net.hd.n() / 2 * size_of(net.weight_dtype(1)));
    net.tape.buffer("encoder.embed_positions.cached_rotary_positional_embedding", 2 * table.numel() * size_of(dtype));
    net.shared.cos = net.tape.part_of_buffer(table, dtype);
    net.shared.sin = net.tape.part_of_buffer(table, dtype);
  }
}

Tensor forward(Net& net) {
  Tensor extracted;
  Tensor hidden = wave_projected(net, extracted);
  Scope in(net.tape, "encoder", kEncoder);
  const Tensor entered = hidden;  // a name of Wav2Vec2ConformerModel.forward
  {
    // The encoder makes Wav2Vec2's convolution of positions, and never calls it.
    const Declared unread(net, true);
    constexpr const char* kUnread = "wav2vec2_conformer.encoder.pos_conv_embed.conv";
    const Dim kernel(net.arch.position_kernel), columns(net.H.n() / net.arch.position_groups);
    const Tensor bias = net.parameter(kUnread, "bias", Shape{net.H});
    const Tensor g = net.parameter(kUnread, "parametrizations.weight.original0", Shape{Dim(1), Dim(1), kernel});
    const Tensor v = net.parameter(kUnread, "parametrizations.weight.original1", Shape{net.H, columns, kernel});
  }
  hidden = dropout(std::move(hidden), net.arch.residual_dropout);
  make_positions(net, hidden.dtype());
  const Stack stack{"wav2vec2_conformer.encoder.layers", net.arch.num_layers, layer, true, Phase::kLoss};
  net.hands_out_all = net.arch.head == Head::kSequenceClassification;  // filter_output_hidden_states
  hidden = net.layers(stack, std::move(hidden));
  net.hands_out_all = false;
  net.shared = {};
  return net.layer_norm("wav2vec2_conformer.encoder.layer_norm", std::move(hidden));
}

void check(const Architecture&, const TrainingJob& job, Issues& issues) {
  if (job.framework.at_least(5, 24)) return;
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/framework/version",
                    "Wav2Vec2-Conformer is modelled as transformers 5.24 has it: its attention was another one before.",
                    "5.24"});
}

const Program kProgram = {
    .forward = forward, .heads = kWaveHeads, .inputs = wave_inputs, .attention = kNoFlash, .check = check};

constexpr ClassFacts kFacts = {
    .text_input = false, .input_embeddings = false, .no_split = NoSplit::kNone, .made_first = "encoder.layer_norm"};

}  // namespace

const Family kRows[] = {
    {"wav2vec2-conformer", "Wav2Vec2Conformer", "Wav2Vec2ConformerForCTC", kWav2Vec2Classes, read_config, &kProgram,
     "wav2vec2_conformer.encoder.layers", kFacts},
};

extern const FamilyRows wav2vec2_conformer_rows;
const FamilyRows wav2vec2_conformer_rows = kRows;

}  // namespace tidemark
