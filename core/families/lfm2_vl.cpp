// LFM2-VL: SigLIP 2's tower of pictures of any shape, each padded to as many patches as the largest has; four
// neighbouring patches become one token, picture by picture; LFM2 behind it.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/tape/scan_ops.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kProjector =
    "transformers 5.12 models/lfm2_vl/modeling_lfm2_vl.py: Lfm2VlMultiModalProjector.forward";
constexpr const char* kModel = "transformers 5.12 models/lfm2_vl/modeling_lfm2_vl.py: Lfm2VlModel.forward";

// What the tower's pooling head makes nobody reads.
Architecture read_siglip2(ConfigFields& fields) {
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture tower;
  read_siglip2_tower(vision, tower);
  tower.image_size = 512;
  if (tower.pooler_size > 0 && object_in(fields, "vision_config") != nullptr) {
    vision.error("INVALID_VALUE", "vision_use_head",
                 "The tower's pooling head is not modelled: \"vision_use_head\": false is what published files say.");
  }
  return tower;
}

// transformers 5.12.1 models/lfm2_vl/configuration_lfm2_vl.py: Lfm2VlConfig. What published files say of the processor
// beside it counts with the processor's own file, which has these values, too.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "lfm2");
  architecture.parts.push_back(read_siglip2(fields));
  Pictures& p = architecture.pictures;
  p.merge = fields.count({"downsample_factor"}, 2);
  p.width = fields.count({"projector_hidden_size"}, 2560);
  p.bias = fields.flag({"projector_bias"}, true);
  p.activation = read_activation(fields, {"projector_hidden_act"}, "gelu");
  architecture.norm_bias = fields.flag({"projector_use_layernorm"}, true);
  architecture.tie_word_embeddings = fields.flag({"tie_embedding", "tie_word_embeddings"}, true);
  fields.accept({"image_token_id", "image_token_index", "do_image_splitting", "encoder_patch_size", "max_image_tokens",
                 "max_num_patches", "max_pixels_tolerance", "max_tiles", "min_image_tokens", "min_tiles", "tile_size",
                 "use_image_special_tokens", "use_thumbnail", "vision_feature_layer",
                 "vision_feature_select_strategy"});
}

/// Lfm2VlImageProcessor's defaults, which published files repeat.
struct Processor {
  static constexpr Count kLeastTokens = 64, kMostTokens = 256, kLeastTiles = 2, kMostTiles = 10, kTile = 512;
  static constexpr double kTolerance = 2.0;  ///< how much larger than the most a picture in one piece is
};

/// A piece of a picture, in patches.
using Piece = PatchGrid;

Count rounded(double x, Count unit) {
  return static_cast<Count>(std::nearbyint(x / static_cast<double>(unit))) * unit;
}

// image_processing_lfm2_vl.py: smart_resize, in pixels.
Piece resized(PictureSize size, Count unit) {
  const auto h = static_cast<double>(size.height), w = static_cast<double>(size.width), u = static_cast<double>(unit);
  const Count least = Processor::kLeastTokens * unit * unit, most = Processor::kMostTokens * unit * unit;
  const Piece near{std::max(unit, rounded(h, unit)), std::max(unit, rounded(w, unit))};
  if (near.height * near.width > most) {
    const double by = std::sqrt(h * w / static_cast<double>(most));
    const auto down = [&](double x) { return std::max(unit, static_cast<Count>(std::floor(x / by / u)) * unit); };
    return {down(h), down(w)};
  }
  if (near.height * near.width >= least) return near;
  const double by = std::sqrt(static_cast<double>(least) / (h * w));
  const auto up = [&](double x) { return static_cast<Count>(std::ceil(x * by / u)) * unit; };
  return {up(h), up(w)};
}

// image_processing_lfm2_vl.py: find_closest_aspect_ratio among the grids of so many tiles.
Count tiles_of(PictureSize size) {
  const double ratio = static_cast<double>(size.width) / static_cast<double>(size.height);
  const auto area = static_cast<double>(size.width * size.height), tile = static_cast<double>(Processor::kTile);
  double nearest = INFINITY;
  Count best = 1;
  for (Count tiles = Processor::kLeastTiles; tiles <= Processor::kMostTiles; ++tiles) {
    for (Count wide = 1; wide <= tiles; ++wide) {
      if (tiles % wide != 0) continue;
      const double off = std::fabs(ratio - static_cast<double>(wide) / static_cast<double>(tiles / wide));
      const bool larger = off == nearest && area > 0.5 * tile * tile * static_cast<double>(tiles);
      if (off >= nearest && !larger) continue;
      nearest = off;
      best = tiles;
    }
  }
  return best;
}

// image_processing_lfm2_vl.py: resize_and_split: in one piece, or as tiles and, in the end, the whole.
std::vector<Piece> pieces(const Architecture& a, PictureSize size) {
  const Count patch = a.parts.front().patch_size, unit = patch * a.pictures.merge;
  const Count near = std::max(patch, rounded(static_cast<double>(size.height), unit)) *
                     std::max(patch, rounded(static_cast<double>(size.width), unit));
  const double most = static_cast<double>(Processor::kMostTokens * unit * unit) * Processor::kTolerance;
  std::vector<Piece> all;
  if (static_cast<double>(near) > most) {
    all.assign(static_cast<std::size_t>(tiles_of(size)), {Processor::kTile, Processor::kTile});
  }
  all.push_back(resized(size, unit));
  for (Piece& piece : all) piece = {piece.height / patch, piece.width / patch};
  return all;
}

