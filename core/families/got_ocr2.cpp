// GOT-OCR 2: SAM's tower on each page or tile of 1024, two convolutions that make a quarter of its places each, a
// linear layer; Qwen2 behind it.
#include "core/families/family.hpp"
#include "core/families/towers.hpp"

namespace tidemark {
namespace {

constexpr const char* kTower = "transformers 5.12 models/got_ocr2/modeling_got_ocr2.py: GotOcr2VisionEncoder.forward";
constexpr const char* kProjector =
    "transformers 5.12 models/got_ocr2/modeling_got_ocr2.py: GotOcr2MultiModalProjector.forward";
constexpr const char* kModel = "transformers 5.12 models/got_ocr2/modeling_got_ocr2.py: GotOcr2Model.forward";
constexpr NeckNames kNeck = {"vision_tower.neck", "vision_tower.neck.conv1", "vision_tower.neck.layer_norm1",
                             "vision_tower.neck.conv2", "vision_tower.neck.layer_norm2"};

Tensor tower(Net& net) {
  Scope in(net.tape, "vision_tower", kTower);
  const char* const kPatches = "vision_tower.patch_embed.projection";
  const Dim grid(net.arch.image_size / net.arch.patch_size), patch(net.arch.patch_size),
      channels(net.arch.num_channels);
  Tensor weight = net.parameter(kPatches, "weight", Shape{net.H, channels, patch, patch});
  Tensor bias = net.parameter(kPatches, "bias", Shape{net.H});
  Tensor hidden = patch_convolution(net.pixel_values, std::move(weight), std::move(bias));
  hidden = net.hooked_inputs(permute(std::move(hidden), {0, 2, 3, 1}));
  hidden = add(std::move(hidden), net.parameter("vision_tower", "pos_embed", Shape{Dim(1), grid, grid, net.H}));
  hidden = net.layers({"vision_tower.layers", net.arch.num_layers, sam_layer}, std::move(hidden));
  return sam_neck(net, kNeck, hidden);
}

Tensor project(Net& net, const Tensor& last) {
  Scope in(net.tape, "multi_modal_projector", kProjector);
  Tensor h = sam_convolution(net, "multi_modal_projector.conv_upsampler1", last, Dim(2 * last.size(1)), 3, 2);
  h = sam_convolution(net, "multi_modal_projector.conv_upsampler2", std::move(h), net.H, 3, 2);
  const Shape rows{h.dim(0), Dim(h.size(2) * h.size(3)), net.H};
  h = view(std::move(h), rows);
  return net.linear("multi_modal_projector.multimodal_projector", std::move(h), net.H, true);
}

Tensor features(Net& net) {
  Net& eyes = tower_part(net, Dim(tile_count(net)));
  const Tensor last = tower(eyes);
  return project(net, last);
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), features, kModel);
}

// transformers 5.12.1 models/got_ocr2/configuration_got_ocr2.py: GotOcr2Config, whose tower's feed-forward is as wide
// as mlp_dim says. Scores are made one by one there, whatever the language model's attention.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "qwen2");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"image_token_index", "image_token_id", "image_seq_length"});
  Architecture tower = read_sam_tower(fields, "vision_config");
  tower.model_type = architecture.model_type;
  tower.max_positions = (tower.image_size / tower.patch_size) * (tower.image_size / tower.patch_size);
  architecture.parts.push_back(std::move(tower));
}

const Program kProgram = {
    .forward = forward_with_pictures<merge>, .lm_head = language_head, .inputs = tile_inputs, .attention = kNoFlash};

constexpr ClassFacts kFacts = {
    .flex_attention = false, .no_split = NoSplit::kNotTower, .pictures = PictureRule::kOwnSize, .tiles = true};

}  // namespace

const Family kRows[] = {
    {"got_ocr2", "GotOcr2", "GotOcr2ForConditionalGeneration", kSeeingClasses, read_config, &kProgram, kModelLayers,
     kFacts},
};

extern const FamilyRows got_ocr2_rows;
const FamilyRows got_ocr2_rows = kRows;

}  // namespace tidemark
