// TimeSformer: each layer attends along time, patch by patch, then within each frame; or to all tokens at once.
#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/families/vit.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

// transformers 5.24 models/timesformer/configuration_timesformer.py: TimesformerConfig. `positions`: patches of a
// frame.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_vit_layers(fields, architecture);
  architecture.image_size = square_side(fields, "image_size", 224);
  architecture.patch_size = square_side(fields, "patch_size", 16);
  architecture.num_channels = fields.count({"num_channels"}, 3);
  architecture.pictures.video_frames = fields.count({"num_frames"}, 8);
  const Count side = architecture.image_size / architecture.patch_size;
  if (side == 0) fields.error("INVALID_VALUE", "patch_size", "A patch is larger than the video.");
  architecture.pictures.positions = side * side;
  architecture.max_positions = architecture.pictures.video_frames * side * side + 1;
  const std::string kind = fields.text({"attention_type"}, "divided_space_time");
  architecture.parallel_attention = kind == "joint_space_time";
  if (!architecture.parallel_attention && kind != "divided_space_time") {
    fields.error(
        "INVALID_VALUE", "attention_type",
        "\"divided_space_time\" and \"joint_space_time\" are modelled: of \"space_only\" the class makes logits "
        "of each frame, and its loss raises an error.");
  }
  if (fields.number({"drop_path_rate"}, 0.0) > 0.0) {
    fields.error("INVALID_VALUE", "drop_path_rate", "The configuration takes whole numbers alone: 0 is modelled.");
  }
}

constexpr const char* kEmbeddings =
    "transformers 5.24 models/timesformer/modeling_timesformer.py: TimesformerEmbeddings.forward";
constexpr const char* kSelf =
    "transformers 5.24 models/timesformer/modeling_timesformer.py: TimesformerSelfAttention.forward";
constexpr const char* kLayer = "transformers 5.24 models/timesformer/modeling_timesformer.py: TimesformerLayer.forward";
constexpr const char* kHead =
    "transformers 5.24 models/timesformer/modeling_timesformer.py: TimesformerForVideoClassification.forward";
constexpr const char* kModule = "timesformer.embeddings";
constexpr const char* kProjection = "timesformer.embeddings.patch_embeddings.projection";

Dim frames_of(const Net& net) {
  return Dim(net.arch.pictures.video_frames);
}
Dim patches_of(const Net& net) {
  return Dim(net.arch.pictures.positions);
}

void inputs(Net& net) {
  net.S = Dim(net.arch.max_positions, Symbol::kSequence);
  net.T = Dim(net.B.n() * net.S.n(), Symbol::kTokens);
  const Dim side(net.arch.image_size), channels(net.arch.num_channels);
  net.input_ids = given_pixels(net, Shape{net.B, frames_of(net), channels, side, side});
  if (net.arch.head == Head::kImageClassification) class_labels(net);
}

// [B, outer·inner, H] as [B, inner, outer, H], in that shape.
Tensor turned(Net& net, Tensor x, Dim outer, Dim inner, const Shape& shape) {
  Tensor h = reshape(std::move(x), Shape{net.B, outer, inner, net.H});
  return reshape(permute(std::move(h), {0, 2, 1, 3}), shape);
}

// The patch embeddings return a tuple, of which no hook can ask for a gradient.
Tensor embed(Net& net) {
  Scope in(net.tape, kModule, kEmbeddings);
  const Dim p(net.arch.patch_size), channels(net.arch.num_channels), side(net.arch.image_size), one(1);
  const Dim frames = frames_of(net), patches = patches_of(net), pictures(net.B.n() * frames.n());
  Tensor h;
  {
    Tensor weight = net.parameter(kProjection, "weight", Shape{net.H, channels, p, p});
    Tensor bias = net.parameter(kProjection, "bias", Shape{net.H});
    Tensor pixels = view(net.input_ids, Shape{pictures, channels, side, side});
    h = patch_convolution(std::move(pixels), std::move(weight), std::move(bias));
    h = transpose(view(std::move(h), Shape{pictures, net.H, patches}), 1, 2);
  }
  Tensor token = net.parameter(kModule, "cls_token", Shape{one, one, net.H});
  token = expand(std::move(token), Shape{pictures, one, net.H});
  h = cat({&token, &h}, 1);
  h = add(std::move(h), net.parameter(kModule, "position_embeddings", Shape{one, Dim(patches.n() + 1), net.H}));
  h = dropout(std::move(h), net.arch.residual_dropout);
  token = unsqueeze(select(narrow(h, 0, 0, net.B), 1), 1);
  h = narrow(std::move(h), 1, 1, patches);
  h = turned(net, std::move(h), frames, patches, Shape{Dim(net.B.n() * patches.n()), frames, net.H});
  h = add(std::move(h), net.parameter(kModule, "time_embeddings", Shape{one, frames, net.H}));
  h = dropout(std::move(h), net.arch.residual_dropout);
  h = view(std::move(h), Shape{net.B, Dim(patches.n() * frames.n()), net.H});
  h = cat({&token, &h}, 1);
  net.model_locals = {h};
  return h;
}

/// What a layer's attention calls its modules.
struct Names {
  const char *scope, *qkv, *out;
};
constexpr Names kSpace = {"attention", "attention.attention.qkv", "attention.output.dense"};
constexpr Names kTime = {"temporal_attention", "temporal_attention.attention.qkv", "temporal_attention.output.dense"};

