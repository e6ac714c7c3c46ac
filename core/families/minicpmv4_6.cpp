// MiniCPM-V 4.6: SigLIP's layers on one row of all pictures' patches, of which four become one inside the tower, after
// attention within windows of four, and four again behind it; a large picture is cut into slices, the whole before
// them. Qwen 3.5 behind it.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/qwen_vl.hpp"
#include "core/families/towers.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kTower =
    "transformers 5.12 models/minicpmv4_6/modeling_minicpmv4_6.py: MiniCPMV4_6VisionModel.forward";
constexpr const char* kEmbeddings =
    "transformers 5.12 models/minicpmv4_6/modeling_minicpmv4_6.py: MiniCPMV4_6VisionEmbeddings.forward";
constexpr const char* kLayer =
    "transformers 5.12 models/minicpmv4_6/modeling_minicpmv4_6.py: MiniCPMV4_6VisionEncoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/minicpmv4_6/modeling_minicpmv4_6.py: MiniCPMV4_6VisionAttention.forward";
constexpr const char* kWindows =
    "transformers 5.12 models/minicpmv4_6/modeling_minicpmv4_6.py: MiniCPMV4_6ViTWindowAttentionMerger.forward";
constexpr const char* kMerger =
    "transformers 5.12 models/minicpmv4_6/modeling_minicpmv4_6.py: MiniCPMV4_6Merger.forward";
constexpr const char* kModel = "transformers 5.12 models/minicpmv4_6/modeling_minicpmv4_6.py: MiniCPMV4_6Model.forward";
constexpr RowAttention kNames = {kAttention,         "self_attn.q_proj",   "self_attn.k_proj",
                                 "self_attn.v_proj", "self_attn.out_proj", false};
constexpr RowAttention kWindowNames = {kAttention,
                                       "vision_tower.vit_merger.self_attn.q_proj",
                                       "vision_tower.vit_merger.self_attn.k_proj",
                                       "vision_tower.vit_merger.self_attn.v_proj",
                                       "vision_tower.vit_merger.self_attn.out_proj",
                                       false};

constexpr Count kSide = 2;  ///< of what becomes one: window_kernel_size, merge_kernel_size

/// Kinds of the tower's layers.
enum Place : std::uint8_t { kBefore, kMerges, kBehind };

// transformers 5.12.1 models/minicpmv4_6/configuration_minicpmv4_6.py: MiniCPMV4_6VisionConfig.
Architecture read_vision(ConfigFields& fields, Count merges) {
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture tower;
  read_tower_sizes(vision, tower, 768, 12, 12, 3072);
  tower.activation = read_activation(vision, {"hidden_act"}, "gelu_pytorch_tanh");
  tower.patch_size = square_side(vision, "patch_size", 16);
  tower.attention_bias = tower.attention_out_bias = true;
  const Count side = square_side(vision, "image_size", 224) / std::max<Count>(1, tower.patch_size);
  tower.pictures.positions = side * side;
  for (Count i = 0; i < tower.num_layers; ++i) {
    tower.layer_kinds.push_back(i < merges ? kBefore : i == merges ? kMerges : kBehind);
  }
  if (merges >= tower.num_layers) {
    fields.error("INVALID_VALUE", "insert_layer_id", "Only the number of one of the tower's layers is modelled.");
  }
  if (square_side(vision, "window_kernel_size", kSide) != kSide) {
    vision.error("INVALID_VALUE", "window_kernel_size", "Only 2 by 2 is modelled, as of all published files.");
  }
  vision.accept({"model_type", "layer_norm_eps", "torch_dtype", "dtype", "insert_layer_id", "vision_use_head"});
  vision.report_unread("minicpmv4_6_vision");
  return tower;
}

