// LLaVA 1.5, VipLLaVA, LLaVA-NeXT, LLaVA-NeXT-Video, LLaVA-OneVision: a tower's hidden states through two linear layers
// into the language model's embeddings.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kFeatures = "transformers 5.12 models/llava/modeling_llava.py: LlavaModel.get_image_features";
constexpr const char* kMerge = "transformers 5.12 models/llava/modeling_llava.py: LlavaModel.forward";
constexpr const char* kProjector = "transformers 5.12 models/llava/modeling_llava.py: LlavaMultiModalProjector.forward";
constexpr const char* kPack =
    "transformers 5.12 models/llava_next/modeling_llava_next.py: LlavaNextModel.pack_image_features";
constexpr const char* kVideo =
    "transformers 5.12 models/llava_next_video/modeling_llava_next_video.py: LlavaNextVideoModel.get_video_features";
constexpr const char* kVision =
    "transformers 5.12 models/llava_onevision/modeling_llava_onevision.py: LlavaOnevisionModel.get_video_features";

}  // namespace

// hidden_states[k]: 0 are the embeddings, the last is the last layer's output.
void read_feature_layers(ConfigFields& fields, Architecture& tower, std::vector<Count> numbers, std::string_view key) {
  const Value* value = fields.find({key});
  if (value != nullptr && value->is_number()) numbers = {value->integer};
  if (value != nullptr && value->is_array()) {
    numbers.clear();
    for (const Value& item : value->items) numbers.push_back(item.integer);
  }
  tower.layer_kinds.assign(static_cast<std::size_t>(tower.num_layers), 0);
  for (const Count number : numbers) {
    const Count layer = (number < 0 ? tower.num_layers + 1 + number : number) - 1;
    if (layer < 0 || layer >= tower.num_layers) {
      fields.error("INVALID_VALUE", key, "\"" + std::string{key} + "\" names no layer of the tower.");
      return;
    }
    tower.pictures.layers.push_back(layer);
    tower.layer_kinds[static_cast<std::size_t>(layer)] = 1;
  }
}

void let_tower_go(Net& tower) {
  tower.model_locals.clear();
  tower.outer_locals.clear();
  tower.pixel_values.reset();
  tower.let_handed_out_go();
}

void let_tower_go(Net& net, Net& tower, const Tensor& last) {
  if (net.job.framework.at_least(5, 18)) {
    net.image_outputs = std::exchange(tower.handed_out, {});
    net.keep_image_output(last);
  }
  let_tower_go(tower);
}

namespace {

// What the configurations of all say alike; `towers` and `layer`: which tower, and which of its hidden states, where
// the file says nothing.
bool read_llava(ConfigFields& fields, Architecture& architecture, std::string_view language, std::string_view towers,
                const std::vector<Count>& layers, std::string_view strategy,
                std::string_view key = "vision_feature_layer") {
  read_language(fields, architecture, language);
  const bool tied = architecture.tie_word_embeddings;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false) || tied;
  if (!read_tower(fields, architecture, towers)) return false;
  Pictures& pictures = architecture.pictures;
  pictures.activation = read_activation(fields, {"projector_hidden_act"}, "gelu");
  pictures.bias = fields.flag({"multimodal_projector_bias"}, true);
  pictures.drops_class_token = fields.text({"vision_feature_select_strategy"}, strategy) == "default";
  read_feature_layers(fields, architecture.parts.front(), layers, key);
  fields.accept(
      {"image_token_index", "image_token_id", "image_seq_length", "ignore_index", "pad_token_id", "vocab_size"});
  return true;
}

// image_grid_pinpoints: pairs of height and width.
void read_grids(ConfigFields& fields, Architecture& architecture) {
  std::vector<Count>& grids = architecture.pictures.grids;
  const Value* given = fields.find({"image_grid_pinpoints"});
  if (given == nullptr || !given->is_array()) return;
  for (const Value& pair : given->items) {
    for (const Value& side : pair.items) grids.push_back(std::max<Count>(1, side.integer));
  }
  if (grids.size() != 2 * given->items.size()) {
    fields.error("INVALID_VALUE", "image_grid_pinpoints", "\"image_grid_pinpoints\" must be a list of pairs.");
  }
}

// transformers 5.12.1 models/llava/configuration_llava.py: LlavaConfig.
void read_llava_config(ConfigFields& fields, Architecture& architecture) {
  read_llava(fields, architecture, "llama", "clip_vision_model", {-2}, "default");
  const bool pixtral = !architecture.parts.empty() && architecture.parts.front().model_type == "pixtral";
  if (pixtral) architecture.facts.pictures = PictureRule::kLongestSide;
}