Tensor attend(Net& net, const Names& names, const Tensor& x) {
  Scope in(net.tape, names.scope, kSelf);
  Tensor context;
  {
    net.attention_kernel = "eager";
    Tensor qkv = net.linear(names.qkv, x, Dim(3 * net.H.n()), net.arch.attention_bias);
    qkv = reshape(std::move(qkv), Shape{x.dim(0), x.dim(1), Dim(3), net.A, net.hd});
    qkv = permute(std::move(qkv), {2, 0, 3, 1, 4});
    const Tensor q = select(qkv, 0);
    const Tensor k = select(qkv, 0);
    const Tensor v = select(qkv, 0);
    Tensor probabilities = matmul(q, transpose(k, 2, 3));
    probabilities = mul_scalar(std::move(probabilities));
    probabilities = softmax(std::move(probabilities));
    probabilities = dropout(std::move(probabilities), net.arch.attention_dropout);
    context = reshape(transpose(matmul(probabilities, v), 1, 2), x.shape());
  }
  Tensor out = net.linear(names.out, context, net.H, true);
  return dropout(std::move(out), net.arch.residual_dropout);
}

Tensor feed_forward(Net& net, const Tensor& hidden) {
  const double p = net.arch.residual_dropout;
  Tensor h = net.layer_norm("layernorm_after", hidden);
  {
    const Tensor normed = std::move(h);
    h = net.linear("intermediate.dense", normed, net.F, true);
    h = activate(net.arch.activation, std::move(h));
    h = dropout(std::move(h), p);
  }
  h = dropout(net.linear("output.dense", std::move(h), net.H, true), p);
  return add(hidden, std::move(h));
}

Tensor joint_layer(Net& net, Tensor hidden_in) {
  Tensor hidden = std::move(hidden_in);
  Tensor attended;
  {
    const Tensor normed = net.layer_norm("layernorm_before", hidden);
    attended = attend(net, kSpace, normed);
  }
  hidden = add(std::move(hidden), attended);
  return feed_forward(net, hidden);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  if (net.arch.parallel_attention) return joint_layer(net, std::move(hidden));
  const Dim frames = frames_of(net), patches = patches_of(net), tokens(frames.n() * patches.n());
  const Dim tubes(net.B.n() * patches.n()), pictures(net.B.n() * frames.n());
  const Tensor input = std::move(hidden);
  Tensor temporal = reshape(narrow(input, 1, 1, tokens), Shape{tubes, frames, net.H});
  Tensor in_time;
  {
    const Tensor normed = net.layer_norm("temporal_layernorm", temporal);
    in_time = attend(net, kTime, normed);
  }
  const Tensor residual_time = net.linear("temporal_dense", view(in_time, Shape{net.B, tokens, net.H}), net.H, true);
  temporal = add(narrow(input, 1, 1, tokens), residual_time);
  const Tensor token = unsqueeze(select(input, 1), 1);
  Tensor tokens_of_frames = repeat_rows(token, frames);
  Tensor spatial = turned(net, temporal, patches, frames, Shape{pictures, patches, net.H});
  spatial = cat({&tokens_of_frames, &spatial}, 1);
  Tensor in_space;
  {
    const Tensor normed = net.layer_norm("layernorm_before", spatial);
    in_space = attend(net, kSpace, normed);
  }
  tokens_of_frames = view(select(in_space, 1), Shape{net.B, frames, net.H});
  tokens_of_frames = unsqueeze(mean_over(std::move(tokens_of_frames), 1), 1);
  const Tensor residual = turned(net, narrow(in_space, 1, 1, patches), frames, patches, Shape{net.B, tokens, net.H});
  Tensor h = cat({&token, &temporal}, 1);
  Tensor more = cat({&tokens_of_frames, &residual}, 1);
  h = add(std::move(h), std::move(more));
  return feed_forward(net, h);
}

Tensor norm(Net& net, Tensor hidden) {
  return net.layer_norm("timesformer.layernorm", std::move(hidden));
}

Outputs video_classification(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor token = select(std::move(hidden), 1);
  return classified(net, net.classifier("classifier", std::move(token), Dim(net.arch.num_labels), true));
}

void check(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  check_picture_is_of_table(architecture, job, issues);
  refuse_hooked_tuple(job, issues);
}

constexpr HeadForward kHeads[] = {{Head::kImageClassification, video_classification}, {Head::kNone, body_alone}};
constexpr ClassSuffix kClasses[] = {{"ForVideoClassification", Head::kImageClassification}, {"Model", Head::kNone}};

const Program kProgram = {.forward = one_stack<embed, layer, norm>,
                          .heads = kHeads,
                          .inputs = inputs,
                          .attention = kEagerAlone,
                          .check = check};

constexpr ClassFacts kFacts = {.flex_attention = false,
                               .text_input = false,
                               .hooks_embeddings = false,
                               .layer_first = "attention intermediate output"};

}  // namespace

const Family kRows[] = {
    {"timesformer", "Timesformer", "TimesformerForVideoClassification", kClasses, read_config, &kProgram,
     "timesformer.encoder.layer", kFacts},
};

extern const FamilyRows timesformer_rows;
const FamilyRows timesformer_rows = kRows;

}  // namespace tidemark
