// DPT: a ViT of which four layers' states become pictures of several sizes, which convolutions fuse, and whose pixels
// are classified.
#include <algorithm>

#include "core/families/family.hpp"
#include "core/families/stages.hpp"
#include "core/families/towers.hpp"
#include "core/families/vit.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/ops/convolution.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

// Up to how much a picture of patches grows, or shrinks where negative, as `reassemble_factors` says it.
std::vector<Count> read_factors(ConfigFields& fields) {
  std::vector<Count> factors = {4, 2, 1, -2};
  const Value* given = fields.find({"reassemble_factors"});
  if (given == nullptr || !given->is_array()) return factors;
  factors.clear();
  for (const Value& item : given->items) {
    const double factor = item.is_number() ? item.is_integer() ? static_cast<double>(item.integer) : item.real : 0.0;
    constexpr double kMost = 16.0;
    if (!(factor >= 1.0 / kMost && factor <= kMost)) {
      fields.error("INVALID_VALUE", "reassemble_factors", "These are numbers from 1/16 to 16.");
      return {};
    }
    factors.push_back(factor >= 1.0 ? static_cast<Count>(factor) : -static_cast<Count>(1.0 / factor));
  }
  return factors;
}

// transformers 5.24 models/dpt/configuration_dpt.py: DPTConfig. `conv_dims`: channels of each picture; `conv_strides`:
// its factor; `pooler_size`: channels that all are fused with.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_vit_layers(fields, architecture);
  architecture.image_size = square_side(fields, "image_size", 384);
  architecture.patch_size = fields.count({"patch_size"}, 16);
  architecture.num_channels = fields.count({"num_channels"}, 3);
  const Count side = architecture.image_size / architecture.patch_size;
  if (side == 0) fields.error("INVALID_VALUE", "patch_size", "A patch is larger than the image.");
  architecture.max_positions = side * side + 1;
  architecture.conv_dims = read_counts(fields, "neck_hidden_sizes", {96, 192, 384, 768});
  architecture.conv_strides = read_factors(fields);
  architecture.pictures.layers = read_counts(fields, "backbone_out_indices", {2, 5, 8, 11});
  architecture.pooler_size = fields.count({"fusion_hidden_size"}, 256);
  architecture.classifier_dropout = fields.probability({"semantic_classifier_dropout"}, 0.1);
  architecture.qk_norm = fields.flag({"use_batch_norm_in_fusion_residual"}, false);
  architecture.conv_bias = fields.flag({"use_bias_in_fusion_residual"}, !architecture.qk_norm);
  if (fields.text({"readout_type"}, "project") != "project") {
    fields.error("INVALID_VALUE", "readout_type", "\"project\" is modelled: no record covers the other readouts.");
  }
  if (fields.flag({"is_hybrid"}, false) || fields.has({"backbone_config"}) || fields.has({"backbone"})) {
    fields.error("INVALID_VALUE", "is_hybrid", "DPT is modelled on its own ViT: other backbones are not.");
  }
  if (!fields.flag({"use_auxiliary_head"}, true)) {
    fields.error("INVALID_VALUE", "use_auxiliary_head", "Without its second head the class's loss raises an error.");
  }
  if (fields.number({"head_in_index"}, -1.0) != -1.0) {
    fields.error("INVALID_VALUE", "head_in_index", "The head is modelled on the last picture (-1).");
  }
  const std::vector<Count>& layers = architecture.pictures.layers;
  architecture.layer_kinds.assign(static_cast<std::size_t>(architecture.num_layers), 0);
  bool fits = architecture.conv_dims.size() == kMostStages && architecture.conv_strides.size() == kMostStages &&
              layers.size() == kMostStages;
  for (std::size_t i = 0; fits && i < layers.size(); ++i) {
    fits = layers[i] < architecture.num_layers && (i == 0 || layers[i] > layers[i - 1]);
    if (fits) architecture.layer_kinds[static_cast<std::size_t>(layers[i])] = static_cast<std::uint8_t>(i + 1);
  }
  if (!fits) {
    architecture.conv_dims.resize(kMostStages, 1);
    architecture.conv_strides.resize(kMostStages, 1);
  }
  if (!fits && fields.has({"num_hidden_layers"})) {
    fields.error("INVALID_VALUE", "backbone_out_indices",
                 "Four layers of the model, in order, with as many neck_hidden_sizes and reassemble_factors are "
                 "modelled.");
  }
  fields.accept({"auxiliary_loss_weight", "semantic_loss_ignore_index", "backbone_featmap_shape", "neck_ignore_stages",
                 "add_projection", "pooler_output_size", "pooler_act", "use_pretrained_backbone", "use_timm_backbone",
                 "backbone_kwargs"});
}