// transformers 5.12.1 models/vipllava/configuration_vipllava.py: VipLlavaConfig. The class token is always dropped.
void read_vipllava_config(ConfigFields& fields, Architecture& architecture) {
  read_llava(fields, architecture, "llama", "clip_vision_model", {-2, -5, -8, -11, 6}, "default",
             "vision_feature_layers");
  fields.accept({"projector_layernorm_eps"});
}

// transformers 5.12.1 models/llava_next/configuration_llava_next.py: LlavaNextConfig.
void read_llava_next_config(ConfigFields& fields, Architecture& architecture) {
  read_llava_config(fields, architecture);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  fields.accept({"use_image_newline_parameter"});
  read_grids(fields, architecture);
  std::vector<Count>& grids = architecture.pictures.grids;
  if (grids.empty()) grids = {336, 672, 672, 336, 672, 672, 1008, 336, 336, 1008};
}

// transformers 5.12.1 models/llava_next_video/configuration_llava_next_video.py: LlavaNextVideoConfig.
void read_llava_next_video_config(ConfigFields& fields, Architecture& architecture) {
  read_llava_next_config(fields, architecture);
  architecture.pictures.video_frames = 1;
  architecture.pictures.merge = fields.count({"spatial_pool_stride"}, 2);
  if (fields.text({"spatial_pool_mode"}, "average") != "average") {
    fields.error("INVALID_VALUE", "spatial_pool_mode", "Only \"average\" is modelled, as of all published files.");
  }
  fields.accept({"video_token_index", "video_token_id", "video_seq_length", "spatial_pool_out_channels"});
}

// transformers 5.12.1 models/llava_onevision/configuration_llava_onevision.py: LlavaOnevisionConfig.
void read_llava_onevision_config(ConfigFields& fields, Architecture& architecture) {
  if (!read_llava(fields, architecture, "qwen2", "siglip_vision_model", {-1}, "full")) return;
  read_grids(fields, architecture);
  Pictures& pictures = architecture.pictures;
  for (Count tile = 0, given = static_cast<Count>(pictures.grids.size()); tile < 36 && given == 0; ++tile) {
    pictures.grids.push_back(384 * (tile / 6 + 1));  // up to six by six
    pictures.grids.push_back(384 * (tile % 6 + 1));
  }
  pictures.video_frames = 1;
  pictures.merge = 2;  // apply_pooling
  // The patches that a picture in tiles keeps are at most those of so many.
  constexpr std::string_view kRatio = "anyres_max_";
  const std::string ratio = fields.text({"vision_aspect_ratio"}, "anyres_max_9");
  const char* const digits = ratio.data() + std::min(ratio.size(), kRatio.size());
  std::from_chars(digits, ratio.data() + ratio.size(), pictures.tokens);
  if (pictures.tokens < 1 || pictures.tokens > 99 || ratio.find(kRatio) != 0) {
    fields.error("INVALID_VALUE", "vision_aspect_ratio", "\"vision_aspect_ratio\" must be like \"anyres_max_9\".");
  }
  pictures.tokens *= architecture.parts.front().max_positions;
  fields.accept({"video_token_index", "video_token_id", "use_image_newline_parameter"});
}

Tensor project(Net& net, Tensor features) {
  Scope in(net.tape, "multi_modal_projector", kProjector);
  const bool bias = net.arch.pictures.bias;
  Tensor h = net.linear("multi_modal_projector.linear_1", std::move(features), net.H, bias);
  h = activate(net.arch.pictures.activation, std::move(h));
  return net.linear("multi_modal_projector.linear_2", std::move(h), net.H, bias);
}

/// Tower and projector on so many pictures or tiles: [n, patches, H]. `pool`: what comes between the two.
Tensor projected(Net& net, Dim pictures, Tensor (*pool)(Net& net, Tensor selected) = nullptr) {
  Scope in(net.tape, "", kFeatures);
  Net& tower = tower_part(net, pictures);
  const Tensor last = tower.arch.program->forward(tower);
  Tensor selected = selected_features(net, tower);
  if (pool != nullptr) selected = pool(net, std::move(selected));
  Tensor features = project(net, selected);
  selected.reset();
  let_tower_go(net, tower, last);
  return features;
}