// MiniCPMV4_6Config. `image_size` of the model is its processor's scale_resolution.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "qwen3_5_text");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.parts.push_back(read_vision(fields, fields.count({"insert_layer_id"}, 6, 0)));
  architecture.parts.front().image_size = fields.count({"image_size"}, 448);
  if (fields.text({"downsample_mode"}, "16x") != "16x" || fields.count({"merger_times"}, 1) != 1 ||
      square_side(fields, "merge_kernel_size", kSide) != kSide) {
    fields.error("INVALID_VALUE", "downsample_mode",
                 "Only \"16x\" by one merger of 2 by 2 is modelled, as published files have it.");
  }
  fields.accept({"image_token_id", "video_token_id", "drop_vision_last_layer", "patch_size"});
}

/// A piece of a picture, in patches.
struct Piece {
  Count height = 1, width = 1;
  Count patches() const { return height * width; }
};

/// Sides that need be no whole numbers.
struct Sides {
  double height = 0.0, width = 0.0;
};

// image_processing_minicpmv4_6.py: ensure_divide.
Count rounded(double x, Count unit) {
  return std::max(unit, static_cast<Count>(std::nearbyint(x / static_cast<double>(unit))) * unit);
}

// image_processing_minicpmv4_6.py: MiniCPMV4_6ImageProcessor.find_best_resize.
Piece resized(const Architecture& tower, Sides size, bool upscale) {
  const auto side = static_cast<double>(tower.image_size);
  if (size.height * size.width > side * side || upscale) {
    const double aspect = size.width / size.height;
    size.height = std::floor(side / std::sqrt(aspect));
    size.width = std::floor(size.height * aspect);
  }
  const Count unit = tower.patch_size * kSide * kSide;
  return {rounded(size.height, unit) / tower.patch_size, rounded(size.width, unit) / tower.patch_size};
}

/// Slices down and across; none where the picture stays in one piece.
struct Grid {
  Count down = 0, across = 0;
};

// image_processing_minicpmv4_6.py: MiniCPMV4_6ImageProcessor.get_sliced_grid, max_slice_nums = 9.
Grid sliced(const Architecture& tower, Sides size) {
  constexpr Count kMost = 9;
  const double side = static_cast<double>(tower.image_size), ratio = size.width / size.height;
  const Count wanted =
      std::min(kMost, static_cast<Count>(std::ceil(std::min(size.width * size.height / (side * side), 1e6))));
  if (wanted <= 1) return {};
  Grid best{1, 1};
  double least = INFINITY;
  for (Count slices = wanted - 1; slices <= std::min(wanted + 1, kMost); ++slices) {
    for (Count across = 1; slices > 1 && across <= slices; ++across) {
      if (slices % across != 0) continue;
      // abs(log(ratio) - log(width / height)), whose exponential this is.
      const double apart = ratio * static_cast<double>(slices / across) / static_cast<double>(across);
      const double off = std::max(apart, 1 / apart);
      if (off >= least) continue;
      least = off;
      best = {slices / across, across};
    }
  }
  return best;
}

Grid grid_of(const Net& net) {
  const Architecture& tower = net.arch.parts.empty() ? net.arch : net.arch.parts.front();
  const PictureSize size = picture_size(net);
  return sliced(tower, {static_cast<double>(size.height), static_cast<double>(size.width)});
}

// MiniCPMV4_6ImageProcessor._preprocess: the pieces of all pictures, of each the whole, then its slices.
std::vector<Piece> all_pieces(const Net& net) {
  const Architecture& tower = net.arch.parts.empty() ? net.arch : net.arch.parts.front();
  const PictureSize pixels = picture_size(net);
  const Sides size{static_cast<double>(pixels.height), static_cast<double>(pixels.width)};
  const Grid grid = grid_of(net);
  std::vector<Piece> of_one = {resized(tower, size, grid.down == 0)};
  if (grid.down > 0) {  // get_refine_size
    const auto part = [](double whole, Count parts) {
      return static_cast<double>(rounded(whole, parts)) / static_cast<double>(parts);
    };
    const Piece slice = resized(tower, {part(size.height, grid.down), part(size.width, grid.across)}, true);
    of_one.insert(of_one.end(), static_cast<std::size_t>(grid.down * grid.across), slice);
  }
  std::vector<Piece> all;
  for (Count i = 0; i < picture_count(net); ++i) all.insert(all.end(), of_one.begin(), of_one.end());
  return all;
}

