// DETR: a frozen ResNet, an encoder over its last picture, and a decoder of learned queries that become boxes.
#include "core/families/detr.hpp"

#include "core/families/family.hpp"
#include "core/families/stages.hpp"
#include "core/families/towers.hpp"
#include "core/layers/vision.hpp"
#include "core/model/config_vocabulary.hpp"
#include "core/tape/ops/convolution.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

// The parts: the decoder, then the backbone, whose parts are its stages.
constexpr std::size_t kDecoder = 0, kBackbone = 1;

void read_backbone(ConfigFields& fields, Architecture& architecture) {
  const Value& given = required_object(fields, "backbone_config");
  if (given.members.empty()) return;
  const Value* type = given.find("model_type");
  if (type == nullptr || type->string != "resnet" || fields.flag({"use_timm_backbone"}, false)) {
    fields.error(
        "INVALID_VALUE", "backbone_config",
        "DETR is modelled with transformers' own ResNet as \"backbone_config\" alone: no record covers timm's.");
    return;
  }
  ConfigFields inner(given, fields.path() + "/backbone_config", fields.issues());
  Architecture part;
  read_resnet(inner, part);
  inner.accept({"model_type", "out_features", "out_indices", "num_labels"});
  architecture.parts.push_back(std::move(part));
}

// transformers 5.12.1 models/detr/configuration_detr.py: DetrConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  architecture.positions_by_token = false;
  architecture.num_channels = fields.count({"num_channels"}, 3);
  architecture.image_size = 800;  // the file does not say: the processor's shorter side
  architecture.hidden_size = fields.count({"d_model", "hidden_size"}, 256);
  architecture.num_layers = fields.count({"encoder_layers", "num_hidden_layers"}, 6);
  architecture.num_heads = architecture.num_kv_heads =
      fields.count({"encoder_attention_heads", "num_attention_heads"}, 8);
  derive_head_dim(fields, architecture);
  architecture.intermediate_size = fields.count({"encoder_ffn_dim"}, 2048);
  architecture.activation = read_activation(fields, {"activation_function"}, "relu");
  architecture.residual_dropout = fields.probability({"dropout"}, 0.1);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.activation_dropout = fields.probability({"activation_dropout"}, 0.0);
  architecture.num_decoder_layers = fields.count({"decoder_layers"}, 6);
  architecture.pictures.tokens = fields.count({"num_queries"}, 100);
  Architecture decoder = architecture;
  decoder.num_layers = architecture.num_decoder_layers;
  decoder.num_heads = decoder.num_kv_heads = fields.count({"decoder_attention_heads"}, 8);
  decoder.head_dim = decoder.hidden_size / decoder.num_heads;
  decoder.intermediate_size = fields.count({"decoder_ffn_dim"}, 2048);
  architecture.parts.push_back(std::move(decoder));
  read_backbone(fields, architecture);
  if (fields.flag({"auxiliary_loss"}, false) || fields.text({"position_embedding_type"}, "sine") != "sine") {
    fields.error("INVALID_VALUE", "auxiliary_loss", "Losses of all layers and learned positions are not modelled.");
  }
  fields.accept({"use_pretrained_backbone", "backbone", "backbone_kwargs", "dilation", "encoder_layerdrop",
                 "decoder_layerdrop", "init_std", "init_xavier_std", "class_cost", "bbox_cost", "giou_cost",
                 "mask_loss_coefficient", "dice_loss_coefficient", "bbox_loss_coefficient", "giou_loss_coefficient",
                 "eos_coefficient", "scale_embedding", "max_position_embeddings"});
}

