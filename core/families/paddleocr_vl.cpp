// PaddleOCR-VL: Qwen2-VL's row of patches through SigLIP's layers, under a table of positions that is stretched to each
// picture; four neighbours become one token, picture by picture; ERNIE 4.5's layers with Qwen2-VL's rotation behind it.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/qwen_vl.hpp"
#include "core/families/towers.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kTower =
    "transformers 5.12 models/paddleocr_vl/modeling_paddleocr_vl.py: PaddleOCRVisionTransformer.forward";
constexpr const char* kEmbeddings =
    "transformers 5.12 models/paddleocr_vl/modeling_paddleocr_vl.py: PaddleOCRVisionEmbeddings.forward";
constexpr const char* kLayer =
    "transformers 5.12 models/paddleocr_vl/modeling_paddleocr_vl.py: PaddleOCRVisionEncoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/paddleocr_vl/modeling_paddleocr_vl.py: PaddleOCRVisionAttention.forward";
constexpr const char* kProjector =
    "transformers 5.12 models/paddleocr_vl/modeling_paddleocr_vl.py: PaddleOCRProjector.forward";
constexpr const char* kModel =
    "transformers 5.12 models/paddleocr_vl/modeling_paddleocr_vl.py: PaddleOCRVLModel.forward";

// transformers 5.12.1 models/paddleocr_vl/configuration_paddleocr_vl.py: PaddleOCRTextConfig. Its attention has no
// dropout.
void read_text(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 131072);
  read_kv_heads(fields, architecture, 2);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"use_bias"}, false);
  architecture.attention_out_bias = architecture.mlp_bias = architecture.attention_bias;
  accept_rotation(fields);
  fields.accept({"tie_word_embeddings", "attention_dropout", "compression_ratio", "ignored_index", "sliding_window",
                 "use_flash_attention", "weight_share_add_bias", "hidden_dropout_prob",
                 "attention_probs_dropout_prob"});
}

// PaddleOCRVisionConfig. What published files say beside nobody reads.
Architecture read_vision(ConfigFields& fields) {
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture tower;
  read_tower_sizes(vision, tower, 1152, 27, 16, 4304);
  tower.activation = read_activation(vision, {"hidden_act"}, "gelu_pytorch_tanh");
  tower.patch_size = square_side(vision, "patch_size", 14);
  tower.pictures.merge = vision.count({"spatial_merge_size"}, 2);
  const Count side = square_side(vision, "image_size", 384) / tower.patch_size;
  tower.pictures.positions = side * side;
  tower.attention_bias = tower.attention_out_bias = true;
  // A picture of a size that the job leaves open, as of Qwen2-VL.
  tower.image_size = 16 * tower.patch_size * tower.pictures.merge;
  tower.max_positions = 1;
  return tower;
}

// PaddleOCRVLConfig. The first files have the language model's keys beside vision_config.
void read_config(ConfigFields& fields, Architecture& architecture) {
  if (const Value* text = object_in(fields, "text_config")) {
    ConfigFields inner(*text, fields.path() + "/text_config", fields.issues());
    read_text(inner, architecture);
    inner.accept({"model_type", "dtype", "torch_dtype"});
    inner.report_unread(architecture.model_type);
  } else {
    read_text(fields, architecture);
  }
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  accept_rotation(fields);
  fields.accept({"image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id"});
  architecture.parts.push_back(read_vision(fields));
  architecture.language = &kQwen2VlLanguage;
}

/// A picture's patches, down and across.
PictureSize grid(const Net& net) {
  const Architecture& tower = net.arch.parts.empty() ? net.arch : net.arch.parts.front();
  const PictureSize size = picture_size(net);
  const Count token = tower.patch_size * tower.pictures.merge;
  const auto patches = [&](Count side) {
    return std::max<Count>(1, (side + token / 2) / token) * tower.pictures.merge;
  };
  return {patches(size.height), patches(size.width)};
}

// A picture at a time: the table stretched to its shape.
Tensor with_positions(Net& net, Tensor hidden) {
  const char* const kTable = "visual.vision_model.embeddings.position_embedding";
  const PictureSize g = grid(net);
  const Dim rows(g.height * g.width),
      edge(static_cast<Count>(std::sqrt(static_cast<double>(net.arch.pictures.positions))));
  const Tensor weight = net.parameter(kTable, "weight", Shape{Dim(net.arch.pictures.positions), net.H});
  net.tape.buffer("visual.vision_model.embeddings.position_ids", net.arch.pictures.positions * size_of(Dtype::kInt64));
  const Tensor table = unsqueeze(permute(view(weight, Shape{edge, edge, net.H}), {2, 0, 1}), 0);
  const Pieces pictures =
      split(std::move(hidden), 0, std::vector<Count>(static_cast<std::size_t>(picture_count(net)), rows.n()));
  std::vector<Tensor> placed;
  Tensor positions;
  for (const Tensor& picture : pictures.part) {
    Tensor wide = interpolate(table, Shape{Dim(1), net.H, Dim(g.height), Dim(g.width)});
    wide = transpose(view(std::move(wide), Shape{net.H, rows}), 0, 1);
    positions = clone(std::move(wide));  // repeat(t, 1)
    placed.push_back(add(picture, positions));
  }
  return cat(placed, 0);
}