Count patches_of(const std::vector<Piece>& pieces) {
  Count patches = 0;
  for (const Piece& piece : pieces) patches += piece.patches();
  return patches;
}

Tensor pixels(Net& net) {
  const Architecture& tower = net.arch.parts.front();
  const Dim channels(tower.num_channels), side(tower.patch_size), row(patches_of(all_pieces(net)) * side.n());
  return net.tape.allocate(Shape{Dim(1), channels, side, row}, Dtype::kFp32, "pixel_values");
}

void inputs(Net& net) {
  text_inputs(net);
  if (net.job.images_per_sample == 0) return;
  net.pixel_values = pixels(net);
  const Dim count(static_cast<Count>(all_pieces(net).size()));
  net.more_inputs.push_back(net.tape.allocate(Shape{count, Dim(2)}, Dtype::kInt32, "target_sizes"));
}

// A row of the table for each patch, piece by piece.
Tensor embedded(Net& net, const std::vector<Piece>& all) {
  Scope in(net.tape, "vision_tower.embeddings", kEmbeddings);
  Tensor patches = patch_embedding(net, "vision_tower.embeddings.patch_embedding", net.pixel_values, true);
  const std::size_t table = net.tape.parameter_place();
  std::vector<Tensor> places;
  for (const Piece& piece : all) {
    net.tape.set_parameter_place(table);
    Tensor ids = net.tape.allocate(Shape{Dim(piece.patches())}, Dtype::kInt64, "pos_ids");
    places.push_back(net.embedding("vision_tower.embeddings.position_embedding", std::move(ids),
                                   Dim(net.arch.pictures.positions), net.H));
  }
  const Tensor positions = unsqueeze(cat(places, 0), 0);
  return view(add(std::move(patches), positions), Shape{net.S, net.H});
}

/// How many patches of each piece attend to each other.
std::vector<Count> lengths_of(const Net& net) {
  const bool merged = net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == kBehind;
  std::vector<Count> lengths;
  for (const Piece& piece : all_pieces(net)) lengths.push_back(piece.patches() / (merged ? kSide * kSide : 1));
  return lengths;
}

Tensor layer(Net& net, Tensor hidden) {
  return siglip_row_layer(net, std::move(hidden), kLayer, kNames, lengths_of(net));
}

// Four neighbours side by side in one row, by a copy: [patches / 4, 4·H].
Tensor neighbours(const Tensor& rows, const Piece& piece) {
  const Dim down(piece.height / kSide), across(piece.width / kSide), side(kSide), width = rows.dim(1);
  Tensor x = permute(view(rows, Shape{down, side, across, side, width}), {0, 2, 1, 3, 4});
  return view(contiguous(std::move(x)), Shape{Dim(down.n() * across.n()), Dim(kSide * kSide * width.n())});
}

Tensor merge_windows(Net& net, Tensor hidden_in) {
  if (net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] != kMerges) return hidden_in;
  Scope in(net.tape, "vision_tower.vit_merger", kWindows);
  Tape& t = net.tape;
  const Tensor residual = std::move(hidden_in);
  const Dim rows = residual.dim(0), four(kSide * kSide);
  Tensor hidden = net.layer_norm("vision_tower.vit_merger.layer_norm1", residual);
  const Tensor index = t.allocate(Shape{rows}, Dtype::kInt64, "window_index");
  hidden = gather_rows(std::move(hidden), index);
  const std::vector<Count> windows(static_cast<std::size_t>(rows.n() / four.n()), four.n());
  hidden = siglip_row_attention(net, std::move(hidden), kWindowNames, windows);
  hidden = gather_rows(std::move(hidden), t.allocate(Shape{rows}, Dtype::kInt64, "argsort"));
  hidden = unsqueeze(add(residual, std::move(hidden)), 0);
  const std::size_t place = t.parameter_place();  // the same for each piece
  std::vector<Tensor> made;
  Count start = 0;
  for (const Piece& piece : all_pieces(net)) {
    t.set_parameter_place(place);
    const Dim patches(piece.patches()), merged(piece.patches() / four.n());
    const Tensor patch = narrow(select(hidden, 0), 0, start, patches);
    start += patches.n();
    Tensor h = neighbours(patch, piece);
    const Tensor mean = mean_over(view(neighbours(patch, piece), Shape{merged, four, net.H}), 1);
    h = net.layer_norm("vision_tower.vit_merger.pre_norm", std::move(h));
    h = net.linear("vision_tower.vit_merger.linear_1", std::move(h), Dim(four.n() * net.F.n()), true);
    h = gelu(std::move(h));
    h = net.linear("vision_tower.vit_merger.linear_2", std::move(h), net.H, true);
    made.push_back(add(std::move(h), mean));
  }
  return cat(made, 0);
}