constexpr const char* kModel = "transformers 5.12 models/detr/modeling_detr.py: DetrModel.forward";
constexpr const char* kNorm = "transformers 5.12 models/detr/modeling_detr.py: DetrFrozenBatchNorm2d.forward";
constexpr const char* kConvolutions = "transformers 5.12 models/resnet/modeling_resnet.py: ResNetConvLayer.forward";
constexpr const char* kPositions = "transformers 5.12 models/detr/modeling_detr.py: DetrSinePositionEmbedding.forward";
constexpr const char* kEncoderLayer = "transformers 5.12 models/detr/modeling_detr.py: DetrEncoderLayer.forward";
constexpr const char* kDecoderLayer = "transformers 5.12 models/detr/modeling_detr.py: DetrDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/detr/modeling_detr.py: DetrSelfAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/detr/modeling_detr.py: DetrMLP.forward";
constexpr const char* kHead = "transformers 5.12 models/detr/modeling_detr.py: DetrForObjectDetection.forward";
constexpr const char* kLoss = "transformers 5.12 loss/loss_for_object_detection.py: ImageLoss.forward";
constexpr const char* kPaths[kMostStages] = {
    "model.backbone.model.encoder.stages.0.layers", "model.backbone.model.encoder.stages.1.layers",
    "model.backbone.model.encoder.stages.2.layers", "model.backbone.model.encoder.stages.3.layers"};

// -- the backbone -----------------------------------------------------------------------------------------------------

/// Where a convolution and its norm have their weights.
struct ConvNames {
  const char *convolution, *norm;
};
constexpr ConvNames kStem = {"model.backbone.model.embedder.embedder.convolution",
                             "model.backbone.model.embedder.embedder.normalization"};
constexpr ConvNames kShortcut = {"shortcut.convolution", "shortcut.normalization"};
constexpr ConvNames kInner[] = {{"layer.0.convolution", "layer.0.normalization"},
                                {"layer.1.convolution", "layer.1.normalization"},
                                {"layer.2.convolution", "layer.2.normalization"}};

// Four buffers, in the dtype that the model is made in.
Tensor frozen_norm(Net& net, const char* name, const Tensor& x) {
  Scope in(net.tape, name, kNorm);
  const Dtype dtype = net.buffer_dtype(net.weight_dtype(1));
  const Shape one{Dim(1), x.dim(1), Dim(1), Dim(1)};
  for (const char* leaf : {"weight", "bias", "running_mean", "running_var"}) {
    net.tape.buffer(leaf, x.size(1) * size_of(dtype));
  }
  const Tensor part = net.tape.part_of_buffer(one, dtype);
  Tensor scale = add_scalar(part);
  scale = rsqrt(std::move(scale));
  scale = mul(part, std::move(scale));
  Tensor bias = mul(part, scale);
  bias = sub(part, std::move(bias));
  Tensor y = mul(x, scale);
  return add(std::move(y), std::move(bias));
}

// The class looks for "stage.1" in names that say "stages.1", and so freezes all of the backbone: nothing is kept for
// backward, and each module's caller holds its input until it returns (ResNet's own program lets go of it to the
// graph).
Tensor convolved(Net& net, const ConvNames& names, const Tensor& x, Count out, Count kernel, Count stride) {
  const auto side = [&](int dim) { return Dim((x.size(dim) + 2 * (kernel / 2) - kernel) / stride + 1); };
  const Dim height = side(2), width = side(3), size(kernel);
  Tensor h;
  {
    Scope in(net.tape, names.convolution, kConvolutions);
    Tensor weight = net.parameter(names.convolution, "weight", Shape{Dim(out), x.dim(1), size, size}, false);
    h = convolution(x, std::move(weight), {}, {height, width});
  }
  return frozen_norm(net, names.norm, h);
}

Tensor activated(Net& net, const Tensor& x) {
  return activate(net.arch.activation, x);
}

Tensor frozen_layer(Net& net, Tensor hidden) {
  const Architecture& stage = net.arch;
  const Count out = stage.hidden_size, stride = net.layer_index == 0 ? stage.encoder_stride : 1;
  const Tensor input = std::move(hidden);
  Tensor h, before;
  if (stage.gated_mlp) {
    const bool early = stage.norm_before;
    before = activated(net, convolved(net, kInner[0], input, out / 4, 1, early ? stride : 1));
    h = activated(net, convolved(net, kInner[1], before, out / 4, 3, early ? 1 : stride));
    before = std::move(h);
    h = convolved(net, kInner[2], before, out, 1, 1);
  } else {
    before = activated(net, convolved(net, kInner[0], input, out, 3, stride));
    h = convolved(net, kInner[1], before, out, 3, 1);
  }
  before.reset();
  Tensor residual = input;
  if (input.size(1) != out || stride != 1) residual = convolved(net, kShortcut, input, out, 1, stride);
  h = add_in_place(std::move(h), residual);
  return activated(net, h);
}

