// Swin: attention within windows of a picture, shifted in every other layer; each stage half as wide a picture.
#include "core/families/family.hpp"
#include "core/families/stages.hpp"
#include "core/families/swin_stages.hpp"
#include "core/families/towers.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {

// transformers 5.12.1 models/swin/configuration_swin.py: SwinConfig; models/swinv2/configuration_swinv2.py:
// Swinv2Config; models/donut/configuration_donut_swin.py: DonutSwinConfig.
bool read_swin(ConfigFields& fields, Architecture& architecture) {
  architecture.positions_by_token = false;
  architecture.num_channels = fields.count({"num_channels"}, 3);
  architecture.patch_size = square_side(fields, "patch_size", 4);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  architecture.attention_bias = fields.flag({"qkv_bias"}, true);
  architecture.norm_bias = true;
  architecture.residual_dropout = fields.probability({"hidden_dropout_prob"}, 0.0);
  architecture.attention_dropout = fields.probability({"attention_probs_dropout_prob"}, 0.0);
  architecture.drop_path = fields.probability({"drop_path_rate"}, 0.1);
  architecture.pictures.window = fields.count({"window_size"}, 7);
  const Count width = fields.count({"embed_dim"}, 96);
  const std::vector<Count> depths = read_counts(fields, "depths", {2, 2, 6, 2});
  const std::vector<Count> heads = read_counts(fields, "num_heads", {3, 6, 12, 24});
  const double ratio = fields.multiplier({"mlp_ratio"}, 4.0);
  std::vector<Count> widths;
  for (std::size_t i = 0; i < depths.size() && i < kMostStages; ++i) widths.push_back(width << i);
  make_stages(fields, architecture, widths, depths);
  for (std::size_t i = 0; i < architecture.parts.size(); ++i) {
    Architecture& stage = architecture.parts[i];
    if (heads.size() <= i || stage.hidden_size % heads[i] != 0) {
      fields.error("INVALID_VALUE", "num_heads", "Each stage needs heads that divide its width.");
      return false;
    }
    stage.num_heads = stage.num_kv_heads = heads[i];
    stage.head_dim = stage.hidden_size / heads[i];
    stage.intermediate_size = static_cast<Count>(ratio * static_cast<double>(stage.hidden_size));
  }
  if (fields.flag({"use_absolute_embeddings"}, false)) {
    fields.error("INVALID_VALUE", "use_absolute_embeddings", "A table of positions is not modelled here.");
  }
  fields.accept({"encoder_stride", "out_features", "out_indices", "path_norm"});
  return true;
}

Tensor swin_mask(Net& net, PictureSize picture, Count windows, Dim area, Dtype dtype) {
  Tape& t = net.tape;
  const Shape whole{Dim(picture.height), Dim(picture.width)}, pairs{Dim(windows), area, area};
  const Tensor zeros = t.allocate(whole, dtype, "zeros"), parts = t.allocate(whole, dtype, "clone");
  Tensor mask = t.allocate(pairs, dtype, "sub");
  Tensor filled;
  {
    const Tensor differs = t.allocate(pairs, Dtype::kBool, "ne");
    filled = t.allocate(pairs, dtype, "masked_fill");
  }
  const Tensor same = t.allocate(pairs, Dtype::kBool, "eq");
  return t.allocate(pairs, dtype, "masked_fill");
}

Tensor swin_biases(const Tensor& table, const Tensor& index, Dim area, Dim heads) {
  Tensor bias = index_some(table, index, Dim(area.n() * area.n()));
  bias = permute(view(std::move(bias), Shape{area, area, heads}), {2, 0, 1});
  return unsqueeze(contiguous(std::move(bias)), 0);
}

namespace {

constexpr std::uint8_t kFirst = 1, kShifts = 2;  // kinds of a layer, as bits

void read_config(ConfigFields& fields, Architecture& architecture) {
  architecture.image_size = square_side(fields, "image_size", 224);
  if (!read_swin(fields, architecture)) return;
  for (std::size_t i = 0; i < architecture.parts.size(); ++i) {
    std::vector<std::uint8_t>& kinds = architecture.parts[i].layer_kinds;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      kinds[k] = static_cast<std::uint8_t>((i == 0 && k == 0 ? kFirst : 0) | (k % 2 == 1 ? kShifts : 0));
    }
  }
}

constexpr const char* kEmbeddings = "transformers 5.12 models/swin/modeling_swin.py: SwinEmbeddings.forward";
constexpr const char* kLayer = "transformers 5.12 models/swin/modeling_swin.py: SwinLayer.forward";
constexpr const char* kMask = "transformers 5.12 models/swin/modeling_swin.py: SwinLayer.get_attn_mask";
constexpr const char* kAttention = "transformers 5.12 models/swin/modeling_swin.py: SwinAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/swin/modeling_swin.py: SwinMLP.forward";
constexpr const char* kMerging = "transformers 5.12 models/swin/modeling_swin.py: SwinPatchMerging.forward";
constexpr const char* kHead = "transformers 5.12 models/swin/modeling_swin.py: SwinForImageClassification.forward";