// VipLlavaModel.get_image_features: a norm over all layers' states before the projector.
Tensor vip_features(Net& net) {
  Tensor features = projected(net, Dim(picture_count(net)), [](Net& n, Tensor selected) {
    return n.layer_norm("multi_modal_projector.projector_layernorm", std::move(selected));
  });
  net.keep_image_output(features);
  return features;
}

Tensor llava_features(Net& net) {
  Tensor features = projected(net, Dim(picture_count(net)));
  net.keep_image_output(features);
  if (net.arch.parts.front().model_type == "pixtral") {
    const Shape flat_rows{Dim(features.numel() / net.H.n()), net.H};
    const Tensor rows = view(std::move(features), flat_rows);
    const std::vector<Count> sizes(static_cast<std::size_t>(picture_count(net)), rows.size(0) / picture_count(net));
    const Pieces pieces = split(rows, 0, sizes);
    return cat(std::vector<Tensor>(pieces.part.begin(), pieces.part.end()), 0);
  }
  const Pieces pieces = unbind(std::move(features), 0);
  return cat(std::vector<Tensor>(pieces.part.begin(), pieces.part.end()), 0);
}

/// How LLaVA-NeXT cuts a picture of the job's size.
struct Tiling {
  Count rows = 1, columns = 1;  ///< of tiles
  Count height = 0, width = 0;  ///< in patches, padding taken off
  double squeezed = 1.0;        ///< each side of these by so much, where that is more than kLeastSqueeze
  bool whole = false;           ///< the picture in one piece alone
};
// LlavaOnevisionModel.pack_image_features
constexpr double kLeastSqueeze = 1.1;

// image_processing_utils.py select_best_resolution, then unpad_image.
Tiling tiling(const Net& net) {
  const std::vector<Count>& grids = net.arch.pictures.grids;
  const Architecture& tower = net.arch.parts.front();
  // LlavaOnevisionImageProcessor: "only single image patching is supported".
  if (net.arch.pictures.tokens > 0 && net.job.images_per_sample > 1) return {.whole = true};
  const PictureSize size = picture_size(net);
  const auto h = static_cast<double>(size.height), w = static_cast<double>(size.width);
  Count best_h = grids[0], best_w = grids[1], most = 0, least_waste = 0;
  for (std::size_t i = 0; i + 1 < grids.size(); i += 2) {
    const double scale = std::min(static_cast<double>(grids[i + 1]) / w, static_cast<double>(grids[i]) / h);
    const Count used =
        std::min(static_cast<Count>(w * scale) * static_cast<Count>(h * scale), size.height * size.width);
    const Count waste = grids[i] * grids[i + 1] - used;
    if (used < most || (used == most && waste >= least_waste && i > 0)) continue;
    most = used;
    least_waste = waste;
    best_h = grids[i];
    best_w = grids[i + 1];
  }
  Tiling t;
  t.rows = best_h / tower.image_size;
  t.columns = best_w / tower.image_size;
  const Count side = tower.image_size / tower.patch_size;
  t.height = t.rows * side;
  t.width = t.columns * side;
  const auto rounded = [](double x) { return static_cast<Count>(std::round(x * 1e7) / 1e7); };
  if (w / h > static_cast<double>(t.width) / static_cast<double>(t.height)) {
    t.height -= (t.height - rounded(h * (static_cast<double>(t.width) / w))) / 2 * 2;
  } else {
    t.width -= (t.width - rounded(w * (static_cast<double>(t.height) / h))) / 2 * 2;
  }
  if (const Count tokens = net.arch.pictures.tokens; tokens > 0) {
    t.squeezed = std::sqrt(static_cast<double>(t.height * t.width) / static_cast<double>(tokens));
  }
  return t;
}

Count tiles_of(const Tiling& t) {
  return t.whole ? 1 : t.rows * t.columns + 1;
}

void next_inputs(Net& net) {
  text_inputs(net);
  if (net.job.images_per_sample == 0) return;
  const Dim side(net.arch.parts.front().image_size), count(picture_count(net));
  const Dim tiles(net.job.video_frames > 0 ? 1 : tiles_of(tiling(net)));
  net.pixel_values = given_pixels(net, Shape{count, tiles, Dim(3), side, side});
  if (net.job.video_frames == 0) integer_input(net, Shape{count, Dim(2)}, "image_sizes");
  if (net.arch.pictures.tokens > 0 && net.job.video_frames == 0) integer_input(net, Shape{net.B}, "batch_num_images");
}

