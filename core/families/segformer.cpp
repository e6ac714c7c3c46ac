// SegFormer: four stages of attention to fewer keys than queries, and a head that puts all stages together.
#include "core/families/family.hpp"
#include "core/families/stages.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/ops/convolution.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {

std::vector<Count> read_counts(ConfigFields& fields, std::string_view key, std::initializer_list<Count> standard) {
  const Value* value = fields.find({key});
  if (value == nullptr || !value->is_array()) return standard;
  std::vector<Count> counts;
  for (const Value& item : value->items) {
    if (!item.is_integer() || item.integer < 1 || item.integer > 1000000) {
      fields.error("INVALID_VALUE", key, "Whole numbers, one per stage, are expected.");
      return standard;
    }
    counts.push_back(item.integer);
  }
  return counts;
}

void make_stages(ConfigFields& fields, Architecture& architecture, const std::vector<Count>& widths,
                 const std::vector<Count>& depths) {
  if (widths.size() != depths.size() || widths.empty() || widths.size() > kMostStages) {
    fields.error("INVALID_VALUE", "depths", "One to four stages are modelled, each with a width and a depth.");
    return;
  }
  Architecture like = architecture;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    Architecture stage = like;
    stage.hidden_size = widths[i];
    stage.num_layers = depths[i];
    stage.encoder_stride = i > 0 || like.parallel_residual ? 2 : 1;
    stage.layer_kinds.assign(static_cast<std::size_t>(depths[i]), 0);
    stage.layer_kinds.front() = 1;
    architecture.parts.push_back(std::move(stage));
    architecture.num_layers += depths[i];
  }
  architecture.hidden_size = widths.back();
  architecture.num_heads = architecture.num_kv_heads = architecture.head_dim = 1;
}

namespace {

// transformers 5.12.1 models/segformer/configuration_segformer.py: SegformerConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  architecture.positions_by_token = false;
  architecture.num_channels = fields.count({"num_channels"}, 3);
  architecture.image_size = 512;  // the file does not say: the processor's
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  architecture.norm_bias = true;
  architecture.residual_dropout = fields.probability({"hidden_dropout_prob"}, 0.0);
  architecture.attention_dropout = fields.probability({"attention_probs_dropout_prob"}, 0.0);
  architecture.classifier_dropout = fields.probability({"classifier_dropout_prob"}, 0.1);
  architecture.drop_path = fields.probability({"drop_path_rate"}, 0.1);
  architecture.pooler_size = fields.count({"decoder_hidden_size"}, 256);
  make_stages(fields, architecture, read_counts(fields, "hidden_sizes", {32, 64, 160, 256}),
              read_counts(fields, "depths", {2, 2, 2, 2}));
  const std::vector<Count> heads = read_counts(fields, "num_attention_heads", {1, 2, 5, 8});
  const std::vector<Count> ratios = read_counts(fields, "mlp_ratios", {4, 4, 4, 4});
  const std::vector<Count> reductions = read_counts(fields, "sr_ratios", {8, 4, 2, 1});
  const std::vector<Count> strides = read_counts(fields, "strides", {4, 2, 2, 2});
  const std::vector<Count> patches = read_counts(fields, "patch_sizes", {7, 3, 3, 3});
  for (std::size_t i = 0; i < architecture.parts.size(); ++i) {
    Architecture& stage = architecture.parts[i];
    if (heads.size() <= i || ratios.size() <= i || reductions.size() <= i || strides.size() <= i ||
        patches.size() <= i || stage.hidden_size % heads[i] != 0) {
      fields.error("INVALID_VALUE", "num_attention_heads", "Each stage needs heads that divide its width.");
      return;
    }
    stage.num_heads = stage.num_kv_heads = heads[i];
    stage.head_dim = stage.hidden_size / heads[i];
    stage.intermediate_size = stage.hidden_size * ratios[i];
    stage.pictures.merge = reductions[i];
    stage.encoder_stride = strides[i];
    stage.patch_size = patches[i];
    // Only the model's first layer leaves none of its branches out.
    if (i > 0) stage.layer_kinds.front() = 0;
  }
  fields.accept({"num_encoder_blocks", "reshape_last_stage", "semantic_loss_ignore_index"});
}

