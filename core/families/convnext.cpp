// ConvNeXt: stages of depthwise convolutions, each before a feed-forward over the channels. Its second version has a
// norm of whole pictures within that in place of a scale behind it.
#include "core/families/family.hpp"
#include "core/families/no_attention.hpp"
#include "core/families/stages.hpp"
#include "core/families/towers.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/ops/convolution.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/convnext/configuration_convnext.py: ConvNextConfig. A part per stage.
void read_config(ConfigFields& fields, Architecture& architecture) {
  architecture.positions_by_token = false;
  architecture.num_channels = fields.count({"num_channels"}, 3);
  architecture.image_size = square_side(fields, "image_size", 224);
  architecture.patch_size = square_side(fields, "patch_size", 4);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  architecture.drop_path = fields.probability({"drop_path_rate"}, 0.0);
  architecture.residual_scale = fields.number({"layer_scale_init_value"}, 1e-6) > 0.0;
  make_stages(fields, architecture, read_counts(fields, "hidden_sizes", {96, 192, 384, 768}),
              read_counts(fields, "depths", {3, 3, 9, 3}));
  fields.accept({"num_stages", "stage_names", "out_features", "out_indices"});
  // Only the model's first layer leaves no branch out.
  for (std::size_t i = 1; i < architecture.parts.size(); ++i) architecture.parts[i].layer_kinds.front() = 0;
}

// transformers 5.12.1 models/convnextv2/configuration_convnextv2.py: ConvNextV2Config.
void read_v2_config(ConfigFields& fields, Architecture& architecture) {
  read_config(fields, architecture);
  architecture.residual_scale = false;
  for (Architecture& stage : architecture.parts) stage.residual_scale = false;
}

constexpr const char* kStem = "transformers 5.12 models/convnext/modeling_convnext.py: ConvNextEmbeddings.forward";
constexpr const char* kStage = "transformers 5.12 models/convnext/modeling_convnext.py: ConvNextStage.forward";
constexpr const char* kLayer = "transformers 5.12 models/convnext/modeling_convnext.py: ConvNextLayer.forward";
constexpr const char* kGrn = "transformers 5.12 models/convnextv2/modeling_convnextv2.py: ConvNextV2GRN.forward";
constexpr const char* kHead = "transformers 5.12 models/convnext/modeling_convnext.py: ConvNextModel.forward";

/// Where a stage has its layers, and what halves the picture before them.
struct StageNames {
  const char *layers, *norm, *convolution;
};
/// What a version's modules are called.
struct Names {
  const char *embeddings, *patches, *stem_norm, *norm;
  StageNames stages[kMostStages];
};
constexpr Names kFirst = {"convnext.embeddings",
                          "convnext.embeddings.patch_embeddings",
                          "convnext.embeddings.layernorm",
                          "convnext.layernorm",
                          {{"convnext.encoder.stages.0.layers", "", ""},
                           {"convnext.encoder.stages.1.layers", "convnext.encoder.stages.1.downsampling_layer.0",
                            "convnext.encoder.stages.1.downsampling_layer.1"},
                           {"convnext.encoder.stages.2.layers", "convnext.encoder.stages.2.downsampling_layer.0",
                            "convnext.encoder.stages.2.downsampling_layer.1"},
                           {"convnext.encoder.stages.3.layers", "convnext.encoder.stages.3.downsampling_layer.0",
                            "convnext.encoder.stages.3.downsampling_layer.1"}}};
constexpr Names kSecond = {"convnextv2.embeddings",
                           "convnextv2.embeddings.patch_embeddings",
                           "convnextv2.embeddings.layernorm",
                           "convnextv2.layernorm",
                           {{"convnextv2.encoder.stages.0.layers", "", ""},
                            {"convnextv2.encoder.stages.1.layers", "convnextv2.encoder.stages.1.downsampling_layer.0",
                             "convnextv2.encoder.stages.1.downsampling_layer.1"},
                            {"convnextv2.encoder.stages.2.layers", "convnextv2.encoder.stages.2.downsampling_layer.0",
                             "convnextv2.encoder.stages.2.downsampling_layer.1"},
                            {"convnextv2.encoder.stages.3.layers", "convnextv2.encoder.stages.3.downsampling_layer.0",
                             "convnextv2.encoder.stages.3.downsampling_layer.1"}}};

bool is_second(const Net& net) {
  return net.arch.model_type == "convnextv2";
}

const Names& names_of(const Net& net) {
  return is_second(net) ? kSecond : kFirst;
}

// Behind the stem all pictures lie with their channels last in memory, so that a permutation costs nothing: here they
// are [n, h, w, channels] where the modelling file says [n, channels, h, w] too.

