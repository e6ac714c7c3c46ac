// YOLOS: a ViT whose last tokens become boxes, with positions that are resized to the picture's patches, also between
// its layers.
#include "core/families/detr.hpp"
#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/families/vit.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr std::uint8_t kBeforeLast = 1;  // kinds of a layer: positions follow it

// `image_size`: height and width, of which the class wants a list.
std::vector<Count> read_sides(ConfigFields& fields) {
  std::vector<Count> sides = {512, 864};
  const Value* given = fields.find({"image_size"});
  if (given == nullptr) return sides;
  const bool pair = given->is_array() && given->items.size() == 2 && given->items[0].is_integer() &&
                    given->items[1].is_integer() && given->items[0].integer > 0 && given->items[1].integer > 0;
  if (pair) return {given->items[0].integer, given->items[1].integer};
  fields.error("INVALID_VALUE", "image_size", "YOLOS's class takes a list of two: height and width in pixels.");
  return sides;
}

// transformers 5.24 models/yolos/configuration_yolos.py: YolosConfig. `tokens`: those that become boxes; `positions`:
// patches of the table's own picture.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_vit_layers(fields, architecture);
  const std::vector<Count> sides = architecture.pictures.grids = read_sides(fields);
  architecture.image_size = sides[0];
  architecture.patch_size = fields.count({"patch_size"}, 16);
  architecture.num_channels = fields.count({"num_channels"}, 3);
  architecture.pictures.tokens = fields.count({"num_detection_tokens"}, 100);
  architecture.pictures.positions = sides[0] / architecture.patch_size * (sides[1] / architecture.patch_size);
  architecture.max_positions = 1 + architecture.pictures.positions + architecture.pictures.tokens;
  architecture.pooler_size = architecture.hidden_size;
  if (architecture.pictures.positions == 0) {
    fields.error("INVALID_VALUE", "patch_size", "A patch is larger than the image.");
  }
  const bool between = fields.flag({"use_mid_position_embeddings"}, true);
  // InterpolateMidPositionEmbeddings counts pixels, not rows of patches.
  if (between &&
      sides[0] * sides[1] / (architecture.patch_size * architecture.patch_size) != architecture.pictures.positions) {
    fields.error("INVALID_VALUE", "image_size",
                 "YOLOS's tables between the layers have as many rows as pixels make patches: sides that patches do "
                 "not fill raise an error there.");
  }
  if (between && architecture.num_layers < 2 && fields.has({"num_hidden_layers"})) {
    fields.error("INVALID_VALUE", "num_hidden_layers", "YOLOS's tables between the layers need two of them.");
  }
  if (between) {
    architecture.layer_kinds.assign(static_cast<std::size_t>(architecture.num_layers), kBeforeLast);
    if (!architecture.layer_kinds.empty()) architecture.layer_kinds.back() = 0;
  }
  if (fields.flag({"auxiliary_loss"}, false)) {
    fields.error("INVALID_VALUE", "auxiliary_loss",
                 "Losses of all layers are not modelled: the class asks for hidden states that its body does not hand "
                 "out.");
  }
  fields.accept(
      {"class_cost", "bbox_cost", "giou_cost", "bbox_loss_coefficient", "giou_loss_coefficient", "eos_coefficient"});
}

constexpr const char* kEmbeddings = "transformers 5.24 models/yolos/modeling_yolos.py: YolosEmbeddings.forward";
constexpr const char* kPositions =
    "transformers 5.24 models/yolos/modeling_yolos.py: InterpolateInitialPositionEmbeddings.forward";
constexpr const char* kBetween =
    "transformers 5.24 models/yolos/modeling_yolos.py: InterpolateMidPositionEmbeddings.forward";
constexpr const char* kEncoder = "transformers 5.24 models/yolos/modeling_yolos.py: YolosEncoder.forward";
constexpr const char* kHead = "transformers 5.24 models/yolos/modeling_yolos.py: YolosForObjectDetection.forward";
constexpr const char* kModule = "vit.embeddings";

PictureSize grid_of(const Net& net) {
  const PictureSize size = own_picture_size(net);
  return {size.height / net.arch.patch_size, size.width / net.arch.patch_size};
}

void inputs(Net& net) {
  const PictureSize grid = grid_of(net);
  picture_batch(net, Dim(1 + grid.height * grid.width + net.arch.pictures.tokens));
  if (net.arch.head == Head::kTokenClassification) object_labels(net);
}

