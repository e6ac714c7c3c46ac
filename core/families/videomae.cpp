// VideoMAE: ViT's layers over boxes of a video's pixels, some frames deep; the mean of all tokens is classified.
#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/families/vit.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/videomae/configuration_videomae.py: VideoMAEConfig. Tokens: frames / tubelet_size by the
// picture's patches (VideoMAEPatchEmbeddings.num_patches); none beside them.
void read_videomae_config(ConfigFields& fields, Architecture& architecture) {
  read_vit_layers(fields, architecture);
  architecture.image_size = square_side(fields, "image_size", 224);
  architecture.patch_size = square_side(fields, "patch_size", 16);
  architecture.num_channels = fields.count({"num_channels"}, 3);
  architecture.pictures.video_frames = fields.count({"num_frames"}, 16);
  architecture.pictures.frames = fields.count({"tubelet_size"}, 2);
  const Count side = architecture.image_size / architecture.patch_size;
  const Count deep = architecture.pictures.video_frames / architecture.pictures.frames;
  if (side == 0 || deep == 0) {
    fields.error("INVALID_VALUE", "patch_size", "A patch is larger than the video.");
    return;
  }
  architecture.max_positions = deep * side * side;
  architecture.mean_pooling = fields.flag({"use_mean_pooling"}, true);
  architecture.final_norm = !architecture.mean_pooling;
  fields.accept({"decoder_num_attention_heads", "decoder_hidden_size", "decoder_num_hidden_layers",
                 "decoder_intermediate_size", "norm_pix_loss"});
}

constexpr const char* kEmbeddings =
    "transformers 5.12 models/videomae/modeling_videomae.py: VideoMAEEmbeddings.forward";
constexpr const char* kSelf = "transformers 5.12 models/videomae/modeling_videomae.py: VideoMAESelfAttention.forward";
constexpr const char* kLayer = "transformers 5.12 models/videomae/modeling_videomae.py: VideoMAELayer.forward";
constexpr const char* kIntermediate =
    "transformers 5.12 models/videomae/modeling_videomae.py: VideoMAEIntermediate.forward";
constexpr const char* kOutput = "transformers 5.12 models/videomae/modeling_videomae.py: VideoMAEOutput.forward";
constexpr const char* kHead =
    "transformers 5.12 models/videomae/modeling_videomae.py: VideoMAEForVideoClassification.forward";
constexpr const char* kProjection = "videomae.embeddings.patch_embeddings.projection";

void inputs(Net& net) {
  net.S = Dim(net.arch.max_positions, Symbol::kSequence);
  net.T = Dim(net.B.n() * net.S.n(), Symbol::kTokens);
  const Dim side(net.arch.image_size), frames(net.arch.pictures.video_frames), channels(net.arch.num_channels);
  net.input_ids = given_pixels(net, Shape{net.B, frames, channels, side, side});
  if (net.arch.head == Head::kImageClassification) class_labels(net);
}

// The table of sines is no buffer: it comes from the host at each forward, and is copied once more.
Tensor embed(Net& net) {
  Scope in(net.tape, "videomae.embeddings", kEmbeddings);
  Tape& t = net.tape;
  const Dim p(net.arch.patch_size), deep(net.arch.pictures.frames), channels(net.arch.num_channels);
  const Tensor weight = net.parameter(kProjection, "weight", Shape{net.H, channels, deep, p, p});
  const Tensor bias = net.parameter(kProjection, "bias", Shape{net.H});
  Tensor h = patch_convolution(permute(net.input_ids, {0, 2, 1, 3, 4}), weight, bias);
  h = view(std::move(h), Shape{net.B, net.H, net.S});
  h = net.hooked_inputs(transpose(std::move(h), 1, 2));
  const Shape table{Dim(1), net.S, net.H};
  Tensor moved = t.allocate(table, h.dtype(), "type_as");
  Tensor positions = t.allocate(table, h.dtype(), "to");
  moved.reset();
  h = add(std::move(h), std::move(positions));
  net.model_locals = {h};
  return h;
}

// Since transformers 5.18 VideoMAE's keys have no bias.
Tensor self_attention(Net& net, const Tensor& x) {
  Scope in(net.tape, "attention.attention", kSelf);
  const bool bias = net.arch.attention_bias;
  const bool of_keys = bias && !(net.arch.model_type == "videomae" && net.job.framework.at_least(5, 18));
  const Tensor k = split_heads(net, net.linear("attention.attention.key", x, net.Q, of_keys), net.A, net.hd);
  const Tensor v = split_heads(net, net.linear("attention.attention.value", x, net.Q, bias), net.A, net.hd);
  const Tensor q = split_heads(net, net.linear("attention.attention.query", x, net.Q, bias), net.A, net.hd);
  return attention(net, q, k, v, encoder_attention(net));
}

}  // namespace

// Names that live until the layer returns: what the first norm made, and the attention's branch.
Tensor videomae_layer(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "", kLayer);
  const double p = net.arch.residual_dropout;
  Tensor hidden = std::move(hidden_in);
  const Tensor normed = net.layer_norm("layernorm_before", hidden);
  const Tensor attended = dropout(net.linear("attention.output.dense", self_attention(net, normed), net.H, true), p);
  hidden = add(attended, std::move(hidden));
  Tensor out = net.layer_norm("layernorm_after", hidden);
  {
    Scope intermediate(net.tape, "intermediate", kIntermediate);
    Tensor h = net.linear("intermediate.dense", out, net.F, true);
    out = activate(net.arch.activation, std::move(h));
  }
  Scope output(net.tape, "output", kOutput);
  out = dropout(net.linear("output.dense", std::move(out), net.H, true), p);
  return add(std::move(out), hidden);
}

namespace {

Tensor norm(Net& net, Tensor hidden) {
  if (!net.arch.final_norm) return hidden;
  return net.layer_norm("videomae.layernorm", std::move(hidden));
}

Outputs video_classification(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  const Tensor sequence_output = std::move(hidden);
  Tensor output;
  if (net.arch.mean_pooling) {
    output = net.layer_norm("fc_norm", mean_over(sequence_output, 1));
  } else {
    output = select(sequence_output, 1);
  }
  return classified(net, net.classifier("classifier", output, Dim(net.arch.num_labels), true));
}

constexpr HeadForward kHeads[] = {{Head::kImageClassification, video_classification}, {Head::kNone, body_alone}};
constexpr ClassSuffix kClasses[] = {{"ForVideoClassification", Head::kImageClassification}, {"Model", Head::kNone}};

const Program kProgram = {.forward = one_stack<embed, videomae_layer, norm>,
                          .heads = kHeads,
                          .inputs = inputs,
                          .check = check_picture_is_of_table};

}  // namespace

const Family kRows[] = {
    {"videomae", "VideoMAE", "VideoMAEForVideoClassification", kClasses, read_videomae_config, &kProgram,
     "videomae.encoder.layer", kPicturesNameEmbeddings},
};

extern const FamilyRows videomae_rows;
const FamilyRows videomae_rows = kRows;

}  // namespace tidemark