constexpr const char* kEmbeddings = "transformers 5.24 models/dpt/modeling_dpt.py: DPTViTEmbeddings.forward";
constexpr const char* kReassemble = "transformers 5.24 models/dpt/modeling_dpt.py: DPTReassembleStage.forward";
constexpr const char* kNeck = "transformers 5.24 models/dpt/modeling_dpt.py: DPTNeck.forward";
constexpr const char* kFusion = "transformers 5.24 models/dpt/modeling_dpt.py: DPTFeatureFusionLayer.forward";
constexpr const char* kResidual = "transformers 5.24 models/dpt/modeling_dpt.py: DPTPreActResidualLayer.forward";
constexpr const char* kHead = "transformers 5.24 models/dpt/modeling_dpt.py: DPTForSemanticSegmentation.forward";
constexpr const char* kModule = "dpt.embeddings";

/// A residual unit's modules.
struct UnitNames {
  const char *first, *second, *first_norm, *second_norm;
};
/// Those of a picture, and of the layer that fuses it.
struct Names {
  const char *readout, *projection, *resize, *convolution, *fusion;
  UnitNames units[2];
};
#define TIDEMARK_UNIT(i, unit)                                                                                       \
  {                                                                                                                  \
    "neck.fusion_stage.layers." i "." unit ".convolution1", "neck.fusion_stage.layers." i "." unit ".convolution2",  \
        "neck.fusion_stage.layers." i "." unit ".batch_norm1", "neck.fusion_stage.layers." i "." unit ".batch_norm2" \
  }
#define TIDEMARK_NAMES(i)                                                                                            \
  {                                                                                                                  \
    "neck.reassemble_stage.readout_projects." i ".0", "neck.reassemble_stage.layers." i ".projection",               \
        "neck.reassemble_stage.layers." i ".resize", "neck.convs." i, "neck.fusion_stage.layers." i ".projection", { \
      TIDEMARK_UNIT(i, "residual_layer1"), TIDEMARK_UNIT(i, "residual_layer2")                                       \
    }                                                                                                                \
  }
constexpr Names kNames[kMostStages] = {TIDEMARK_NAMES("0"), TIDEMARK_NAMES("1"), TIDEMARK_NAMES("2"),
                                       TIDEMARK_NAMES("3")};
#undef TIDEMARK_NAMES
#undef TIDEMARK_UNIT

Count side_of(const Net& net) {
  return own_picture_size(net).height / net.arch.patch_size;
}

void inputs(Net& net) {
  const Count side = side_of(net);
  picture_batch(net, Dim(side * side + 1));
  const Dim pixels(own_picture_size(net).height);
  net.labels = net.tape.allocate(Shape{net.B, pixels, pixels}, Dtype::kInt64, "labels");
}

Tensor embed(Net& net) {
  Scope in(net.tape, kModule, kEmbeddings);
  const Dim one(1), rows(net.arch.image_size / net.arch.patch_size), side(side_of(net));
  Tensor token = net.parameter(kModule, "cls_token", Shape{one, one, net.H});
  const Tensor table = net.parameter(kModule, "position_embeddings", Shape{one, Dim(net.arch.max_positions), net.H});
  Tensor positions;
  {
    const Tensor first = narrow(table, 1, 0, one);
    Tensor grid = narrow(table, 1, 1, Dim(rows.n() * rows.n()));
    grid = permute(view(std::move(grid), Shape{one, rows, rows, net.H}), {0, 3, 1, 2});
    grid = interpolate(std::move(grid), Shape{one, net.H, side, side});
    grid = view(std::move(grid), Shape{one, Dim(side.n() * side.n()), net.H});  // channels last, as the table is
    positions = cat({&first, &grid}, 1);
  }
  Tensor h = patch_embedding(net, "dpt.embeddings.patch_embeddings.projection", net.input_ids, true);
  token = expand(std::move(token), Shape{net.B, one, net.H});
  h = cat({&token, &h}, 1);
  h = add(std::move(h), std::move(positions));
  return dropout(std::move(h), net.arch.embedding_dropout);
}