// The last stage's picture [B, channels, h, w]. What goes into each stage has a name until all have run.
Tensor backbone(Net& net) {
  const Architecture& resnet = net.arch.parts[kBackbone];
  Tensor hidden;
  {
    Scope in(net.tape, "model.backbone.model.embedder", kConvolutions);
    hidden = activate(resnet.activation, convolved(net, kStem, net.input_ids, resnet.embedding_dim, 7, 2));
    const Tensor wide = std::move(hidden);
    hidden = max_pool(wide, Dim((wide.size(2) - 1) / 2 + 1), Dim((wide.size(3) - 1) / 2 + 1));
  }
  std::vector<Tensor> states;
  for (std::size_t i = 0; i < resnet.parts.size(); ++i) {
    states.push_back(hidden);
    Net& stage = net.part(resnet.parts[i], net.B, Dim(1));
    Stack stack{kPaths[i], stage.arch.num_layers, frozen_layer};
    stack.checkpoints = false;
    hidden = stage.layers(stack, std::move(hidden));
  }
  return hidden;
}

// -- encoder and decoder ----------------------------------------------------------------------------------------------

struct AttentionNames {
  const char *scope, *q, *k, *v, *o;
};
constexpr AttentionNames kSelf = {"self_attn", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                  "self_attn.o_proj"};
constexpr AttentionNames kCross = {"encoder_attn", "encoder_attn.q_proj", "encoder_attn.k_proj", "encoder_attn.v_proj",
                                   "encoder_attn.o_proj"};

Tensor as_heads(Net& net, Tensor x) {
  const Shape heads{net.B, x.dim(1), net.A, net.hd};
  return transpose(view(std::move(x), heads), 1, 2);
}

// Positions are added to queries and keys; values have none.
Tensor attend(Net& net, const AttentionNames& names, const Tensor& query_input, const Tensor& key_input,
              const Tensor& values, const Tensor& mask) {
  Scope in(net.tape, names.scope, kAttention);
  Tensor q = as_heads(net, net.linear(names.q, query_input, net.H, true));
  Tensor k = as_heads(net, net.linear(names.k, key_input, net.H, true));
  Tensor v = as_heads(net, net.linear(names.v, values, net.H, true));
  AttentionOptions options = encoder_attention(net);
  options.mask = mask;
  Tensor out = attention(net, q, k, v, options);
  return net.linear(names.o, std::move(out), net.H, true);
}

Tensor self_attention(Net& net, const Tensor& x, const Tensor& positions, const Tensor& mask) {
  const Tensor input = add(x, positions);
  return attend(net, kSelf, input, input, x, mask);
}

Tensor joined(Net& net, const char* norm, const Tensor& residual, Tensor said) {
  Tensor h = dropout(std::move(said), net.arch.residual_dropout);
  h = add(residual, std::move(h));
  return net.layer_norm(norm, std::move(h));
}

Tensor feed_forward(Net& net, Tensor hidden) {
  const Tensor residual = std::move(hidden);
  Tensor h;
  {
    Scope in(net.tape, "mlp", kMlp);
    h = net.linear("mlp.fc1", residual, net.F, true);
    h = activate(net.arch.activation, std::move(h));
    h = dropout(std::move(h), net.arch.activation_dropout);
    h = net.linear("mlp.fc2", std::move(h), net.H, true);
    h = dropout(std::move(h), net.arch.residual_dropout);
  }
  h = add(residual, std::move(h));
  return net.layer_norm("final_layer_norm", std::move(h));
}

Tensor encoder_layer(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "", kEncoderLayer);
  Tensor hidden = std::move(hidden_in);
  Tensor h = self_attention(net, hidden, net.shared.bias, net.shared.causal_mask);
  hidden = joined(net, "self_attn_layer_norm", hidden, std::move(h));
  hidden = feed_forward(net, std::move(hidden));
  // torch.isfinite(hidden_states).all()
  const Bytes flags = hidden.numel();
  net.tape.scratch({{flags * size_of(hidden.dtype()), "abs"}, {flags, "ne"}, {flags, "eq"}, {flags, "mul"}});
  return hidden;
}