constexpr const char* kStage = "transformers 5.12 models/segformer/modeling_segformer.py: SegformerStage.forward";
constexpr const char* kLayer = "transformers 5.12 models/segformer/modeling_segformer.py: SegformerLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/segformer/modeling_segformer.py: SegformerAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/segformer/modeling_segformer.py: SegformerMixMLP.forward";
constexpr const char* kDecode = "transformers 5.12 models/segformer/modeling_segformer.py: SegformerDecodeHead.forward";

constexpr const char* kClassifier =
    "transformers 5.12 models/segformer/modeling_segformer.py: SegformerForImageClassification.forward";

/// Names of a stage's modules.
struct StageNames {
  const char *blocks, *patches, *patch_norm, *norm, *projection;
};
constexpr StageNames kNames[kMostStages] = {{"segformer.stages.0.blocks", "segformer.stages.0.patch_embeddings.proj",
                                             "segformer.stages.0.patch_embeddings.layer_norm",
                                             "segformer.stages.0.layer_norm", "decode_head.linear_projections.0.proj"},
                                            {"segformer.stages.1.blocks", "segformer.stages.1.patch_embeddings.proj",
                                             "segformer.stages.1.patch_embeddings.layer_norm",
                                             "segformer.stages.1.layer_norm", "decode_head.linear_projections.1.proj"},
                                            {"segformer.stages.2.blocks", "segformer.stages.2.patch_embeddings.proj",
                                             "segformer.stages.2.patch_embeddings.layer_norm",
                                             "segformer.stages.2.layer_norm", "decode_head.linear_projections.2.proj"},
                                            {"segformer.stages.3.blocks", "segformer.stages.3.patch_embeddings.proj",
                                             "segformer.stages.3.patch_embeddings.layer_norm",
                                             "segformer.stages.3.layer_norm", "decode_head.linear_projections.3.proj"}};

// A stage's picture is as high and wide as its positions say.
Shape picture_of(const Net& net, Dim channels) {
  const Tensor& sizes = net.shared.position_ids;
  return {net.B, channels, sizes.dim(0), sizes.dim(1)};
}

Tensor convolution(Net& net, const char* name, Tensor x, const Shape& weight_shape, Dim height, Dim width) {
  Scope in(net.tape, name, net.source());
  Tensor weight = net.parameter(name, "weight", weight_shape);
  return convolution(std::move(x), std::move(weight), net.parameter(name, "bias", Shape{weight_shape.dims[0]}),
                     {height, width});
}

// SegformerSequenceReduction.forward
Tensor reduced(Net& net, const Tensor& hidden) {
  const Count ratio = net.arch.pictures.merge;
  if (ratio == 1) return hidden;
  constexpr const char* kReduction = "attention.sequence_reduction.sequence_reduction";
  const Shape picture = picture_of(net, net.H);
  const Dim height(picture.size(2) / ratio), width(picture.size(3) / ratio), side(ratio);
  Tensor x = view(transpose(hidden, 1, 2), picture);
  x = convolution(net, kReduction, std::move(x), Shape{net.H, net.H, side, side}, height, width);
  x = transpose(view(std::move(x), Shape{net.B, net.H, Dim(height.n() * width.n())}), 1, 2);
  return net.layer_norm("attention.sequence_reduction.layer_norm", std::move(x));
}

