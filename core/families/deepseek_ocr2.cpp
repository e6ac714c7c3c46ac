// DeepSeek-OCR 2: SAM's tower on a page, and again on its tiles where it is larger than one; learned queries behind
// what two convolutions leave of its places, all through Qwen2's layers, in which places see each other and queries
// what is before them; what the queries become is read by DeepSeek-V2's experts behind Llama's attention.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/families/stages.hpp"
#include "core/families/towers.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kSam =
    "transformers 5.12 models/deepseek_ocr2/modeling_deepseek_ocr2.py: DeepseekOcr2SamVisionEncoder.forward";
constexpr const char* kEncoder =
    "transformers 5.12 models/deepseek_ocr2/modeling_deepseek_ocr2.py: DeepseekOcr2VisionEncoder.forward";
constexpr const char* kEncoderLayer =
    "transformers 5.12 models/deepseek_ocr2/modeling_deepseek_ocr2.py: DeepseekOcr2VisionEncoderLayer.forward";
constexpr const char* kTower =
    "transformers 5.12 models/deepseek_ocr2/modeling_deepseek_ocr2.py: DeepseekOcr2VisionModel.forward";
constexpr const char* kFeatures =
    "transformers 5.12 models/deepseek_ocr2/modeling_deepseek_ocr2.py: DeepseekOcr2Model.get_image_features";
constexpr const char* kModel =
    "transformers 5.12 models/deepseek_ocr2/modeling_deepseek_ocr2.py: DeepseekOcr2Model.forward";
constexpr const char* kLayer =
    "transformers 5.12 models/deepseek_ocr2/modeling_deepseek_ocr2.py: DeepseekOcr2TextDecoderLayer.forward";
constexpr const char* kSamLayers = "vision_tower.sam_encoder.layers";
constexpr NeckNames kNeck = {"vision_tower.sam_encoder.neck", "vision_tower.sam_encoder.neck.conv1",
                             "vision_tower.sam_encoder.neck.layer_norm1", "vision_tower.sam_encoder.neck.conv2",
                             "vision_tower.sam_encoder.neck.layer_norm2"};

/// The architecture's parts: SAM's tower, then the encoder of its places.
constexpr std::size_t kQwen = 1;

/// DeepseekOcr2ImageProcessor's sides, and how many queries stand for each (DeepseekOcr2VisionModel).
struct View {
  Count side, queries;
  const char* name;
};
constexpr View kTile = {768, 144, "vision_tower.query_768_resolution"};
constexpr View kPage = {1024, 256, "vision_tower.query_1024_resolution"};

// transformers 5.12.1 models/deepseek_ocr2/configuration_deepseek_ocr2.py: DeepseekOcr2TextConfig.
void read_text(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  derive_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = architecture.attention_out_bias = fields.flag({"attention_bias"}, false);
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  read_routed_experts(fields, architecture, {64, 6, 1407}, 2);
  read_mlp_layer_types(fields, architecture);
  read_expert_groups(fields, architecture, 1, 1);
  architecture.experts.limited_groups = fields.text({"topk_method"}, "greedy") == "group_limited_greedy";
  fields.accept({"model_type", "dtype", "torch_dtype", "tie_word_embeddings", "pretraining_tp", "rope_parameters",
                 "rope_theta", "rope_scaling"});
  fields.report_unread("deepseek_ocr2_text");
}

// DeepseekOcr2VisionEncoderConfig, whose layers are Qwen2's without a window.
Architecture read_encoder(ConfigFields& fields) {
  ConfigFields encoder(required_object(fields, "encoder_config"), fields.path() + "/encoder_config", fields.issues());
  Architecture tower;
  read_tower_sizes(encoder, tower, 4096, 32, 32, 22016);
  tower.num_kv_heads = encoder.count({"num_key_value_heads"}, tower.num_heads);
  tower.rotary_dim = tower.head_dim;
  tower.activation = read_activation(encoder, {"hidden_act"}, "silu");
  tower.attention_bias = true;
  encoder.accept({"model_type", "dtype", "torch_dtype", "vocab_size", "max_position_embeddings", "rope_parameters",
                  "rope_theta", "rope_scaling", "tie_word_embeddings", "layer_types", "max_window_layers",
                  "sliding_window", "use_sliding_window", "rms_norm_eps"});
  encoder.report_unread("deepseek_ocr2_encoder");
  return tower;
}

