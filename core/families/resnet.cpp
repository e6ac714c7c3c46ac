// ResNet: convolutions with batch norms, each stage half as wide a picture as the one before.
#include <string>

#include "core/families/family.hpp"
#include "core/families/no_attention.hpp"
#include "core/families/stages.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/ops/convolution.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {

// transformers 5.12.1 models/resnet/configuration_resnet.py: ResNetConfig.
void read_resnet(ConfigFields& fields, Architecture& architecture) {
  architecture.positions_by_token = false;
  architecture.num_channels = fields.count({"num_channels"}, 3);
  architecture.image_size = 224;  // the file does not say: the processor's
  architecture.embedding_dim = fields.count({"embedding_size"}, 64);
  architecture.activation = read_activation(fields, {"hidden_act"}, "relu");
  architecture.gated_mlp = fields.text({"layer_type"}, "bottleneck") == "bottleneck";
  architecture.norm_before = fields.flag({"downsample_in_bottleneck"}, false);
  architecture.parallel_residual = fields.flag({"downsample_in_first_stage"}, false);
  const std::vector<Count> widths = read_counts(fields, "hidden_sizes", {256, 512, 1024, 2048});
  const std::vector<Count> depths = read_counts(fields, "depths", {3, 4, 6, 3});
  constexpr Count kReduction = 4;  // ResNetBottleNeckLayer: of its inner width
  for (const Count width : widths) {
    if (width >= kReduction || !architecture.gated_mlp) continue;
    fields.error("INVALID_VALUE", "hidden_sizes", "A bottleneck's inner width is a fourth of these: 4 is the least.");
  }
  make_stages(fields, architecture, widths, depths);
}

namespace {

constexpr const char* kStem = "transformers 5.12 models/resnet/modeling_resnet.py: ResNetEmbeddings.forward";
constexpr const char* kLayer = "transformers 5.12 models/resnet/modeling_resnet.py: ResNetConvLayer.forward";
constexpr const char* kHead =
    "transformers 5.12 models/resnet/modeling_resnet.py: ResNetForImageClassification.forward";
constexpr const char* kPaths[kMostStages] = {"resnet.encoder.stages.0.layers", "resnet.encoder.stages.1.layers",
                                             "resnet.encoder.stages.2.layers", "resnet.encoder.stages.3.layers"};

/// Where a convolution and its norm have their weights.
struct ConvNames {
  const char *convolution, *norm;
};
constexpr ConvNames kStemNames = {"resnet.embedder.embedder.convolution", "resnet.embedder.embedder.normalization"};
constexpr ConvNames kShortcut = {"shortcut.convolution", "shortcut.normalization"};
constexpr ConvNames kInner[] = {{"layer.0.convolution", "layer.0.normalization"},
                                {"layer.1.convolution", "layer.1.normalization"},
                                {"layer.2.convolution", "layer.2.normalization"}};

// Its input is a name of its caller's until it returns.
Tensor convolved(Net& net, const ConvNames& names, const Tensor& input, Count out, Count kernel, Count stride,
                 bool activates = false) {
  const auto side = [&](int dim) { return Dim((input.size(dim) + 2 * (kernel / 2) - kernel) / stride + 1); };
  const Dim height = side(2), width = side(3), size(kernel);
  Tensor x;
  {
    Scope in(net.tape, names.convolution, kLayer);
    Tensor weight = net.parameter(names.convolution, "weight", Shape{Dim(out), input.dim(1), size, size});
    x = convolution(input, std::move(weight), {}, {height, width});
  }
  x = net.batch_norm(names.norm, std::move(x));
  return activates ? activate(net.arch.activation, std::move(x)) : x;
}

Tensor layer(Net& net, Tensor hidden) {
  const Architecture& stage = net.arch;
  const bool first = net.layer_index == 0, bottleneck = stage.gated_mlp;
  const Count out = stage.hidden_size, stride = first ? stage.encoder_stride : 1;
  Tensor residual = std::move(hidden);
  Tensor h = residual;
  if (bottleneck) {
    const bool early = stage.norm_before;
    h = convolved(net, kInner[0], h, out / 4, 1, early ? stride : 1, true);
    h = convolved(net, kInner[1], h, out / 4, 3, early ? 1 : stride, true);
    h = convolved(net, kInner[2], h, out, 1, 1);
  } else {
    h = convolved(net, kInner[0], h, out, 3, stride, true);
    h = convolved(net, kInner[1], h, out, 3, 1);
  }
  if (residual.size(1) != out || stride != 1) residual = convolved(net, kShortcut, residual, out, 1, stride);
  h = add_in_place(std::move(h), std::move(residual));
  return activate(stage.activation, std::move(h));
}

void inputs(Net& net) {
  picture_batch(net, Dim(1));
}

Tensor forward(Net& net) {
  Tensor hidden;
  {
    Scope in(net.tape, "resnet.embedder", kStem);
    hidden = convolved(net, kStemNames, net.input_ids, net.arch.embedding_dim, 7, 2, true);
    const Dim height((hidden.size(2) - 1) / 2 + 1), width((hidden.size(3) - 1) / 2 + 1);
    hidden = max_pool(std::move(hidden), height, width);
  }
  const Tensor embedding_output = hidden;  // names of forwards, each until it returns
  for (std::size_t i = 0; i < net.arch.parts.size(); ++i) {
    Net& stage = net.part(net.arch.parts[i], net.B, Dim(1));
    const Tensor input = hidden;
    hidden = stage.layers({kPaths[i], stage.arch.num_layers, layer}, std::move(hidden));
  }
  const Dim channels = hidden.dim(1), pixels(hidden.size(2) * hidden.size(3));
  net.leaves.push_back(hidden);
  return mean_over(view(std::move(hidden), Shape{net.B, channels, pixels}), 2);
}

Outputs image_classification(Net& net, const Program&, Tensor pooled) {
  Scope in(net.tape, "", kHead);
  return pooled_classes(net, "classifier.1", std::move(pooled));
}

constexpr HeadForward kHeads[] = {{Head::kImageClassification, image_classification}};
constexpr ClassSuffix kClasses[] = {{"ForImageClassification", Head::kImageClassification}};

const Program kProgram = {
    .forward = forward, .heads = kHeads, .inputs = inputs, .attention = kNoAttention, .checkpoints = false};

constexpr ClassFacts kFacts = {.flex_attention = false, .text_input = false, .input_embeddings = false};

}  // namespace

const Family kRows[] = {
    {"resnet", "ResNet", "ResNetForImageClassification", kClasses, read_resnet, &kProgram,
     "resnet.encoder.stages.0.layers", kFacts},
};

extern const FamilyRows resnet_rows;
const FamilyRows resnet_rows = kRows;

}  // namespace tidemark