// nn.Conv2d with a bias, of `groups` of channels.
Tensor convolved(Net& net, const char* name, Tensor x, Dim out, Dim in, Count kernel, Count stride) {
  Scope scope(net.tape, name, net.source());
  const Count edge = stride == 1 ? kernel / 2 * 2 : 0;
  const Dim height((x.size(2) + edge - kernel) / stride + 1), width((x.size(3) + edge - kernel) / stride + 1);
  Tensor weight = net.parameter(name, "weight", Shape{out, in, Dim(kernel), Dim(kernel)});
  return convolution(std::move(x), std::move(weight), net.parameter(name, "bias", Shape{out}), {height, width});
}

// weight * (hidden_states * norm_features) + bias + hidden_states
Tensor response_norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "grn", kGrn);
  const Tensor x = std::move(hidden);
  const Dim channels = x.dim(3);
  const Shape row{Dim(1), Dim(1), Dim(1), channels};
  const Tensor features = vector_norm(x, Shape{x.dim(0), Dim(1), Dim(1), channels});
  const Tensor normed = div(features, add_scalar(mean_last(features)));
  Tensor h = mul(net.parameter("grn", "weight", row), mul(x, normed));
  h = add(std::move(h), net.parameter("grn", "bias", row));
  return add(std::move(h), x);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor residual = std::move(hidden);
  Tensor h = convolved(net, "dwconv", residual, net.H, Dim(1), 7, 1);
  h = channels_last(std::move(h));
  h = net.layer_norm("layernorm", std::move(h));
  h = net.linear("pwconv1", std::move(h), Dim(4 * net.H.n()), true);
  h = activate(net.arch.activation, std::move(h));
  if (is_second(net)) h = response_norm(net, std::move(h));
  h = net.linear("pwconv2", std::move(h), net.H, true);
  if (net.arch.residual_scale) h = mul(net.parameter("", "layer_scale_parameter", Shape{net.H}), std::move(h));
  h = channels_first(std::move(h));
  const bool first = net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == 1;
  if (!first) h = drop_path(net, std::move(h), net.arch.drop_path);
  return add(residual, std::move(h));
}

void inputs(Net& net) {
  picture_batch(net, Dim(1));
}

Tensor stem(Net& net) {
  const Names& names = names_of(net);
  Scope in(net.tape, names.embeddings, kStem);
  const Dim width(net.arch.parts.front().hidden_size);
  const Count side = net.arch.patch_size;
  Tensor h = convolved(net, names.patches, net.input_ids, width, Dim(net.arch.num_channels), side, side);
  h = net.layer_norm(names.stem_norm, permute(std::move(h), {0, 2, 3, 1}));
  return channels_first(std::move(h));
}

Tensor forward(Net& net) {
  Tensor hidden = stem(net);
  net.model_locals = {hidden};
  for (std::size_t i = 0; i < net.arch.parts.size(); ++i) {
    Net& stage = net.part(net.arch.parts[i], net.B, Dim(1));
    const StageNames& names = names_of(net).stages[i];
    if (i > 0) {
      Scope in(net.tape, names.norm, kStage);
      const Dim before = hidden.dim(1);
      hidden = channels_last(std::move(hidden));
      hidden = net.layer_norm(names.norm, std::move(hidden));
      hidden = channels_first(std::move(hidden));
      hidden = convolved(net, names.convolution, std::move(hidden), stage.H, before, 2, 2);
    }
    hidden = stage.layers({names.layers, stage.arch.num_layers, layer, false}, std::move(hidden));
  }
  Scope in(net.tape, "", kHead);
  net.leaves.push_back(hidden);
  const Dim channels = hidden.dim(1), pixels(hidden.size(2) * hidden.size(3));
  Tensor pooled = mean_over(view(std::move(hidden), Shape{net.B, channels, pixels}), 2);
  return net.layer_norm(names_of(net).norm, std::move(pooled));
}

Outputs image_classification(Net& net, const Program&, Tensor pooled) {
  return pooled_classes(net, "classifier", std::move(pooled));
}

constexpr HeadForward kHeads[] = {{Head::kImageClassification, image_classification}};
constexpr ClassSuffix kClasses[] = {{"ForImageClassification", Head::kImageClassification}};

const Program kProgram = {
    .forward = forward, .heads = kHeads, .inputs = inputs, .attention = kNoAttention, .checkpoints = false};

constexpr ClassFacts kFacts = {.flex_attention = false, .text_input = false, .input_embeddings = false};
constexpr ClassFacts kStagesFacts = {
    .flex_attention = false, .text_input = false, .input_embeddings = false, .no_split = NoSplit::kOtherParts};

}  // namespace

const Family kRows[] = {
    {"convnext", "ConvNext", "ConvNextForImageClassification", kClasses, read_config, &kProgram,
     "convnext.encoder.stages.0.layers", kStagesFacts},
    {"convnextv2", "ConvNextV2", "ConvNextV2ForImageClassification", kClasses, read_v2_config, &kProgram,
     "convnextv2.encoder.stages.0.layers", kFacts},
};

extern const FamilyRows convnext_rows;
const FamilyRows convnext_rows = kRows;

}  // namespace tidemark