/// One picture's features: the tiles side by side again, without the padding, a vector behind each row; the whole
/// first.
Tensor packed(Net& net, const Tensor& tiles, const Tensor& newline, const Tiling& t) {
  const Architecture& tower = net.arch.parts.front();
  const Dim side(tower.image_size / tower.patch_size);
  const Tensor base = select(tiles, 0);
  if (t.whole) {
    const Tensor line = to(unsqueeze(newline, 0), base.dtype());
    return cat({&base, &line}, 0);
  }
  Tensor image = narrow(tiles, 0, 1, Dim(tiles.size(0) - 1));
  const Dim rows(t.rows * side.n()), columns(t.columns * side.n());
  // view, permute(4, 0, 2, 1, 3).contiguous(): six dimensions there; the copy is what counts.
  image = permute(view(std::move(image), Shape{Dim(t.rows * t.columns), Dim(side.n() * side.n()), net.H}), {2, 0, 1});
  image = view(contiguous(std::move(image)), Shape{net.H, rows, columns});
  if (t.height < rows.n()) image = narrow(std::move(image), 1, (rows.n() - t.height) / 2, Dim(t.height));
  if (t.width < columns.n()) image = narrow(std::move(image), 2, (columns.n() - t.width) / 2, Dim(t.width));
  Dim down(t.height), across(t.width);
  if (t.squeezed > kLeastSqueeze) {
    const auto squeezed = [&](Dim side_in) {  // Python's side // ratio
      const auto d = static_cast<double>(side_in.n());
      return Dim(static_cast<Count>(std::round((d - std::fmod(d, t.squeezed)) / t.squeezed)));
    };
    down = squeezed(down);
    across = squeezed(across);
    image = select(interpolate(unsqueeze(std::move(image), 0), Shape{Dim(1), net.H, down, across}), 0);
  }
  Tensor line = view(newline, Shape{net.H, Dim(1), Dim(1)});
  line = to(expand(std::move(line), Shape{net.H, down, Dim(1)}), image.dtype());
  image = cat({&image, &line}, -1);
  image = transpose(view(std::move(image), Shape{net.H, Dim(down.n() * (across.n() + 1))}), 0, 1);
  return cat({&base, &image}, 0);
}

Tensor next_features(Net& net) {
  const Tiling t = tiling(net);
  const Count count = picture_count(net), tiles = tiles_of(t);
  const Tensor stacked = net.pixel_values;
  Tensor pixels;
  if (stacked.defined()) {
    Scope in(net.tape, "", kPack);
    pixels = net.tape.allocate(Shape{Dim(count * tiles), stacked.dim(2), stacked.dim(3), stacked.dim(4)},
                               stacked.dtype(), "cat");
    net.pixel_values = pixels;
  }
  Tensor newline = net.parameter("", "image_newline", Shape{net.H});
  Tensor features = projected(net, Dim(count * tiles));
  net.pixel_values = stacked;
  Scope in(net.tape, "", kPack);
  const Pieces pieces = split(std::move(features), 0, std::vector<Count>(static_cast<std::size_t>(count), tiles));
  std::vector<Tensor> all;
  for (const Tensor& picture : pieces.part) all.push_back(packed(net, picture, newline, t));
  for (const Tensor& picture : all) net.keep_image_output(picture);
  return cat(all, 0);
}

// LlavaNextVideoPooler.forward: the patches of a frame, whose channels lie side by side, averaged square by square.
Tensor averaged(Net& net, Tensor selected) {
  const Architecture& tower = net.arch.parts.front();
  const Dim frames = selected.dim(0), width = selected.dim(2), side(tower.image_size / tower.patch_size),
            pooled(side.n() / net.arch.pictures.merge);
  Tensor squares = permute(view(std::move(selected), Shape{frames, side, side, width}), {0, 3, 1, 2});
  squares = average_pool(std::move(squares), pooled, pooled);
  squares = view(std::move(squares), Shape{frames, width, Dim(pooled.n() * pooled.n())});
  return contiguous(transpose(std::move(squares), 1, 2));
}

// A video: all frames of the batch in one piece each.
Tensor video_features(Net& net) {
  const Tensor frames = net.pixel_values;
  const Dim count(picture_count(net));
  net.pixel_values = view(frames, Shape{count, frames.dim(2), frames.dim(3), frames.dim(4)});
  Tensor features = projected(net, count, averaged);
  net.pixel_values = frames;
  Scope in(net.tape, "", kVideo);
  const Count rows = net.B.n(), each = count.n() / rows;
  const Pieces videos = split(std::move(features), 0, std::vector<Count>(static_cast<std::size_t>(rows), each));
  std::vector<Tensor> all;
  for (const Tensor& video : videos.part) all.push_back(view(video, Shape{Dim(each * video.size(1)), net.H}));
  net.keep_image_output(all.front());
  return cat(all, 0);
}