// All hidden states are among the outputs; four of them are read.
Tensor forward(Net& net) {
  Tensor hidden = embed(net);
  const Tensor embedded = hidden;
  Stack stack{net.arch.layers_path, net.arch.num_layers, videomae_layer, true, Phase::kLoss};
  stack.after = keep_hidden;
  hidden = net.layers(stack, std::move(hidden));
  net.leaves = std::move(net.model_locals);
  net.model_locals.clear();
  net.leaves.push_back(embedded);
  return net.layer_norm("dpt.layernorm", std::move(hidden));
}

// nn.Conv2d; a stride of one leaves the sides as they are.
Tensor convolved(Net& net, const char* name, Tensor x, Dim out, Count kernel, Count stride, bool bias) {
  Scope in(net.tape, name, net.source());
  const auto side = [&](int dim) { return Dim((x.size(dim) + 2 * (kernel / 2) - kernel) / stride + 1); };
  const Dim height = side(2), width = side(3);
  const Tensor weight = net.parameter(name, "weight", Shape{out, x.dim(1), Dim(kernel), Dim(kernel)});
  Tensor shift;
  if (bias) shift = net.parameter(name, "bias", Shape{out});
  return convolution(std::move(x), weight, std::move(shift), {height, width});
}

// A layer's states as a picture of its own size.
Tensor reassembled(Net& net, std::size_t i, const Tensor& hidden) {
  Scope in(net.tape, "neck.reassemble_stage", kReassemble);
  const Dim side(side_of(net)), patches(side.n() * side.n());
  const Shape picture{net.B, net.H, side, side}, rows{net.B, patches, net.H};
  const Tensor token = select(hidden, 1);
  Tensor h = view(narrow(hidden, 1, 1, patches), Shape{net.B, side, side, net.H});
  h = contiguous(permute(std::move(h), {0, 3, 1, 2}));
  h = permute(view(std::move(h), Shape{net.B, net.H, patches}), {0, 2, 1});
  const Tensor readout = expand(unsqueeze(token, 1), rows);
  {
    Tensor both = cat({&h, &readout}, -1);
    Tensor projected = net.linear(kNames[i].readout, std::move(both), net.H, true);
    h = activate(net.arch.activation, std::move(projected));
  }
  h = reshape(permute(std::move(h), {0, 2, 1}), picture);
  const Dim channels(net.arch.conv_dims[i]);
  h = convolved(net, kNames[i].projection, std::move(h), channels, 1, 1, true);
  const Count factor = net.arch.conv_strides[i];
  if (factor < 0) return convolved(net, kNames[i].resize, std::move(h), channels, 3, -factor, true);
  if (factor == 1) return h;
  Scope resize(net.tape, kNames[i].resize, kReassemble);  // nn.ConvTranspose2d whose stride is its kernel
  const Dim kernel(factor), wide(side.n() * factor);
  const Tensor weight = net.parameter(kNames[i].resize, "weight", Shape{channels, channels, kernel, kernel});
  Tensor shift = net.parameter(kNames[i].resize, "bias", Shape{channels});
  return convolution(std::move(h), weight, std::move(shift), {wide, wide});
}

Tensor unit(Net& net, const UnitNames& names, Tensor hidden) {
  Scope in(net.tape, "", kResidual);
  const Tensor residual = std::move(hidden);
  const Dim channels = residual.dim(1);
  Tensor h = relu(residual);
  h = convolved(net, names.first, std::move(h), channels, 3, 1, net.arch.conv_bias);
  if (net.arch.qk_norm) h = net.batch_norm(names.first_norm, std::move(h));
  h = relu(std::move(h));
  h = convolved(net, names.second, std::move(h), channels, 3, 1, net.arch.conv_bias);
  if (net.arch.qk_norm) h = net.batch_norm(names.second_norm, std::move(h));
  return add(std::move(h), residual);
}

// The first layer's first unit is there, and never runs.
void declare_unit(Net& net, const UnitNames& names) {
  const Declared declared(net, true);
  const Dim channels(net.arch.pooler_size), one(1);
  const Tensor nothing = net.tape.allocate(Shape{one, channels, one, one}, net.weight_dtype(4), "nothing");
  const Tensor unread = unit(net, names, nothing);
}

Tensor fused(Net& net, const Names& names, Tensor hidden, Tensor feature) {
  Scope in(net.tape, "", kFusion);
  if (feature.defined()) {
    const Shape& wanted = hidden.shape();
    if (feature.size(2) != wanted.size(2)) {
      const Shape size{net.B, feature.dim(1), wanted.dim(2), wanted.dim(3)};
      feature = interpolate(std::move(feature), size);
    }
    Tensor more = unit(net, names.units[0], feature);
    hidden = add(std::move(hidden), std::move(more));
  } else {
    declare_unit(net, names.units[0]);
  }
  hidden = unit(net, names.units[1], std::move(hidden));
  const Shape twice{net.B, hidden.dim(1), Dim(2 * hidden.size(2)), Dim(2 * hidden.size(3))};
  hidden = interpolate(std::move(hidden), twice);
  return convolved(net, names.fusion, std::move(hidden), twice.dim(1), 1, 1, true);
}