// DeepseekOcr2Config, DeepseekOcr2VisionConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  ConfigFields text(required_object(fields, "text_config"), fields.path() + "/text_config", fields.issues());
  read_text(text, architecture);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  fields.accept({"image_token_id"});
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  architecture.parts.push_back(read_sam_tower(vision, "sam_config"));
  architecture.parts.push_back(read_encoder(vision));
  vision.accept({"model_type", "dtype", "torch_dtype"});
  vision.report_unread("deepseek_ocr2_vision");
  if (has_error(fields.issues())) return;
  const Architecture& sam = architecture.parts.front();
  const std::vector<Count>& widths = sam.conv_dims;
  if (widths.size() != 2 || widths.back() != architecture.parts[kQwen].hidden_size || sam.image_size != kPage.side ||
      sam.patch_size * sam.patch_size != kPage.queries) {
    vision.error("INVALID_VALUE", "sam_config",
                 "Pages of 1024 in patches of 16 are modelled, and two \"downsample_channels\" of which the last is "
                 "the encoder's \"hidden_size\".");
  }
}

// image_processing_deepseek_ocr2.py: get_optimal_tiled_canvas, of two tiles to six; none of a page that is no larger
// than one.
Count tiles_of(const Net& net) {
  constexpr Count kLeast = 2, kMost = 6;
  if (net.job.image_tiles > 0) return net.job.image_tiles - 1;
  const PictureSize size = picture_size(net);
  if (std::max(size.height, size.width) <= kTile.side) return 0;
  const double ratio = static_cast<double>(size.width) / static_cast<double>(size.height);
  const auto area = static_cast<double>(size.width) * static_cast<double>(size.height);
  double nearest = INFINITY;
  Count best = 1;
  for (Count tiles = kLeast; tiles <= kMost; ++tiles) {
    for (Count across = 1; across <= tiles; ++across) {
      if (tiles % across != 0) continue;
      const double off = std::fabs(ratio - static_cast<double>(across) / static_cast<double>(tiles / across));
      const bool larger = off == nearest && area > 0.5 * static_cast<double>(kTile.side * kTile.side * tiles);
      if (off >= nearest && !larger) continue;
      nearest = off;
      best = tiles;
    }
  }
  return best;
}

Tensor pixels(Net& net, const View& view, Count pictures) {
  const Dim side(view.side), channels(net.arch.parts.front().num_channels);
  return net.tape.allocate(Shape{Dim(pictures), channels, side, side}, net.weight_dtype(4), "pixel_values");
}

void inputs(Net& net) {
  text_inputs(net);
  if (net.job.images_per_sample == 0) return;
  const Count pictures = picture_count(net), tiles = tiles_of(net);
  net.pixel_values = pixels(net, kPage, pictures);
  integer_input(net, Shape{Dim(pictures)}, "num_local_patches");
  if (tiles > 0) net.more_inputs.push_back(pixels(net, kTile, pictures * tiles));
}

// interpolate_pos_encoding: the page's own table, or one that is stretched to a tile in fp32.
Tensor places(Net& net, Dim side) {
  const Dim own(net.arch.image_size / net.arch.patch_size), one(1);
  Tensor table = net.parameter("vision_tower.sam_encoder", "pos_embed", Shape{one, own, own, net.H});
  if (side.n() == own.n()) return table;
  const Dtype dtype = table.dtype();
  table = to(permute(std::move(table), {0, 3, 1, 2}), Dtype::kFp32);
  table = to(interpolate(std::move(table), Shape{one, net.H, side, side}), dtype);
  return permute(std::move(table), {0, 2, 3, 1});
}

Tensor sam(Net& net, const Tensor& pictures) {
  Scope in(net.tape, "vision_tower.sam_encoder", kSam);
  const char* const kPatches = "vision_tower.sam_encoder.patch_embed.projection";
  const Dim patch(net.arch.patch_size), channels(net.arch.num_channels);
  Tensor weight = net.parameter(kPatches, "weight", Shape{net.H, channels, patch, patch});
  Tensor bias = net.parameter(kPatches, "bias", Shape{net.H});
  Tensor hidden = patch_convolution(pictures, std::move(weight), std::move(bias));
  hidden = net.hooked_inputs(permute(std::move(hidden), {0, 2, 3, 1}));
  const Dim side = hidden.dim(1);
  hidden = add(std::move(hidden), places(net, side));
  hidden = net.layers({kSamLayers, net.arch.num_layers, sam_layer}, std::move(hidden));
  Tensor h = sam_neck(net, kNeck, hidden);
  h = sam_convolution(net, "vision_tower.sam_encoder.proj.conv1", std::move(h), Dim(net.arch.conv_dims[0]), 3, 2);
  h = sam_convolution(net, "vision_tower.sam_encoder.proj.conv2", std::move(h), Dim(net.arch.conv_dims[1]), 3, 2);
  const Shape rows{h.dim(0), Dim(h.size(2) * h.size(3)), h.dim(1)};
  return view(std::move(h), rows);
}

Tensor encoder_layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kEncoderLayer, llama_attention, llama_mlp);
}