// LlavaOnevisionModel.apply_pooling, after the projector; a newline ends each video.
Tensor vision_features(Net& net) {
  const Tensor frames = net.pixel_values;
  const Dim count(picture_count(net));
  const Count rows = net.B.n(), each = count.n() / rows;
  net.pixel_values = view(frames, Shape{count, frames.dim(2), frames.dim(3), frames.dim(4)});
  Tensor newline = net.parameter("", "image_newline", Shape{net.H});
  Tensor features = projected(net, count);
  net.pixel_values = frames;
  Scope in(net.tape, "", kVision);
  const Architecture& tower = net.arch.parts.front();
  const Dim side(tower.image_size / tower.patch_size), half((side.n() + 1) / 2), tokens(each * half.n() * half.n());
  Tensor h = permute(view(std::move(features), Shape{count, side, side, net.H}), {0, 3, 1, 2});
  h = interpolate(contiguous(std::move(h)), Shape{count, net.H, half, half});
  h = transpose(view(std::move(h), Shape{count, net.H, Dim(half.n() * half.n())}), 1, 2);
  h = reshape(std::move(h), Shape{net.B, tokens, net.H});
  const Tensor line = clone(expand(view(newline, Shape{Dim(1), Dim(1), net.H}), Shape{net.B, Dim(1), net.H}));
  h = cat({&h, &line}, 1);
  net.keep_image_output(h);
  return view(std::move(h), Shape{Dim(rows * (tokens.n() + 1)), net.H});
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), llava_features, kMerge);
}

Tensor merge_vip(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), vip_features, kMerge);
}

Tensor merge_video(Net& net, Tensor embeds) {
  const bool vision = net.arch.pictures.tokens > 0;
  const auto features = net.job.video_frames == 0 ? next_features : vision ? vision_features : video_features;
  return merge_features(net, std::move(embeds), features, kMerge);
}

Tensor merge_next(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), next_features, kMerge);
}

void llava_inputs(Net& net) {
  picture_inputs(net, Dim(picture_count(net)), picture_size(net));
  if (net.arch.parts.front().model_type == "pixtral") {
    integer_input(net, Shape{Dim(picture_count(net)), Dim(2)}, "image_sizes");
  }
}

const Program kLlavaProgram = {
    forward_with_pictures<merge>, language_head, kDecoderForwards, OwnLoss::kFp32, {}, llava_inputs};
const Program kVipLlavaProgram = {
    .forward = forward_with_pictures<merge_vip>, .lm_head = language_head, .inputs = llava_inputs};
const Program kLlavaNextProgram = {
    forward_with_pictures<merge_next>, language_head, kDecoderForwards, OwnLoss::kFp32, {}, next_inputs};
const Program kLlavaVideoProgram = {
    .forward = forward_with_pictures<merge_video>, .lm_head = language_head, .inputs = next_inputs};

constexpr ClassFacts kFacts = {.no_split = NoSplit::kAbsentToo,
                               .pictures = PictureRule::kOwnSize,
                               .layer_first = "feed_forward attention.k attention.v attention.q"};

}  // namespace

const Family kRows[] = {
    {"llava", "Llava", "LlavaForConditionalGeneration", kSeeingClasses, read_llava_config, &kLlavaProgram, kModelLayers,
     kFacts},
    {"vipllava", "VipLlava", "VipLlavaForConditionalGeneration", kSeeingClasses, read_vipllava_config,
     &kVipLlavaProgram, kModelLayers, kFacts},
    {"llava_next", "LlavaNext", "LlavaNextForConditionalGeneration", kSeeingClasses, read_llava_next_config,
     &kLlavaNextProgram, kModelLayers, kNamesAbsentToo},
    {"llava_next_video", "LlavaNextVideo", "LlavaNextVideoForConditionalGeneration", kSeeingClasses,
     read_llava_next_video_config, &kLlavaVideoProgram, kModelLayers, kNamesAbsentToo},
    {"llava_onevision", "LlavaOnevision", "LlavaOnevisionForConditionalGeneration", kSeeingClasses,
     read_llava_onevision_config, &kLlavaVideoProgram, kModelLayers, kNamesAbsentToo},
};

extern const FamilyRows llava_rows;
const FamilyRows llava_rows = kRows;

}  // namespace tidemark