/// Patches that each piece is padded to: max_num_patches.
Count padded_patches(const Architecture& a) {
  const Count patch = a.parts.front().patch_size, side = Processor::kTile / patch;
  return std::max(Processor::kMostTokens * a.pictures.merge * a.pictures.merge, side * side);
}

/// The pieces of all pictures, one behind another.
std::vector<Piece> all_pieces(const Net& net) {
  const std::vector<Piece> of_one = pieces(net.arch, picture_size(net));
  std::vector<Piece> all;
  const Count pictures =
      net.tape.quotient(picture_count(net), 1);  // a loop over them: other batches have other operations
  for (Count i = 0; i < pictures; ++i) all.insert(all.end(), of_one.begin(), of_one.end());
  return all;
}

void inputs(Net& net) {
  text_inputs(net);
  if (net.job.images_per_sample == 0) return;
  const Dim count(static_cast<Count>(all_pieces(net).size())), patches(padded_patches(net.arch));
  const Count side = net.arch.parts.front().patch_size;
  net.pixel_values = net.tape.allocate(Shape{count, patches, Dim(3 * side * side)}, Dtype::kFp32, "pixel_values");
  net.more_inputs.push_back(net.tape.allocate(Shape{count, patches}, Dtype::kInt32, "pixel_attention_mask"));
  integer_input(net, Shape{count, Dim(2)}, "spatial_shapes");
}

// pixel_unshuffle: merge² neighbours side by side in one vector, by a copy.
Tensor unshuffled(Net& net, Tensor feature, const Piece& piece) {
  const Count f = net.arch.pictures.merge;
  const Dim h(piece.height), w(piece.width / f), rows(piece.height / f), wide(feature.size(-1) * f), all(wide.n() * f);
  Tensor x = view(std::move(feature), Shape{h, w, wide});
  x = contiguous(permute(std::move(x), {1, 0, 2}));
  return permute(view(std::move(x), Shape{w, rows, all}), {1, 0, 2});
}

Tensor projected(Net& net, Tensor feature, const Piece& piece) {
  Scope in(net.tape, "multi_modal_projector", kProjector);
  const Pictures& p = net.arch.pictures;
  Tensor h = unshuffled(net, std::move(feature), piece);
  if (net.arch.norm_bias) h = net.layer_norm("multi_modal_projector.layer_norm", std::move(h));
  h = net.linear("multi_modal_projector.linear_1", std::move(h), Dim(p.width), p.bias);
  h = activate(p.activation, std::move(h));
  h = net.linear("multi_modal_projector.linear_2", std::move(h), net.H, p.bias);
  const Dim rows(h.numel() / net.H.n());
  return view(std::move(h), Shape{rows, net.H});
}

Tensor features(Net& net) {
  const std::vector<Piece> all = all_pieces(net);
  const Dim count(static_cast<Count>(all.size())), patches(padded_patches(net.arch));
  Net& part = net.part(net.arch.parts.front(), count, patches);
  const Count side = part.arch.patch_size;
  part.pixel_values = net.pixel_values.defined()
                          ? net.pixel_values
                          : net.tape.allocate(Shape{count, patches, Dim(3 * side * side)}, Dtype::kFp32, "pixels");
  std::vector<Tensor> made;
  {
    const Tensor last = siglip2_tower(part, all);
    net.keep_image_output(last);
    part.pixel_values.reset();
    const std::size_t projector = net.tape.parameter_place();  // the same for each piece
    for (const Piece& piece : all) {
      net.tape.set_parameter_place(projector);
      Tensor feature = narrow(select(last, 0), 0, 0, Dim(piece.height * piece.width));
      made.push_back(projected(net, std::move(feature), piece));
    }
  }
  for (const Tensor& picture : made) net.keep_image_output(picture);
  return cat(made, 0);
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), features, kModel);
}

void check(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  refuse_packed_pictures(architecture, job, issues);
  if (!wants_flash(job)) return;
  issues.push_back({"ASSUMED_VALUE", Severity::kWarning, "/attention",
                    "transformers 5.12 raises for the tower, which has no flash attention: it is taken for the "
                    "language model alone (attn_implementation={\"text_config\": \"flash_attention_2\"}).",
                    "sdpa"});
}

const Program kProgram = {
    .forward = forward_with_pictures<merge>, .lm_head = language_head, .inputs = inputs, .check = check};

constexpr ClassFacts kFacts = {.flex_attention = false, .no_split = NoSplit::kAbsentToo};

}  // namespace

const Family kRows[] = {
    {"lfm2_vl", "Lfm2Vl", "Lfm2VlForConditionalGeneration", kSeeingClasses, read_config, &kProgram, kModelLayers,
     kFacts},
};

extern const FamilyRows lfm2_vl_rows;
const FamilyRows lfm2_vl_rows = kRows;

}  // namespace tidemark
