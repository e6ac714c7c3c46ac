// Pixtral's tower: all pictures of a batch in one sequence, with a mask that keeps them apart. Mistral 3 joins it to a
// language model by a norm, a merger of patches and two linear layers; LightOnOCR's is the same.
#include <vector>

#include "core/families/family.hpp"
#include "core/families/towers.hpp"

namespace tidemark {
namespace {

constexpr const char* kTower = "transformers 5.12 models/pixtral/modeling_pixtral.py: PixtralVisionModel.forward";
constexpr const char* kAttention = "transformers 5.12 models/pixtral/modeling_pixtral.py: PixtralAttention.forward";
constexpr const char* kLayer = "transformers 5.12 models/pixtral/modeling_pixtral.py: PixtralAttentionLayer.forward";
constexpr const char* kMlp = "transformers 5.12 models/pixtral/modeling_pixtral.py: PixtralMLP.forward";

Tensor attention_block(Net& net, Tensor hidden) {
  Scope in(net.tape, "attention", kAttention);
  const Tensor x = std::move(hidden);
  Tensor q = net.linear("attention.q_proj", x, net.Q);
  Tensor k = net.linear("attention.k_proj", x, net.Q);
  Tensor v = net.linear("attention.v_proj", x, net.Q);
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.A, net.hd);
  v = split_heads(net, std::move(v), net.A, net.hd);
  Tensor q_embed = rotate(net, q);
  Tensor k_embed = rotate(net, k);
  q = std::move(q_embed);
  k = std::move(k_embed);
  AttentionOptions options;
  options.mask = net.shared.causal_mask;
  options.dropout = net.arch.attention_dropout;
  options.causal = false;
  options.has_groups = false;
  const Tensor out = attention(net, q, k, v, options);
  return net.linear("attention.o_proj", out, net.H);
}

Tensor feed_forward(Net& net, Tensor hidden) {
  Scope in(net.tape, "feed_forward", kMlp);
  const Tensor x = std::move(hidden);
  Tensor gate = net.linear("feed_forward.gate_proj", x, net.F);
  {
    Scope act(net.tape, "feed_forward.act_fn", kMlp);
    gate = activate(net.arch.activation, std::move(gate));
  }
  Tensor up = net.linear("feed_forward.up_proj", x, net.F);
  gate = mul(std::move(gate), std::move(up));
  return net.linear("feed_forward.down_proj", std::move(gate), net.H);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "attention_norm", residual);
  h = attention_block(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = rms_norm(net, "ffn_norm", std::move(h));
  h = feed_forward(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

void make_rotation(Net& net, Dtype dtype) {
  Tape& t = net.tape;
  // Until transformers 5.17 a row for each place.
  const Count side = net.arch.image_size / net.arch.patch_size, half = net.hd.n() / 2;
  const Count kept = net.job.framework.at_least(5, 17) ? half : side * side * net.hd.n();
  for (const char* table : {"inv_freq", "original_inv_freq"}) t.buffer(table, kept * 4);
  const Shape shape{Dim(1), net.S, net.hd};
  const Tensor freqs = t.allocate(shape, Dtype::kFp32, "index");
  Tensor cos = t.allocate(shape, Dtype::kFp32, "cos");
  Tensor sin = t.allocate(shape, Dtype::kFp32, "sin");
  net.shared.cos = to(std::move(cos), dtype);
  net.shared.sin = to(std::move(sin), dtype);
}

Tensor tower(Net& net) {
  Scope in(net.tape, "vision_tower", kTower);
  Tensor patches = patch_embedding(net, "vision_tower.patch_conv", net.pixel_values, false);
  // torch.cat of the pictures' patches: one sequence.
  net.S = Dim(patches.size(0) * patches.size(1));
  net.B = Dim(1);
  net.T = net.S;
  const Pieces pictures = unbind(std::move(patches), 0);
  const Tensor sequence = cat(std::vector<Tensor>(pictures.part.begin(), pictures.part.end()), 0);
  Tensor hidden = rms_norm(net, "vision_tower.ln_pre", unsqueeze(sequence, 0));
  net.shared.position_ids = net.tape.allocate(Shape{Dim(1), net.S}, Dtype::kInt64, "position_ids");
  make_rotation(net, hidden.dtype());
  if (!wants_flash(net.job)) {
    net.shared.causal_mask = net.tape.allocate(Shape{Dim(1), Dim(1), net.S, net.S}, hidden.dtype(), "full");
  }
  Stack stack{"vision_tower.transformer.layers", net.arch.num_layers, layer};
  if (!net.arch.pictures.layers.empty()) stack.after = keep_hidden;
  hidden = net.layers(stack, std::move(hidden));
  net.shared = {};
  return hidden;
}

}  // namespace

// transformers 5.12.1 models/pixtral/configuration_pixtral.py: PixtralVisionConfig.
void read_pixtral_tower(ConfigFields& fields, Architecture& tower_architecture) {
  read_tower_sizes(fields, tower_architecture, 1024, 24, 16, 4096);
  tower_architecture.image_size = square_side(fields, "image_size", 1024);
  // models/pixtral/image_processing_pixtral.py: get_resize_output_image_size makes larger ones smaller, and no others.
  tower_architecture.pictures.keeps_size = true;
  tower_architecture.patch_size = square_side(fields, "patch_size", 16);
  tower_architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  fields.accept({"rope_theta", "rope_parameters", "head_dim", "is_composition"});
}

const Program kPixtralTower = {tower};

namespace {

constexpr const char* kMerger = "transformers 5.12 models/mistral3/modeling_mistral3.py: Mistral3PatchMerger.forward";
constexpr const char* kProjector =
    "transformers 5.12 models/mistral3/modeling_mistral3.py: Mistral3MultiModalProjector.forward";
constexpr const char* kModel = "transformers 5.12 models/mistral3/modeling_mistral3.py: Mistral3Model.forward";

// transformers 5.12.1 models/mistral3/configuration_mistral3.py: Mistral3Config.
void read_mistral3(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "mistral");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  if (!read_tower(fields, architecture, "pixtral")) return;
  Pictures& pictures = architecture.pictures;
  pictures.merge = fields.count({"spatial_merge_size"}, 2);
  pictures.activation = read_activation(fields, {"projector_hidden_act"}, "gelu");
  pictures.bias = fields.flag({"multimodal_projector_bias"}, false);
  read_feature_layers(fields, architecture.parts.front(), {-1});
  fields.accept({"image_token_index", "image_token_id", "image_seq_length", "vision_feature_select_strategy"});
}

// transformers 5.12.1 models/lighton_ocr/configuration_lighton_ocr.py: LightOnOcrConfig. Its modules have other names
// (full_name).
void read_lighton(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "qwen3");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  if (!read_tower(fields, architecture, "pixtral")) return;
  architecture.pictures.merge = fields.count({"spatial_merge_size"}, 2);
  architecture.pictures.bias = false;
  fields.accept({"image_token_id"});
}

// F.unfold of each picture's grid: as many numbers as before, in another order.
Tensor merged(Net& net, Tensor rows) {
  Scope in(net.tape, "multi_modal_projector.patch_merger", kMerger);
  const Architecture& part = net.arch.parts.front();
  const PictureSize size = picture_size(net);
  const Count m = net.arch.pictures.merge, pictures = picture_count(net);
  const Count height = size.height / part.patch_size / m, width = size.width / part.patch_size / m;
  const Dim wide(rows.size(1) * m * m), tokens(height * width);
  const std::vector<Count> sizes(static_cast<std::size_t>(pictures), rows.size(0) / pictures);
  const Pieces pieces = split(rows, 0, sizes);
  std::vector<Tensor> grids;
  for (const Tensor& picture : pieces.part) {
    Tensor grid = contiguous(transpose(picture, 0, 1));  // im2col
    grids.push_back(transpose(view(std::move(grid), Shape{wide, tokens}), 0, 1));
  }
  Tensor x = cat(grids, 0);
  return net.linear("multi_modal_projector.patch_merger.merging_layer", std::move(x), Dim(wide.n() / (m * m)));
}

Tensor features(Net& net) {
  Net& part = tower_part(net, Dim(picture_count(net)));
  Tensor x;
  {
    Scope in(net.tape, "multi_modal_projector", kProjector);
    const Tensor last = part.arch.program->forward(part);
    Tensor selected = part.model_locals.empty() ? last : selected_features(net, part);
    selected = view(selected, Shape{selected.dim(1), selected.dim(2)});
    x = rms_norm(net, "multi_modal_projector.norm", selected);
    x = merged(net, std::move(x));
    x = net.linear("multi_modal_projector.linear_1", std::move(x), net.H, net.arch.pictures.bias);
    x = activate(net.arch.pictures.activation, std::move(x));
    x = net.linear("multi_modal_projector.linear_2", std::move(x), net.H, net.arch.pictures.bias);
    let_tower_go(net, part, last);
  }
  net.keep_image_output(x);
  const Count pictures = picture_count(net);
  const std::vector<Count> sizes(static_cast<std::size_t>(pictures), x.size(0) / pictures);
  const Pieces pieces = split(std::move(x), 0, sizes);
  return cat(std::vector<Tensor>(pieces.part.begin(), pieces.part.end()), 0);
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), features, kModel);
}