Tensor attention_block(Net& net, Tensor hidden) {
  Scope in(net.tape, "attention", kAttention);
  const Tensor x = std::move(hidden);
  const Tensor q = split_heads(net, net.linear("attention.q_proj", x, net.Q, true), net.A, net.hd);
  const Tensor states = reduced(net, x);
  const Shape heads{net.B, states.dim(1), net.A, net.hd};
  const Tensor k = transpose(view(net.linear("attention.k_proj", states, net.Q, true), heads), 1, 2);
  const Tensor v = transpose(view(net.linear("attention.v_proj", states, net.Q, true), heads), 1, 2);
  AttentionOptions options;
  options.dropout = net.arch.attention_dropout;
  options.causal = false;
  options.has_groups = false;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("attention.o_proj", std::move(out), net.H, true);
}

Tensor mix_mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Dim three(3);
  const Shape picture = picture_of(net, net.F);
  const Tensor x = std::move(hidden);
  Tensor h = net.linear("mlp.fc1", x, net.F, true);
  h = view(transpose(std::move(h), 1, 2), picture);
  h = convolution(net, "mlp.dwconv.dwconv", std::move(h), Shape{net.F, Dim(1), three, three}, picture.dim(2),
                  picture.dim(3));
  h = transpose(view(std::move(h), Shape{net.B, net.F, net.S}), 1, 2);
  h = activate(net.arch.activation, std::move(h));
  h = dropout(std::move(h), net.arch.residual_dropout);
  h = net.linear("mlp.fc2", std::move(h), net.H, true);
  return dropout(std::move(h), net.arch.residual_dropout);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const bool first = net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == 1;
  const double rate = first ? 0.0 : net.arch.drop_path;
  Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm("layernorm_before", residual);
  h = attention_block(net, std::move(h));
  h = dropout(std::move(h), net.arch.residual_dropout);
  h = add(drop_path(net, std::move(h), rate), residual);
  residual = h;
  h = net.layer_norm("layernorm_after", std::move(h));
  h = mix_mlp(net, std::move(h));
  return add(drop_path(net, std::move(h), rate), std::move(residual));
}

void inputs(Net& net) {
  picture_batch(net, Dim(1));
  const PictureSize size = own_picture_size(net);
  if (net.arch.head == Head::kTokenClassification) {
    net.labels = net.tape.allocate(Shape{net.B, Dim(size.height), Dim(size.width)}, Dtype::kInt64, "labels");
  }
}

// One stage: its output as a picture, [B, width, h, w].
Tensor stage(Net& net, std::size_t i, Tensor hidden) {
  const StageNames& names = kNames[i];
  const Architecture& a = net.arch.parts[i];
  const Count kernel = a.patch_size, stride = a.encoder_stride;
  const auto side = [&](int dim) { return Dim((hidden.size(dim) + 2 * (kernel / 2) - kernel) / stride + 1); };
  const Dim height = side(2), width = side(3), tokens(height.n() * width.n()), size(kernel);
  Net& part = net.part(a, net.B, tokens);
  Scope in(net.tape, "segformer", kStage);
  part.shared.position_ids = net.tape.part_of_buffer(Shape{height, width}, Dtype::kInt64);
  const Dim channels = hidden.dim(1);
  hidden = convolution(part, names.patches, std::move(hidden), Shape{part.H, channels, size, size}, height, width);
  hidden = transpose(view(std::move(hidden), Shape{net.B, part.H, tokens}), 1, 2);
  hidden = part.layer_norm(names.patch_norm, std::move(hidden));
  hidden = part.layers({names.blocks, a.num_layers, layer}, std::move(hidden));
  hidden = part.layer_norm(names.norm, std::move(hidden));
  hidden = permute(view(std::move(hidden), Shape{net.B, height, width, part.H}), {0, 3, 1, 2});
  return contiguous(std::move(hidden));
}

Tensor forward(Net& net) {
  Tensor hidden = net.input_ids;
  for (std::size_t i = 0; i < net.arch.parts.size(); ++i) {
    hidden = stage(net, i, hidden);  // SegformerModel.forward's name keeps a stage's input until the stage is through
    if (net.arch.head == Head::kTokenClassification) net.leaves.push_back(hidden);  // encoder_hidden_states
  }
  return hidden;
}