// The last of the fused pictures; `all` of them have a name until the head returns.
void neck(Net& net, std::vector<Tensor>& all) {
  Scope in(net.tape, "neck", kNeck);
  std::vector<Tensor> pictures, features;
  for (std::size_t i = 0; i < kMostStages; ++i) pictures.push_back(reassembled(net, i, net.leaves[i]));
  const Dim channels(net.arch.pooler_size);
  for (std::size_t i = 0; i < kMostStages; ++i) {
    features.push_back(convolved(net, kNames[i].convolution, pictures[i], channels, 3, 1, false));
  }
  for (std::size_t i = 0; i < kMostStages; ++i) {
    const Tensor& feature = features[kMostStages - 1 - i];
    Tensor next = i == 0 ? fused(net, kNames[i], feature, {}) : fused(net, kNames[i], all.back(), feature);
    all.push_back(std::move(next));
  }
}

/// Modules of a head: nn.Sequential.
struct HeadNames {
  const char *convolution, *norm, *classifier;
};
constexpr HeadNames kMain = {"head.head.0", "head.head.1", "head.head.4"};
constexpr HeadNames kSecond = {"auxiliary_head.head.0", "auxiliary_head.head.1", "auxiliary_head.head.4"};

Tensor classes(Net& net, const HeadNames& names, const Tensor& picture, double rate) {
  Tensor h = convolved(net, names.convolution, picture, picture.dim(1), 3, 1, false);
  h = net.batch_norm(names.norm, std::move(h));
  h = relu(std::move(h));
  h = dropout(std::move(h), rate);
  return convolved(net, names.classifier, std::move(h), Dim(net.arch.num_labels), 1, 1, true);
}

Outputs segmentation(Net& net, const Program&, Tensor hidden_in) {
  Scope in(net.tape, "", kHead);
  const Tensor hidden = std::move(hidden_in);
  constexpr double kDropout = 0.1;  // of DPTAuxiliaryHead
  std::vector<Tensor> pictures;
  neck(net, pictures);
  Tensor logits = classes(net, kMain, pictures.back(), net.arch.classifier_dropout);
  const Shape twice{net.B, logits.dim(1), Dim(2 * logits.size(2)), Dim(2 * logits.size(3))};
  logits = interpolate(std::move(logits), twice);
  const Tensor second = classes(net, kSecond, pictures.back(), kDropout);
  const Dim pixels(net.labels.numel());
  const Shape full{net.B, logits.dim(1), net.labels.dim(1), net.labels.dim(2)}, rows{pixels, logits.dim(1)};
  const Tensor upsampled = interpolate(logits, full);
  const Tensor upsampled_second = interpolate(second, full);
  const Tensor labels = view(net.labels, Shape{pixels});
  Tensor loss = cross_entropy(view(upsampled, rows), labels);
  Tensor more = cross_entropy(view(upsampled_second, rows), labels);
  more = mul_scalar(std::move(more));
  Outputs out;
  out.loss = add(std::move(loss), std::move(more));
  out.rest = {std::move(logits)};
  net.leaves.clear();
  net.let_handed_out_go();
  return out;
}

void check(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  if (job.image_height != job.image_width) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/image_size",
                      "DPT's neck takes the square root of a picture's patches for its side: only squares run.",
                      std::to_string(architecture.image_size)});
  }
}

// DPTForDepthEstimation raises an error where it is given labels.
constexpr HeadForward kHeads[] = {{Head::kTokenClassification, segmentation}};
constexpr ClassSuffix kClasses[] = {{"ForSemanticSegmentation", Head::kTokenClassification}};

const Program kProgram = {.forward = forward, .heads = kHeads, .inputs = inputs, .check = check};

constexpr ClassFacts kFacts = {.text_input = false, .no_split = NoSplit::kNone};

}  // namespace

const Family kRows[] = {
    {"dpt", "DPT", "DPTForSemanticSegmentation", kClasses, read_config, &kProgram, "dpt.encoder.layer", kFacts},
};

extern const FamilyRows dpt_rows;
const FamilyRows dpt_rows = kRows;

}  // namespace tidemark