// A table [n, rows, H] of `n` pictures' positions, those of its patches resized (even where they fit already): [n,
// tokens, H].
Tensor resized(Net& net, const Tensor& table) {
  const PictureSize grid = grid_of(net);
  const Dim n = table.dim(0), old(net.arch.pictures.positions), boxes(net.arch.pictures.tokens);
  const std::vector<Count>& sides = net.arch.pictures.grids;
  const Dim rows(sides[0] / net.arch.patch_size), columns(sides[1] / net.arch.patch_size);
  const Tensor first = unsqueeze(select(table, 1), 1);
  const Tensor last = narrow(table, 1, 1 + old.n(), boxes);
  Tensor patches = view(transpose(narrow(table, 1, 1, old), 1, 2), Shape{n, net.H, rows, columns});
  patches = interpolate(std::move(patches), Shape{n, net.H, Dim(grid.height), Dim(grid.width)});
  patches = view(std::move(patches), Shape{n, Dim(grid.height * grid.width), net.H});  // channels last, as the table is
  return cat({&first, &patches, &last}, 1);
}

Tensor embed(Net& net) {
  const Dim one(1), boxes(net.arch.pictures.tokens), rows(net.arch.max_positions);
  Tensor h;
  {
    Scope in(net.tape, kModule, kEmbeddings);
    Tensor token = net.parameter(kModule, "cls_token", Shape{one, one, net.H});
    Tensor detection = net.parameter(kModule, "detection_tokens", Shape{one, boxes, net.H});
    const Tensor table = net.parameter(kModule, "position_embeddings", Shape{one, rows, net.H});
    h = patch_embedding(net, "vit.embeddings.patch_embeddings.projection", net.input_ids, true);
    token = expand(std::move(token), Shape{net.B, one, net.H});
    detection = expand(std::move(detection), Shape{net.B, boxes, net.H});
    h = cat({&token, &h, &detection}, 1);
    Tensor positions;
    {
      Scope inner(net.tape, "vit.embeddings.interpolation", kPositions);
      positions = resized(net, table);
    }
    h = add(std::move(h), positions);
    h = dropout(std::move(h), net.arch.embedding_dropout);
  }
  net.model_locals = {h};
  if (net.arch.layer_kinds.empty()) return h;
  const char* const module = "vit.encoder.interpolation";
  Scope in(net.tape, module, kBetween);
  const Dim tables(net.arch.num_layers - 1);
  const Tensor table = net.parameter(module, "mid_position_embeddings", Shape{tables, one, rows, net.H});
  net.model_locals.push_back(resized(net, view(table, Shape{tables, rows, net.H})));
  return h;
}

// hidden_states + interpolated_mid_position_embeddings[i]
Tensor add_positions(Net& net, Tensor hidden) {
  if (net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] != kBeforeLast) return hidden;
  Scope in(net.tape, "", kEncoder);
  return add(std::move(hidden), select(unsqueeze(net.model_locals.back(), 1), 0));
}

Tensor forward(Net& net) {
  Tensor hidden = embed(net);
  Stack stack{net.arch.layers_path, net.arch.num_layers, videomae_layer, true, Phase::kLoss};
  if (!net.arch.layer_kinds.empty()) stack.after = add_positions;
  hidden = net.layers(stack, std::move(hidden));
  net.model_locals.resize(1);  // the encoder has returned
  return net.layer_norm("vit.layernorm", std::move(hidden));
}

Outputs detection(Net& net, const Program&, Tensor hidden_in) {
  const Tensor hidden = std::move(hidden_in);
  Scope in(net.tape, "", kHead);
  const Dim boxes_of_picture(net.arch.pictures.tokens);
  const Tensor found = narrow(hidden, 1, hidden.size(1) - boxes_of_picture.n(), boxes_of_picture);
  Tensor logits = relu(net.linear("class_labels_classifier.layers.0", found, net.H, true));
  logits = relu(net.linear("class_labels_classifier.layers.1", std::move(logits), net.H, true));
  logits = net.linear("class_labels_classifier.layers.2", std::move(logits), Dim(net.arch.num_labels + 1), true);
  Tensor boxes = box_predictor(net, found);
  Outputs out;
  out.loss = detection_loss(net, logits, boxes);
  out.rest = {std::move(logits), std::move(boxes), hidden};
  return out;
}

Outputs body(Net& net, const Program& program, Tensor hidden) {
  return body_with_pooler(net, program, std::move(hidden), vit_pool);
}

constexpr HeadForward kHeads[] = {{Head::kTokenClassification, detection}, {Head::kNone, body}};
constexpr ClassSuffix kClasses[] = {{"ForObjectDetection", Head::kTokenClassification}, {"Model", Head::kNone}};

const Program kProgram = {.forward = forward, .heads = kHeads, .inputs = inputs};

}  // namespace

const Family kRows[] = {
    {"yolos", "Yolos", "YolosForObjectDetection", kClasses, read_config, &kProgram, "vit.encoder.layer",
     kPicturesNameEmbeddings},
};

extern const FamilyRows yolos_rows;
const FamilyRows yolos_rows = kRows;

}  // namespace tidemark