Tensor encoder(Net& net, Tensor embeds) {
  Scope in(net.tape, "vision_tower.vision_encoder", kEncoder);
  make_position_ids(net);
  const Tensor blocks = net.tape.allocate(Shape{net.B, net.S}, Dtype::kInt64, "block_sequence_ids");
  const Shape scores{net.B, Dim(1), net.S, net.S};
  net.shared.causal_mask = net.tape.allocate(scores, Dtype::kBool, "causal or block mask (bool)");
  if (net.job.attention == AttentionKernel::kEager) {
    net.shared.causal_mask = net.tape.allocate(scores, embeds.dtype(), "eager mask");
  }
  rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  Tensor hidden = net.layers({"vision_tower.vision_encoder.layers", net.arch.num_layers, encoder_layer}, embeds);
  net.shared = {};
  return rms_norm(net, "vision_tower.vision_encoder.norm", std::move(hidden));
}

// What the queries of these pictures become, as the language model reads it: [n, queries, H].
Tensor seen(Net& net, const View& of, const Tensor& pictures) {
  const std::vector<Architecture>& parts = net.arch.parts;
  const Dim n = pictures.dim(0), side(of.side / parts.front().patch_size), queries(of.queries);
  Net& eyes = net.part(parts.front(), n, Dim(side.n() * side.n()));
  Net& reader = net.part(parts[kQwen], n, Dim(2 * of.queries));
  Tensor made;
  {
    Scope in(net.tape, "vision_tower", kTower);
    const Tensor hidden = sam(eyes, pictures);
    Tensor query;
    for (const View& known : {kTile, kPage}) {
      const bool mine = known.side == of.side;
      const Declared other(net, !mine);
      Tensor weight = net.parameter(known.name, "weight", Shape{Dim(known.queries), reader.H});
      if (mine) query = expand(unsqueeze(std::move(weight), 0), Shape{n, queries, reader.H});
    }
    Tensor combined = cat({&hidden, &query}, 1);
    made = encoder(reader, std::move(combined));
    made = narrow(std::move(made), 1, hidden.size(1), queries);
  }
  return net.linear("multi_modal_projector", made, net.H, true);
}

Tensor features(Net& net) {
  Tape& t = net.tape;
  Scope in(t, "", kFeatures);
  const Count pictures = picture_count(net), tiles = net.job.images_per_sample > 0 ? tiles_of(net) : 0;
  const std::size_t place = t.parameter_place();
  const Tensor page = net.pixel_values.defined() ? net.pixel_values : pixels(net, kPage, pictures);
  const Tensor global = seen(net, kPage, page);
  Pieces local;
  if (tiles > 0) {  // the same modules again
    const auto& stacks = net.plan().stacks;
    const auto first = std::find_if(stacks.begin(), stacks.end(), [](const auto& s) { return s.path == kSamLayers; });
    net.begin_micro_step(static_cast<std::size_t>(first - stacks.begin()));
    t.set_parameter_place(place);
    const Tensor all = seen(net, kTile, net.more_inputs.back());
    local = split(all, 0, std::vector<Count>(static_cast<std::size_t>(pictures), tiles));
  }
  const Tensor separator = unsqueeze(net.parameter("", "view_separator", Shape{net.H}), 0);
  std::vector<Tensor> made;
  for (Count i = 0; i < pictures; ++i) {
    const Tensor whole = select(global, 0);
    if (tiles == 0) {
      made.push_back(cat({&whole, &separator}, 0));
      continue;
    }
    const Tensor parts = view(local.part[static_cast<std::size_t>(i)], Shape{Dim(tiles * kTile.queries), net.H});
    made.push_back(cat({&parts, &whole, &separator}, 0));
  }
  return cat(made, 0);
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), features, kModel);
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, llama_attention, deepseek_v2_mlp);
}

const Program kLanguage = {one_stack<llama_embed, layer, llama_norm>, llama_head};

void read_all(ConfigFields& fields, Architecture& architecture) {
  read_config(fields, architecture);
  architecture.language = &kLanguage;
}

const Program kProgram = {.forward = forward_with_pictures<merge>,
                          .lm_head = language_head,
                          .inputs = inputs,
                          .attention = kNoFlash,
                          .check = check_router_is_unpacked};

constexpr ClassFacts kFacts = {.tiles = true};

}  // namespace

const Family kRows[] = {
    {"deepseek_ocr2", "DeepseekOcr2", "DeepseekOcr2ForConditionalGeneration", kSeeingClasses, read_all, &kProgram,
     kModelLayers, kFacts},
};

extern const FamilyRows deepseek_ocr2_rows;
const FamilyRows deepseek_ocr2_rows = kRows;

}  // namespace tidemark
