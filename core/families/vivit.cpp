// ViViT: ViT's layers over boxes of a video's pixels, behind a class token.
#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/families/vit.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/vivit/configuration_vivit.py: VivitConfig. `tubelet_size`: frames, height and width of a
// box.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_vit_layers(fields, architecture);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu_fast");
  architecture.image_size = square_side(fields, "image_size", 224);
  architecture.num_channels = fields.count({"num_channels"}, 3);
  architecture.pictures.video_frames = fields.count({"num_frames"}, 32);
  architecture.pictures.frames = 2;
  architecture.patch_size = 16;
  if (const Value* box = fields.find({"tubelet_size"}); box != nullptr && box->is_array()) {
    const std::vector<Value>& sides = box->items;
    const bool fits = sides.size() == 3 && sides[0].is_integer() && sides[1].is_integer() && sides[2].is_integer() &&
                      sides[0].integer > 0 && sides[1].integer > 0 && sides[1].integer == sides[2].integer;
    if (!fits) {
      fields.error("INVALID_VALUE", "tubelet_size", "Only three sizes, of a square box, are modelled.");
      return;
    }
    architecture.pictures.frames = sides[0].integer;
    architecture.patch_size = sides[1].integer;
  }
  const Count side = architecture.image_size / architecture.patch_size;
  const Count deep = architecture.pictures.video_frames / architecture.pictures.frames;
  if (side == 0 || deep == 0) {
    fields.error("INVALID_VALUE", "tubelet_size", "A box is larger than the video.");
    return;
  }
  architecture.max_positions = deep * side * side + 1;  // and the class token
  architecture.pooler_size = fields.nullable({"pooler_output_size"}, std::nullopt).value_or(architecture.hidden_size);
  fields.accept({"pooler_act"});
}

constexpr const char* kEmbeddings = "transformers 5.12 models/vivit/modeling_vivit.py: VivitEmbeddings.forward";
constexpr const char* kModel = "transformers 5.12 models/vivit/modeling_vivit.py: VivitModel.forward";
constexpr const char* kHead = "transformers 5.12 models/vivit/modeling_vivit.py: VivitForVideoClassification.forward";
constexpr const char *kModule = "vivit.embeddings", *kProjection = "vivit.embeddings.patch_embeddings.projection";

void inputs(Net& net) {
  net.S = Dim(net.arch.max_positions, Symbol::kSequence);
  net.T = Dim(net.B.n() * net.S.n(), Symbol::kTokens);
  const Dim side(net.arch.image_size), frames(net.arch.pictures.video_frames), channels(net.arch.num_channels);
  net.input_ids = given_pixels(net, Shape{net.B, frames, channels, side, side});
  if (net.arch.head == Head::kImageClassification) class_labels(net);
}

Tensor embed(Net& net) {
  Scope in(net.tape, kModule, kEmbeddings);
  const Dim p(net.arch.patch_size), deep(net.arch.pictures.frames), channels(net.arch.num_channels), one(1);
  Tensor h;
  {
    const Tensor weight = net.parameter(kProjection, "weight", Shape{net.H, channels, deep, p, p});
    const Tensor bias = net.parameter(kProjection, "bias", Shape{net.H});
    h = patch_convolution(permute(net.input_ids, {0, 2, 1, 3, 4}), weight, bias);
    h = view(std::move(h), Shape{net.B, net.H, Dim(net.S.n() - 1)});
    h = net.hooked_inputs(transpose(std::move(h), 1, 2));
  }
  Tensor row = net.parameter(kModule, "cls_token", Shape{one, one, net.H});
  const Tensor token = expand(std::move(row), Shape{net.B, one, net.H});
  h = cat({&token, &h}, 1);
  h = add(std::move(h), net.parameter(kModule, "position_embeddings", Shape{one, net.S, net.H}));
  h = dropout(std::move(h), net.arch.embedding_dropout);
  net.model_locals = {h};
  return h;
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("vivit.layernorm", std::move(hidden));
}

Tensor pool(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "vivit.pooler", kModel);
  return tanh(net.linear("vivit.pooler.dense", select(hidden, 1), Dim(net.arch.pooler_size), true));
}

Outputs body(Net& net, const Program& program, Tensor hidden) {
  return body_with_pooler(net, program, std::move(hidden), pool);
}

Outputs video_classification(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor token = select(std::move(hidden), 1);
  return classified(net, net.classifier("classifier", std::move(token), Dim(net.arch.num_labels), true));
}

constexpr HeadForward kHeads[] = {{Head::kImageClassification, video_classification}, {Head::kNone, body}};
constexpr ClassSuffix kClasses[] = {{"ForVideoClassification", Head::kImageClassification}, {"Model", Head::kNone}};

const Program kProgram = {.forward = one_stack<embed, vit_layer, norm>,
                          .heads = kHeads,
                          .inputs = inputs,
                          .check = check_picture_is_of_table};

}  // namespace

const Family kRows[] = {
    {"vivit", "Vivit", "VivitForVideoClassification", kClasses, read_config, &kProgram, "vivit.layers",
     kPicturesNameEmbeddings},
};

extern const FamilyRows vivit_rows;
const FamilyRows vivit_rows = kRows;

}  // namespace tidemark