Tensor decoder_layer(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "", kDecoderLayer);
  Tensor hidden = std::move(hidden_in);
  Tensor h = self_attention(net, hidden, net.shared.condition, {});
  hidden = joined(net, "self_attn_layer_norm", hidden, std::move(h));
  {
    const Tensor queries = add(hidden, net.shared.condition);
    const Tensor keys = add(net.shared.encoder_states, net.shared.bias);
    h = attend(net, kCross, queries, keys, net.shared.encoder_states, net.shared.causal_mask);
  }
  hidden = joined(net, "encoder_attn_layer_norm", hidden, std::move(h));
  return feed_forward(net, std::move(hidden));
}

// Sines of the picture's places [B, h·w, H]. A cache of one entry keeps the last ones from one forward to the next.
Tensor positions(Net& net, Dim height, Dim width) {
  Scope in(net.tape, "model.position_embedding", kPositions);
  Tape& t = net.tape;
  const Dtype dtype = t.autocast() ? Dtype::kFp32 : net.weight_dtype(4);  // temperature ** …: autocast's fp32 list
  const Count half = net.H.n() / 2;
  const Shape all{net.B, Dim(height.n() * width.n()), net.H};
  t.buffer("position_embedding", all.numel() * size_of(dtype));
  const Shape wide{net.B, height, width, Dim(half)}, narrow_half{net.B, height, width, Dim(half / 2)};
  {
    Tensor x = t.allocate(wide, dtype, "div"), y = t.allocate(wide, dtype, "div");
    for (Tensor* side : {&x, &y}) {
      const Tensor sines = t.allocate(narrow_half, dtype, "sin"), cosines = t.allocate(narrow_half, dtype, "cos");
      *side = t.allocate(wide, dtype, "stack");
    }
    const Tensor both = t.allocate(all, dtype, "cat");
  }
  return t.part_of_buffer(all, dtype);
}

}  // namespace

void object_labels(Net& net) {
  constexpr Count kObjects = 8;  // of a picture: few, whose boxes take some KB (COCO's pictures have 7)
  net.labels = net.tape.allocate(Shape{net.B, Dim(kObjects)}, Dtype::kInt64, "class_labels");
  net.more_labels = net.tape.allocate(Shape{net.B, Dim(kObjects), Dim(4)}, Dtype::kFp32, "boxes");
}

namespace {

void inputs(Net& net) {
  picture_batch(net, Dim(1));
  object_labels(net);
}

Tensor forward(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tape& t = net.tape;
  const Tensor pixel_mask = t.allocate(Shape{net.B, net.input_ids.dim(2), net.input_ids.dim(3)}, Dtype::kFp32, "ones");
  const Tensor map = backbone(net);
  const Dim height = map.dim(2), width = map.dim(3), places(height.n() * width.n()), one(1);
  Net& encoder = net.part(net.arch, net.B, places);
  Tensor projected;
  {
    Scope inner(t, "model.input_projection", kModel);
    Tensor weight = net.parameter("model.input_projection", "weight", Shape{net.H, map.dim(1), one, one});
    Tensor bias = net.parameter("model.input_projection", "bias", Shape{net.H});
    projected = convolution(map, std::move(weight), std::move(bias), {height, width});
  }
  const Tensor flat = transpose(view(std::move(projected), Shape{net.B, net.H, places}), 1, 2);
  const Tensor spatial = positions(net, height, width);
  encoder.shared.bias = spatial;
  Tensor states = dropout(flat, net.arch.residual_dropout);
  // `padding`: pictures of several sizes, the smaller ones filled up (DetrImageProcessor: pixel_mask).
  const bool eager = net.job.attention == AttentionKernel::kEager;
  encoder.shared.causal_mask = bidirectional_mask(encoder, states, eager, places, places);
  states = encoder.layers({"model.encoder.layers", net.arch.num_layers, encoder_layer}, std::move(states));
  Net& decoder = net.part(net.arch.parts[kDecoder], net.B, Dim(net.arch.pictures.tokens));
  const Tensor table =
      net.parameter("model.query_position_embeddings", "weight", Shape{Dim(net.arch.pictures.tokens), net.H});
  decoder.shared.condition = repeat_rows(unsqueeze(table, 0), net.B);
  decoder.shared.bias = spatial;
  decoder.shared.encoder_states = states;
  const Tensor queries = zeros(t, decoder.shared.condition.shape(), table.dtype(), "zeros_like");
  decoder.shared.causal_mask = bidirectional_mask(decoder, queries, eager, Dim(net.arch.pictures.tokens), places);
  Tensor hidden = decoder.layers({"model.decoder.layers", decoder.arch.num_layers, decoder_layer}, queries);
  hidden = net.layer_norm("model.decoder.layernorm", std::move(hidden));
  net.leaves.push_back(std::move(states));  // encoder_last_hidden_state
  encoder.shared = {};
  decoder.shared = {};
  return hidden;
}

// HungarianMatcher.forward: each query against each object of the batch, without a graph.
void match(Net& net, Count queries, Count objects) {
  Scope in(net.tape, "", kLoss);
  const Bytes costs = 4 * queries * objects;
  net.tape.scratch({{4 * queries * (net.arch.num_labels + 1), "softmax"},
                    {costs, "class_cost"},
                    {costs, "cdist"},
                    {2 * costs, "left_top"},
                    {2 * costs, "right_bottom"},
                    {2 * costs, "width_height"},
                    {costs, "inter"},
                    {costs, "union"}});
}

}  // namespace