// One stage's pixels through a matrix, as large a picture as the first stage's.
Tensor projected(Net& net, std::size_t i, const Tensor& hidden, const Shape& size) {
  const Dim width(net.arch.pooler_size), pixels(hidden.size(2) * hidden.size(3));
  Tensor x = transpose(view(hidden, Shape{net.B, hidden.dim(1), pixels}), 1, 2);
  x = transpose(net.linear(kNames[i].projection, std::move(x), width, true), 1, 2);
  x = reshape(std::move(x), Shape{net.B, width, hidden.dim(2), hidden.dim(3)});
  return interpolate(std::move(x), size);
}

Tensor decoded(Net& net) {
  Scope in(net.tape, "decode_head", kDecode);
  const Dim width(net.arch.pooler_size), one(1);
  const std::vector<Tensor>& states = net.leaves;
  const Dim height = states.front().dim(2), columns = states.front().dim(3);
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < states.size(); ++i) {
    all.insert(all.begin(), projected(net, i, states[i], Shape{net.B, width, height, columns}));
  }
  Tensor h;
  {
    Tensor joined = cat(all, 1);
    Tensor weight = net.parameter("decode_head.linear_fuse", "weight", Shape{width, joined.dim(1), one, one});
    h = tidemark::convolution(std::move(joined), std::move(weight), {}, {height, columns});
  }
  h = net.batch_norm("decode_head.batch_norm", std::move(h));
  h = relu(std::move(h));
  h = dropout(std::move(h), net.arch.classifier_dropout);
  const Dim labels(net.arch.num_labels);
  return convolution(net, "decode_head.classifier", std::move(h), Shape{labels, width, one, one}, height, columns);
}

Outputs segmentation(Net& net, const Program&, Tensor hidden) {
  hidden.reset();
  Outputs out;
  Tensor logits = decoded(net);
  const PictureSize size = own_picture_size(net);
  const Shape full{net.B, logits.dim(1), Dim(size.height), Dim(size.width)};
  Tensor upsampled = interpolate(logits, full);
  const Dim pixels(net.labels.numel());
  const Tensor rows = view(upsampled, Shape{pixels, logits.dim(1)});
  out.loss = cross_entropy(rows, view(net.labels, Shape{pixels}));
  out.rest = {std::move(logits)};
  net.leaves.clear();
  return out;
}

// reshape_last_stage: the last picture's pixels, and their mean.
Outputs image_classification(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kClassifier);
  const Tensor last = std::move(hidden);
  const Dim pixels(last.size(2) * last.size(3)), width = last.dim(1);
  Tensor rows = transpose(view(last, Shape{net.B, width, pixels}), 1, 2);
  Tensor pooled = mean_over(std::move(rows), 1);
  return classified(net, net.classifier("classifier", std::move(pooled), Dim(net.arch.num_labels), true));
}

// One answer per pixel, or one of all.
constexpr HeadForward kHeads[] = {{Head::kTokenClassification, segmentation},
                                  {Head::kImageClassification, image_classification}};
constexpr ClassSuffix kClasses[] = {{"ForSemanticSegmentation", Head::kTokenClassification},
                                    {"ForImageClassification", Head::kImageClassification}};

const Program kProgram = {.forward = forward, .heads = kHeads, .own_loss = OwnLoss::kFp32, .inputs = inputs};

constexpr ClassFacts kFacts = {.text_input = false, .input_embeddings = false, .no_split = NoSplit::kOtherParts};

}  // namespace

const Family kRows[] = {
    {"segformer", "Segformer", "SegformerForSemanticSegmentation", kClasses, read_config, &kProgram,
     "segformer.stages.0.blocks", kFacts},
};

extern const FamilyRows segformer_rows;
const FamilyRows segformer_rows = kRows;

}  // namespace tidemark