Tensor embedded(Net& net) {
  Scope in(net.tape, "visual.vision_model.embeddings", kEmbeddings);
  return with_positions(net, row_patches(net, "visual.vision_model.embeddings.patch_embedding"));
}

constexpr RowAttention kNames = {kAttention,         "self_attn.q_proj",   "self_attn.k_proj",
                                 "self_attn.v_proj", "self_attn.out_proj", true};

Tensor layer(Net& net, Tensor hidden) {
  return siglip_row_layer(net, std::move(hidden), kLayer, kNames, vision_lengths(net));
}

Tensor tower(Net& net) {
  Scope in(net.tape, "visual.vision_model", kTower);
  Tensor hidden = embedded(net);
  {
    const Tensor positions = net.tape.allocate(Shape{net.S, Dim(2)}, Dtype::kInt64, "position_ids");
    const VisionTables tables = vision_tables(net);
    hidden = net.layers({"visual.vision_model.encoder.layers", net.arch.num_layers, layer}, std::move(hidden));
  }
  net.shared = {};
  return net.layer_norm("visual.vision_model.post_layernorm", std::move(hidden));
}

// merge² neighbours side by side in one vector, by a copy.
Tensor projected(Net& net, const Net& eyes, Tensor picture) {
  const PictureSize g = grid(net);
  const Count merge = eyes.arch.pictures.merge;
  const Dim down(g.height / merge), across(g.width / merge), side(merge), wide(merge * eyes.H.n()),
      all(merge * wide.n());
  Tensor h = net.layer_norm("projector.pre_norm", std::move(picture));
  h = permute(view(std::move(h), Shape{down, side, across, wide}), {0, 2, 1, 3});
  h = view(contiguous(std::move(h)), Shape{Dim(down.n() * across.n()), all});
  h = net.linear("projector.linear_1", std::move(h), all, true);
  h = gelu(std::move(h));
  return net.linear("projector.linear_2", std::move(h), net.H, true);
}

Tensor features(Net& net) {
  Net& eyes = qwen_tower_part(net);
  const Tensor hidden = tower(eyes);
  eyes.pixel_values.reset();
  Scope in(net.tape, "projector", kProjector);
  const Count pictures = picture_count(net);
  const Pieces pieces =
      split(hidden, 0, std::vector<Count>(static_cast<std::size_t>(pictures), hidden.size(0) / pictures));
  const std::size_t projector = net.tape.parameter_place();  // the same for each picture
  std::vector<Tensor> made;
  for (const Tensor& picture : pieces.part) {
    net.tape.set_parameter_place(projector);
    made.push_back(projected(net, eyes, picture));
  }
  return cat(made, 0);
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), features, kModel, false);
}

const Program kProgram = {.forward = forward_with_pictures<merge>, .lm_head = language_head, .inputs = qwen_inputs};

constexpr ClassFacts kFacts = {
    .no_split = NoSplit::kNotTower, .pictures = PictureRule::kPixels, .behind_language = "projector"};

}  // namespace

Tensor row_patches(Net& net, const char* name) {
  const Dim channels(net.arch.num_channels), side(net.arch.patch_size);
  Tensor weight = net.parameter(name, "weight", Shape{net.H, channels, side, side});
  Tensor bias = net.parameter(name, "bias", Shape{net.H});
  Tensor pixels = view(net.pixel_values, Shape{net.S, channels, side, side});
  pixels = patch_convolution(std::move(pixels), std::move(weight), std::move(bias));
  return view(std::move(pixels), Shape{net.S, net.H});
}

Tensor siglip_row_attention(Net& net, Tensor hidden, const RowAttention& names, const std::vector<Count>& lengths) {
  Scope in(net.tape, "self_attn", names.source);
  const Tensor x = std::move(hidden);
  const Shape heads{Dim(x.numel() / net.H.n()), net.A, net.hd};
  Tensor q = view(net.linear(names.q, x, net.H, true), heads);
  Tensor k = view(net.linear(names.k, x, net.H, true), heads);
  Tensor v = view(net.linear(names.v, x, net.H, true), heads);
  if (names.turned) rotate_vision(net, q, k);
  return attend_in_stretches(net, std::move(q), std::move(k), std::move(v), lengths, names.out);
}

Tensor siglip_row_layer(Net& net, Tensor hidden, const char* source, const RowAttention& names,
                        const std::vector<Count>& lengths) {
  Scope in(net.tape, "", source);
  Tensor residual = std::move(hidden);
  Tensor h = siglip_row_attention(net, net.layer_norm("layer_norm1", residual), names, lengths);
  h = add(residual, std::move(h));
  residual = h;
  h = qwen_vision_mlp(net, net.layer_norm("layer_norm2", std::move(h)), "mlp.fc1", "mlp.fc2", source);
  return add(std::move(residual), std::move(h));
}

const Family kRows[] = {
    {"paddleocr_vl", "PaddleOCRVL", "PaddleOCRVLForConditionalGeneration", kSeeingClasses, read_config, &kProgram,
     kModelLayers, kFacts},
};

extern const FamilyRows paddleocr_vl_rows;
const FamilyRows paddleocr_vl_rows = kRows;

}  // namespace tidemark