void inputs(Net& net) {
  picture_inputs(net, Dim(picture_count(net)), picture_size(net));
  integer_input(net, Shape{Dim(picture_count(net)), Dim(2)}, "image_sizes");
}

const Program kMistral3 = {forward_with_pictures<merge>, language_head, kDecoderForwards, OwnLoss::kFp32, {}, inputs};

// LightOnOcrModel
std::string full_name_of(const Architecture& architecture, std::string_view path) {
  const std::string name = renamed(path, "vision_tower.", "vision_encoder.");
  return name_within_body(architecture, renamed(name, "multi_modal_projector.", "vision_projection."),
                          "language_model.");
}

// PixtralAttentionLayer.__init__ comes to its attention last.
constexpr std::string_view kPixtralFirst = "feed_forward attention.k attention.v attention.q";
constexpr ClassFacts kFacts = {
    .pictures = PictureRule::kLongestSide, .layer_first = kPixtralFirst, .full_name = full_name_of};
constexpr ClassFacts kShrinks = {.pictures = PictureRule::kLongestSide, .layer_first = kPixtralFirst};

}  // namespace

const Family kRows[] = {
    {"mistral3", "Mistral3", "Mistral3ForConditionalGeneration", kSeeingClasses, read_mistral3, &kMistral3,
     kModelLayers, kShrinks},
    {"lighton_ocr", "LightOnOcr", "LightOnOcrForConditionalGeneration", kSeeingClasses, read_lighton, &kMistral3,
     kModelLayers, kFacts},
};

extern const FamilyRows pixtral_rows;
const FamilyRows pixtral_rows = kRows;

}  // namespace tidemark