Tensor box_predictor(Net& net, const Tensor& hidden) {
  Tensor boxes = net.linear("bbox_predictor.layers.0", hidden, net.H, true);
  boxes = relu(std::move(boxes));
  boxes = net.linear("bbox_predictor.layers.1", std::move(boxes), net.H, true);
  boxes = relu(std::move(boxes));
  boxes = net.linear("bbox_predictor.layers.2", std::move(boxes), Dim(4), true);
  return sigmoid(std::move(boxes));
}

Tensor detection_loss(Net& net, const Tensor& logits, const Tensor& boxes) {
  const Dim objects(net.labels.numel()), classes = logits.dim(-1), rows(logits.size(0) * logits.size(1));
  match(net, rows.n(), objects.n());
  Scope loss(net.tape, "", kLoss);
  const Tensor targets = net.tape.allocate(Shape{rows}, Dtype::kInt64, "full");
  Tensor sum = cross_entropy(view(logits, Shape{rows, classes}), targets);
  const Tensor index = net.tape.allocate(Shape{objects}, Dtype::kInt64, "cat");
  const Tensor wanted = view(net.more_labels, Shape{objects, Dim(4)});
  Tensor found = index_some(view(boxes, Shape{rows, Dim(4)}), index, objects);
  Tensor distance = l1_differences(std::move(found), wanted);
  distance = mean_all(std::move(distance));
  return add(std::move(sum), std::move(distance));
}

namespace {

Outputs detection(Net& net, const Program&, Tensor hidden_in) {
  const Tensor hidden = std::move(hidden_in);
  Scope in(net.tape, "", kHead);
  Tensor logits = net.classifier("class_labels_classifier", hidden, Dim(net.arch.num_labels + 1), true);
  Tensor boxes = box_predictor(net, hidden);
  Outputs out;
  out.loss = detection_loss(net, logits, boxes);
  out.rest = {std::move(logits), std::move(boxes), hidden};
  out.rest.push_back(std::move(net.leaves.back()));
  net.leaves.clear();
  return out;
}

constexpr HeadForward kHeads[] = {{Head::kTokenClassification, detection}};
constexpr ClassSuffix kClasses[] = {{"ForObjectDetection", Head::kTokenClassification}};

const Program kProgram = {.forward = forward, .heads = kHeads, .inputs = inputs};

}  // namespace

constexpr ClassFacts kFacts = {.text_input = false, .input_embeddings = false};

const Family kRows[] = {
    {"detr", "Detr", "DetrForObjectDetection", kClasses, read_config, &kProgram, "model.encoder.layers", kFacts},
};

extern const FamilyRows detr_rows;
const FamilyRows detr_rows = kRows;

}  // namespace tidemark