/// Names of a stage's modules.
struct StageNames {
  const char *blocks, *norm, *reduction;
};
constexpr StageNames kNames[kMostStages] = {{"swin.encoder.layers.0.blocks", "swin.encoder.layers.0.downsample.norm",
                                             "swin.encoder.layers.0.downsample.reduction"},
                                            {"swin.encoder.layers.1.blocks", "swin.encoder.layers.1.downsample.norm",
                                             "swin.encoder.layers.1.downsample.reduction"},
                                            {"swin.encoder.layers.2.blocks", "swin.encoder.layers.2.downsample.norm",
                                             "swin.encoder.layers.2.downsample.reduction"},
                                            {"swin.encoder.layers.3.blocks", "swin.encoder.layers.3.downsample.norm",
                                             "swin.encoder.layers.3.downsample.reduction"}};

/// How a stage's picture falls into windows.
struct Windows {
  Count height = 0, width = 0;  ///< of the picture, padded to whole windows
  Count side = 0;               ///< of a window
  bool shifted = false;
  Dim area() const { return Dim(side * side); }
  Count count() const { return (height / side) * (width / side); }
};

Windows windows_of(const Net& net) {
  const Shape& picture = net.shared.position_ids.shape();
  const Count h = picture.size(0), w = picture.size(1), asked = net.arch.pictures.window;
  const Count smaller = h < w ? h : w;
  Windows windows;
  windows.side = smaller <= asked ? smaller : asked;
  windows.shifted = smaller > asked && (net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] & kShifts) != 0;
  windows.height = (h + windows.side - 1) / windows.side * windows.side;
  windows.width = (w + windows.side - 1) / windows.side * windows.side;
  return windows;
}

// Tokens of different neighbourhoods that a shift has brought into one window: [windows, area, area].
Tensor shift_mask(Net& net, const Windows& w, Dtype dtype) {
  if (!w.shifted) return {};
  Scope in(net.tape, "", kMask);
  return swin_mask(net, {w.height, w.width}, w.count(), w.area(), dtype);
}

// SwinRelativePositionBias.forward: [1, heads, area, area].
Tensor position_bias(Net& net) {
  constexpr const char* kModule = "attention.relative_position_bias";
  const Count asked = net.arch.pictures.window, area = asked * asked;
  const Dim rows((2 * asked - 1) * (2 * asked - 1)), pairs(area * area);
  net.tape.buffer("attention.relative_position_bias.relative_position_index", 8 * pairs.n());
  const Tensor index = net.tape.part_of_buffer(Shape{pairs}, Dtype::kInt64);
  const Tensor table = net.parameter(kModule, "relative_position_bias_table", Shape{rows, net.A});
  return swin_biases(table, index, Dim(area), net.A);
}

Tensor attention_block(Net& net, Tensor hidden, const Windows& w, const Tensor& mask) {
  Scope in(net.tape, "attention", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  const Shape heads{x.dim(0), w.area(), net.A, net.hd};
  const Tensor q = transpose(view(net.linear("attention.q_proj", x, net.Q, bias), heads), 1, 2);
  const Tensor k = transpose(view(net.linear("attention.k_proj", x, net.Q, bias), heads), 1, 2);
  const Tensor v = transpose(view(net.linear("attention.v_proj", x, net.Q, bias), heads), 1, 2);
  const Tensor positions = position_bias(net);
  Tensor wide, combined = positions;
  if (mask.defined()) {
    wide = net.tape.allocate(Shape{x.dim(0), Dim(1), w.area(), w.area()}, mask.dtype(), "clone");
    combined = add(positions, wide);
  }
  AttentionOptions options;
  options.mask = combined;
  options.dropout = net.arch.attention_dropout;
  options.causal = false;
  options.has_groups = false;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("attention.o_proj", std::move(out), net.H, true);
}

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  Tensor h = net.linear("mlp.fc1", std::move(hidden), net.F, true);
  h = activate(net.arch.activation, std::move(h));
  return net.linear("mlp.fc2", std::move(h), net.H, true);
}

