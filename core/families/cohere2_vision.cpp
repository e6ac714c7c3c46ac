// Aya Vision and Command A Vision: SigLIP's tower on tiles, four patches shuffled into one vector, a gated projector;
// Cohere's second generation behind it.
#include "core/families/family.hpp"
#include "core/families/towers.hpp"

namespace tidemark {
namespace {

constexpr const char* kAya = "transformers 5.12 models/aya_vision/modeling_aya_vision.py: AyaVisionModel.forward";
constexpr const char* kCommand =
    "transformers 5.12 models/cohere2_vision/modeling_cohere2_vision.py: Cohere2VisionModel.forward";
constexpr const char* kProjector =
    "transformers 5.12 models/aya_vision/modeling_aya_vision.py: AyaVisionMultiModalProjector.forward";

// What both configurations say; the head multiplies by the token table, and nothing scales its logits.
bool read_common(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "cohere2");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  if (!read_tower(fields, architecture, "siglip_vision_model")) return false;
  architecture.pictures.merge = fields.count({"downsample_factor"}, 2);
  fields.accept({"image_token_index", "image_token_id"});
  return true;
}

void read_projector(ConfigFields& fields, Architecture& architecture, Count standard) {
  architecture.pictures.width = fields.count({"alignment_intermediate_size"}, standard);
  if (architecture.pictures.width % 2 == 0) return;
  fields.error("INVALID_VALUE", "alignment_intermediate_size", "A gated projector is of two equal halves.");
}

// transformers 5.12.1 models/aya_vision/configuration_aya_vision.py: AyaVisionConfig.
void read_aya_config(ConfigFields& fields, Architecture& architecture) {
  if (!read_common(fields, architecture)) return;
  architecture.pictures.drops_class_token = fields.text({"vision_feature_select_strategy"}, "full") == "default";
  read_feature_layers(fields, architecture.parts.front(), {-1});
  read_projector(fields, architecture, architecture.hidden_size);
  fields.accept({"adapter_layer_norm_eps", "max_splits_per_img"});
}

// transformers 5.12.1 models/cohere2_vision/configuration_cohere2_vision.py: Cohere2VisionConfig.
void read_command_config(ConfigFields& fields, Architecture& architecture) {
  if (!read_common(fields, architecture)) return;
  read_projector(fields, architecture, 36864);
}

// pixel_shuffle: merge squared patches become one, by a copy; rows and columns come out swapped.
Tensor shuffled(Net& net, Tensor features) {
  const Tensor x = std::move(features);
  const Architecture& tower = net.arch.parts.front();
  const Count merge = net.arch.pictures.merge;
  const Dim n = x.dim(0), side(tower.image_size / tower.patch_size), small(side.n() / merge), wide(x.size(2) * merge);
  Tensor rows = reshape(x, Shape{n, side, side, x.dim(2)});
  rows = permute(view(std::move(rows), Shape{n, side, small, wide}), {0, 2, 1, 3});
  rows = reshape(std::move(rows), Shape{n, small, small, Dim(wide.n() * merge)});
  return permute(std::move(rows), {0, 2, 1, 3});
}

Tensor project(Net& net, const Tensor& features, bool normed) {
  Scope in(net.tape, "multi_modal_projector", kProjector);
  const Dim half(net.arch.pictures.width / 2);
  Tensor x = shuffled(net, features);
  if (normed) x = net.layer_norm("multi_modal_projector.layernorm", std::move(x));
  const Tensor joined = net.linear("multi_modal_projector.linear_1", x, Dim(net.arch.pictures.width), true);
  const Pieces two = split(joined, -1, {half, half});
  Tensor h = silu(two.part[1]);
  h = mul(std::move(h), two.part[0]);
  return net.linear("multi_modal_projector.linear_2", std::move(h), net.H, true);
}

Tensor features(Net& net) {
  Net& tower = tower_part(net, Dim(tile_count(net)));
  const Tensor last = tower.arch.program->forward(tower);
  const bool chosen = !tower.arch.pictures.layers.empty();
  Tensor made = project(net, chosen ? selected_features(net, tower) : last, chosen);
  let_tower_go(net, tower, last);
  net.keep_image_output(made);
  return made;
}

Tensor merge(Net& net, Tensor embeds) {
  const bool aya = !net.arch.parts.front().pictures.layers.empty();
  return merge_features(net, std::move(embeds), features, aya ? kAya : kCommand);
}

Tensor head(Net& net, Tensor hidden) {
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

const Program kProgram = {.forward = forward_with_pictures<merge>, .lm_head = head, .inputs = tile_inputs};

constexpr ClassFacts kFacts = {.no_split = NoSplit::kAbsentToo, .pictures = PictureRule::kCoveringTiles};
constexpr ClassFacts kAyaFacts = {.no_split = NoSplit::kAbsentToo, .pictures = PictureRule::kClosestTiles};

}  // namespace

const Family kRows[] = {
    {"aya_vision", "AyaVision", "AyaVisionForConditionalGeneration", kSeeingClasses, read_aya_config, &kProgram,
     kModelLayers, kAyaFacts},
    {"cohere2_vision", "Cohere2Vision", "Cohere2VisionForConditionalGeneration", kSeeingClasses, read_command_config,
     &kProgram, kModelLayers, kFacts},
};

extern const FamilyRows cohere2_vision_rows;
const FamilyRows cohere2_vision_rows = kRows;

}  // namespace tidemark