Tensor tower(Net& net) {
  Scope in(net.tape, "vision_tower", kTower);
  Tensor hidden = embedded(net, all_pieces(net));
  Stack stack{"vision_tower.encoder.layers", net.arch.num_layers, layer};
  stack.after = merge_windows;
  hidden = net.layers(stack, std::move(hidden));
  return net.layer_norm("vision_tower.post_layernorm", std::move(hidden));
}

Tensor features(Net& net) {
  Tape& t = net.tape;
  const std::vector<Piece> all = all_pieces(net);
  Net& part = net.part(net.arch.parts.front(), Dim(1), Dim(patches_of(all)));
  part.pixel_values = to(net.pixel_values.defined() ? net.pixel_values : pixels(net), net.weight_dtype(4));
  const Tensor last = unsqueeze(tower(part), 0);
  Scope in(t, "merger", kMerger);
  const Count wide = part.H.n() * kSide * kSide;
  const std::size_t place = t.parameter_place();  // the same for each piece
  std::vector<Tensor> made;
  Count start = 0;
  for (const Piece& whole : all) {
    t.set_parameter_place(place);
    const Piece piece{whole.height / kSide, whole.width / kSide};
    Tensor h = neighbours(narrow(select(last, 0), 0, start, Dim(piece.patches())), piece);
    start += piece.patches();
    h = net.layer_norm("merger.mlp.0.pre_norm", std::move(h));
    h = net.linear("merger.mlp.0.linear_1", std::move(h), Dim(wide), true);
    h = gelu(std::move(h));
    made.push_back(net.linear("merger.mlp.0.linear_2", std::move(h), net.H, true));
  }
  part.pixel_values.reset();
  net.outer_locals.push_back(last);  // vision_output
  net.outer_locals.insert(net.outer_locals.end(), made.begin(), made.end());
  return clone(cat(made, 0));  // repeat(num_beams, 1)
}

// MiniCPMV4_6Processor: three tokens that number a picture, two around each piece, one between two rows of slices.
Tensor merge(Net& net, Tensor embeds_in) {
  constexpr Count kNumber = 3, kAround = 2;
  Tensor embeds = merge_features(net, std::move(embeds_in), features, kModel, false);
  const Grid grid = grid_of(net);
  const Count further = kNumber + kAround * (1 + grid.down * grid.across) + std::max<Count>(0, grid.down - 1);
  net.picture_tokens += net.job.images_per_sample * further;
  return embeds;
}

const Program kProgram = {.forward = forward_with_pictures<merge>, .lm_head = language_head, .inputs = inputs};

constexpr ClassFacts kFacts = {.flex_attention = false,
                               .no_split = NoSplit::kAbsentToo,
                               .behind_language = "merger",
                               .layer_first = "linear_attn.out_proj"};

}  // namespace

const Family kRows[] = {
    {"minicpmv4_6", "MiniCPMV4_6", "MiniCPMV4_6ForConditionalGeneration", kSeeingClasses, read_config, &kProgram,
     kModelLayers, kFacts},
};

extern const FamilyRows minicpmv4_6_rows;
const FamilyRows minicpmv4_6_rows = kRows;

}  // namespace tidemark