// The picture cut into windows or put together again: a copy, forward and backward.
Tensor rearranged(Tensor x, const Shape& shape) {
  return view(roll(std::move(x)), shape);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Windows w = windows_of(net);
  const bool first = (net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] & kFirst) != 0;
  const double rate = first ? 0.0 : net.arch.drop_path;
  const Dim padded(w.height * w.width), all(net.B.n() * w.count());
  const Tensor shortcut = std::move(hidden);
  Tensor h = net.layer_norm("layernorm_before", shortcut);
  h = pad(std::move(h), 1, padded.n() - net.S.n());
  Tensor cut = w.shifted ? roll(h) : h;
  cut = rearranged(std::move(cut), Shape{all, w.area(), net.H});
  const Tensor mask = shift_mask(net, w, h.dtype());
  Tensor attended = attention_block(net, cut, w, mask);
  attended = dropout(std::move(attended), net.arch.residual_dropout);
  Tensor whole = rearranged(attended, Shape{net.B, padded, net.H});
  if (w.shifted) whole = roll(std::move(whole));
  if (padded.n() != net.S.n()) whole = contiguous(narrow(std::move(whole), 1, 0, net.S));
  h = add(shortcut, drop_path(net, whole, rate));
  const Tensor residual = h;
  h = net.layer_norm("layernorm_after", std::move(h));
  h = mlp(net, std::move(h));
  h = dropout(std::move(h), net.arch.residual_dropout);
  return add(std::move(h), residual);
}

// Four neighbours beside each other, through a matrix: half as high and wide, twice as many columns.
Tensor merged(Net& stage, const StageNames& names, const Tensor& hidden, Dim height, Dim width) {
  Scope in(stage.tape, "downsample", kMerging);
  const Dim down((height.n() + 1) / 2), right((width.n() + 1) / 2), wide(4 * stage.H.n());
  Tensor picture = view(hidden, Shape{stage.B, height, width, stage.H});
  std::vector<Tensor> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(narrow(narrow(picture, 1, 0, down), 2, 0, right));
  Tensor x = view(cat(parts, -1), Shape{stage.B, Dim(down.n() * right.n()), wide});
  parts.clear();
  x = stage.layer_norm(names.norm, std::move(x));
  return stage.linear(names.reduction, std::move(x), Dim(2 * stage.H.n()));
}

void inputs(Net& net) {
  picture_batch(net, Dim(1));
}

Tensor forward(Net& net) {
  const PictureSize size = own_picture_size(net);
  Dim height(size.height / net.arch.patch_size), width(size.width / net.arch.patch_size);
  Tensor hidden, reshaped;
  for (std::size_t i = 0; i < net.arch.parts.size(); ++i) {
    Net& stage = net.part(net.arch.parts[i], net.B, Dim(height.n() * width.n()));
    stage.shared.position_ids = net.tape.part_of_buffer(Shape{height, width}, Dtype::kInt64);
    if (i == 0) {
      Scope in(net.tape, "swin.embeddings", kEmbeddings);
      hidden = patch_embedding(stage, "swin.embeddings.patch_embeddings.projection", net.input_ids, true);
      hidden = stage.layer_norm("swin.embeddings.norm", std::move(hidden));
      hidden = dropout(std::move(hidden), net.arch.residual_dropout);
      net.model_locals = {hidden};
    }
    hidden = stage.layers({kNames[i].blocks, stage.arch.num_layers, layer}, std::move(hidden));
    const Tensor before = hidden;
    if (i + 1 < net.arch.parts.size()) {
      hidden = merged(stage, kNames[i], before, height, width);
      height = Dim((height.n() + 1) / 2);
      width = Dim((width.n() + 1) / 2);
    }
    reshaped = roll(hidden);  // get_reshaped_hidden_states
  }
  reshaped.reset();
  Tensor out = net.layer_norm("swin.layernorm", std::move(hidden));
  net.leaves.push_back(out);
  return mean_over(std::move(out), 1);
}

Outputs image_classification(Net& net, const Program&, Tensor pooled) {
  Scope in(net.tape, "", kHead);
  return pooled_classes(net, "classifier", std::move(pooled));
}

constexpr HeadForward kHeads[] = {{Head::kImageClassification, image_classification}};
constexpr ClassSuffix kClasses[] = {{"ForImageClassification", Head::kImageClassification}};

// modeling_swin.py SwinStage and SwinLayer are both GradientCheckpointingLayer, and the recorder runs it: a stage that
// is computed again puts its layers under checkpoints of their own once more. The tape has no frames within frames.
void check(const Architecture&, const TrainingJob& job, Issues& issues) {
  if (job.checkpointing == Checkpointing::kNone) return;
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/gradient_checkpointing",
                    "Swin checkpoints its stages and, within them, their layers; that is not modelled. Use \"none\".",
                    "none"});
}

const Program kProgram = {.forward = forward, .heads = kHeads, .inputs = inputs, .attention = kNoFlash, .check = check};

constexpr ClassFacts kFacts = {.flex_attention = false, .text_input = false, .no_split = NoSplit::kOtherParts};

}  // namespace

const Family kRows[] = {
    {"swin", "Swin", "SwinForImageClassification", kClasses, read_config, &kProgram, "swin.encoder.layers.0.blocks",
     kFacts},
};

extern const FamilyRows swin_rows;
const FamilyRows swin_rows = kRows;

}  // namespace tidemark
