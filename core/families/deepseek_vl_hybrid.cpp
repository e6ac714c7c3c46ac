// DeepSeek-VL 7B: each picture twice, small through SigLIP's tower and large through SAM's, whose windows and few whole
// layers add relative positions to their scores; both halves of a token's embedding come from one of them.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/stages.hpp"
#include "core/families/towers.hpp"
#include "core/tape/ops/convolution.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kEncoder = "transformers 5.12 models/sam/modeling_sam.py: SamVisionEncoder.forward";
constexpr const char* kLayer = "transformers 5.12 models/sam/modeling_sam.py: SamVisionLayer.forward";
constexpr const char* kMlp = "transformers 5.12 models/sam/modeling_sam.py: SamMLPBlock.forward";
constexpr const char* kAttention = "transformers 5.12 models/sam/modeling_sam.py: SamVisionSdpaAttention.forward";
constexpr const char* kDistances =
    "transformers 5.12 models/sam/modeling_sam.py: SamVisionAttention.get_decomposed_rel_pos";
constexpr const char* kNeck = "transformers 5.12 models/sam/modeling_sam.py: SamVisionNeck.forward";
constexpr const char* kProjection =
    "transformers 5.12 models/deepseek_vl_hybrid/modeling_deepseek_vl_hybrid.py: DeepseekVLSamVisionProj.forward";
constexpr const char* kHighRes =
    "transformers 5.12 models/deepseek_vl_hybrid/modeling_deepseek_vl_hybrid.py: "
    "DeepseekVLHybridModel.get_high_res_image_features";
constexpr const char* kAligner =
    "transformers 5.12 models/deepseek_vl_hybrid/modeling_deepseek_vl_hybrid.py: DeepseekVLHybridAligner.forward";
constexpr const char* kModel =
    "transformers 5.12 models/deepseek_vl_hybrid/modeling_deepseek_vl_hybrid.py: DeepseekVLHybridModel.forward";

/// The architecture's parts: SigLIP's tower, then SAM's.
constexpr std::size_t kSam = 1;

}  // namespace

// transformers 5.12.1 models/sam/configuration_sam.py: SamVisionConfig.
Architecture read_sam_tower(ConfigFields& fields, std::string_view key) {
  ConfigFields vision(required_object(fields, key), fields.path() + "/" + std::string{key}, fields.issues());
  Architecture tower;
  read_tower_sizes(vision, tower, 768, 12, 12, 4 * 768);
  tower.intermediate_size =
      static_cast<Count>(vision.multiplier({"mlp_ratio"}, 4.0) * static_cast<double>(tower.hidden_size));
  tower.intermediate_size = vision.nullable({"mlp_dim"}, std::nullopt).value_or(tower.intermediate_size);
  tower.image_size = square_side(vision, "image_size", 1024);
  tower.patch_size = square_side(vision, "patch_size", 16);
  tower.activation = read_activation(vision, {"hidden_act"}, "gelu");
  tower.attention_bias = vision.flag({"qkv_bias"}, true);
  tower.pictures.width = vision.count({"output_channels"}, 256);
  tower.pictures.window = vision.count({"window_size"}, 14);
  const std::vector<Count> whole = read_counts(vision, "global_attn_indexes", {2, 5, 8, 11});
  tower.layer_kinds.assign(static_cast<std::size_t>(std::clamp<Count>(tower.num_layers, 0, 1000)), 0);
  for (const Count layer : whole) {
    if (layer < static_cast<Count>(tower.layer_kinds.size())) tower.layer_kinds[static_cast<std::size_t>(layer)] = 1;
  }
  if (!whole.empty() && whole.front() >= tower.num_layers) {
    vision.error("INVALID_VALUE", "global_attn_indexes", "The first of these must be one of the tower's layers.");
  }
  tower.pictures.layers = {whole.empty() ? 0 : whole.front()};
  tower.conv_dims = read_counts(vision, "downsample_channels", {512, 896});  // DeepSeek-OCR 2's
  for (const std::string_view flag : {"use_abs_pos", "use_rel_pos"}) {
    if (vision.flag({flag}, true)) continue;
    vision.error("INVALID_VALUE", flag, "Only true is modelled, as in all published files.");
  }
  vision.accept({"model_type", "num_pos_feats", "mlp_ratio", "torch_dtype", "dtype", "layer_norm_eps", "scale",
                 "intermediate_size"});
  vision.report_unread("sam_vision_model");
  return tower;
}

namespace {

// transformers 5.12.1 models/deepseek_vl_hybrid/configuration_deepseek_vl_hybrid.py: DeepseekVLHybridConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "llama");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"image_token_id"});
  if (!read_tower(fields, architecture, "siglip_vision_model")) return;
  architecture.parts.push_back(read_sam_tower(fields, "high_res_vision_config"));
}

// DeepseekVLHybridImageProcessor: two squares of each picture.
void inputs(Net& net) {
  const Count side = net.arch.parts.front().image_size;
  picture_inputs(net, Dim(picture_count(net)), {side, side});
  if (net.job.images_per_sample == 0) return;
  const Architecture& sam = net.arch.parts[kSam];
  const Dim large(sam.image_size), channels(sam.num_channels);
  const Shape shape{Dim(picture_count(net)), channels, large, large};
  net.more_inputs.push_back(given_pixels(net, shape, "high_res_pixel_values"));
}

// get_rel_pos: the table stretched to what the places need, as a rule its own length, and a row for each pair of them.
Tensor distances(Net& net, const char* leaf, Dim side) {
  const Architecture& a = net.arch;
  const bool whole = a.layer_kinds[static_cast<std::size_t>(net.layer_index)] == 1;
  const Dim one(1), length(2 * side.n() - 1), own(2 * (whole ? a.image_size / a.patch_size : a.pictures.window) - 1);
  Tensor table = view(net.parameter("attn", leaf, Shape{own, net.hd}), Shape{one, own, net.hd});
  table = interpolate(transpose(std::move(table), 1, 2), Shape{one, net.hd, length});
  table = transpose(view(std::move(table), Shape{net.hd, length}), 0, 1);
  Tensor pairs = net.tape.allocate(Shape{side, side}, Dtype::kInt64, "relative_coords");
  const Dim rows(side.n() * side.n());
  return view(index_some(std::move(table), std::move(pairs), rows), Shape{side, side, net.hd});
}

// Two products of the queries with these, for each pair of places; the sum lies by rows of the picture in memory, so
// that its reshape is a copy.
Tensor relative_positions(Net& net, const Tensor& query, Dim side) {
  Scope in(net.tape, "attn", kDistances);
  const Dim all = query.dim(0), rows(all.n() * side.n());
  const Tensor down = distances(net, "rel_pos_h", side), across = distances(net, "rel_pos_w", side);
  const Tensor places = view(query, Shape{all, side, side, net.hd});
  Tensor rel_h, rel_w;
  {
    Tensor left = reshape(permute(places, {1, 0, 2, 3}), Shape{side, rows, net.hd});
    rel_h = view(matmul(std::move(left), transpose(down, 1, 2)), Shape{side, all, side, side});
  }
  {
    Tensor left = reshape(permute(places, {2, 0, 1, 3}), Shape{side, rows, net.hd});
    rel_w = view(matmul(std::move(left), transpose(across, 1, 2)), Shape{side, all, side, side});
    rel_w = permute(std::move(rel_w), {2, 1, 0, 3});
  }
  Tensor sum = add(unsqueeze(rel_h, -1), unsqueeze(rel_w, 3));
  return permute(std::move(sum), {1, 0, 2, 3, 4});
}

// hidden: [n, side, side, H], n being pictures or their windows.
Tensor attend(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "attn", kAttention);
  const Dim n = hidden.dim(0), side = hidden.dim(1), places(side.n() * side.n()), all(n.n() * net.A.n()), three(3);
  Tensor packed = net.linear("attn.qkv", hidden, Dim(3 * net.H.n()), net.arch.attention_bias);
  const Tensor qkv = permute(view(std::move(packed), Shape{n, places, three, net.A, net.hd}), {2, 0, 3, 1, 4});
  const Pieces parts = unbind(reshape(qkv, Shape{three, all, places, net.hd}), 0);
  const Tensor &query = parts.part[0], &key = parts.part[1], &value = parts.part[2];
  Tensor out;
  if (net.job.attention == AttentionKernel::kEager || net.arch.model_type == "got_ocr2") {
    Tensor scores = matmul(mul_scalar(query), transpose(key, 1, 2));
    const Tensor bias = reshape(relative_positions(net, query, side), Shape{all, places, places});
    scores = add(std::move(scores), bias);
    const Tensor weights = to(softmax(std::move(scores), Dtype::kFp32), query.dtype());
    out = view(matmul(weights, value), Shape{n, net.A, places, net.hd});
    out = reshape(transpose(std::move(out), 1, 2), Shape{n, places, net.H});
  } else {
    const Tensor bias = reshape(relative_positions(net, query, side), Shape{n, net.A, places, places});
    const Shape heads{n, net.A, places, net.hd};
    out = scaled_dot_product_attention(net, view(query, heads), view(key, heads), view(value, heads), bias, 0.0, false,
                                       false);
    out = reshape(transpose(std::move(out), 1, 2), Shape{n, places, net.H});
  }
  out = view(std::move(out), hidden.shape().contiguous());
  return net.linear("attn.proj", std::move(out), net.H, true);
}

// The picture cut into windows or put together again: a copy, forward and backward.
Tensor rearranged(Tensor x, const Shape& shape) {
  return view(roll(std::move(x)), shape);
}

Tensor feed_forward(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "mlp", kMlp);
  Tensor h = net.linear("mlp.lin1", hidden, net.F, true);
  h = activate(net.arch.activation, std::move(h));
  return net.linear("mlp.lin2", std::move(h), net.H, true);
}

}  // namespace

Tensor sam_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor residual = std::move(hidden);
  const Shape picture = residual.shape();
  const bool whole = net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == 1;
  Tensor h = net.layer_norm("layer_norm1", residual);
  if (whole) {
    h = attend(net, h);
  } else {
    const Dim n = picture.dims[0], side(net.arch.pictures.window);
    const Count across = (picture.size(1) + side.n() - 1) / side.n();
    const Dim windows(n.n() * across * across), padded(across * across * side.n() * side.n()),
        places(picture.size(1) * picture.size(2));
    h = pad(view(std::move(h), Shape{n, places, net.H}), 1, padded.n() - places.n());
    h = rearranged(std::move(h), Shape{windows, side, side, net.H});
    h = attend(net, h);
    h = rearranged(std::move(h), Shape{n, padded, net.H});
    if (padded.n() != places.n()) h = contiguous(narrow(std::move(h), 1, 0, places));
    h = view(std::move(h), Shape{n, picture.dims[1], picture.dims[2], net.H});
  }
  h = add(residual, std::move(h));
  const Tensor normed = net.layer_norm("layer_norm2", h);
  Tensor fed = feed_forward(net, normed);
  return add(std::move(h), std::move(fed));
}

Tensor sam_convolution(Net& net, const char* name, Tensor x, Dim out, Count kernel, Count stride) {
  Scope scope(net.tape, name, net.source());
  const Dim height((x.size(2) - 1) / stride + 1), width((x.size(3) - 1) / stride + 1);
  Tensor weight = net.parameter(name, "weight", Shape{out, x.dim(1), Dim(kernel), Dim(kernel)});
  return convolution(std::move(x), std::move(weight), {}, {height, width});
}

namespace {

constexpr NeckNames kOwnNeck = {
    "high_res_vision_model.vision_encoder.neck", "high_res_vision_model.vision_encoder.neck.conv1",
    "high_res_vision_model.vision_encoder.neck.layer_norm1", "high_res_vision_model.vision_encoder.neck.conv2",
    "high_res_vision_model.vision_encoder.neck.layer_norm2"};
constexpr NeckNames kOtherNeck = {"high_res_vision_neck", "high_res_vision_neck.conv1",
                                  "high_res_vision_neck.layer_norm1", "high_res_vision_neck.conv2",
                                  "high_res_vision_neck.layer_norm2"};

}  // namespace

// From the first norm on the channels lie last in memory.
Tensor sam_neck(Net& net, const NeckNames& names, const Tensor& hidden) {
  Scope in(net.tape, names.module, kNeck);
  const Dim out(net.arch.pictures.width);
  Tensor h = sam_convolution(net, names.conv1, permute(hidden, {0, 3, 1, 2}), out, 1, 1);
  h = net.layer_norm(names.norm1, permute(std::move(h), {0, 2, 3, 1}));
  h = sam_convolution(net, names.conv2, channels_first(std::move(h)), out, 3, 1);
  h = net.layer_norm(names.norm2, channels_last(std::move(h)));
  return channels_first(std::move(h));
}

namespace {

Tensor projection(Net& net, Tensor hidden, Dim side) {
  Scope in(net.tape, "high_res_vision_proj", kProjection);
  constexpr Count kLarger = 4;  // each side, of SigLIP's patches
  const Count out = net.arch.pictures.width;
  const Dim wide(kLarger * side.n());
  const Shape larger{hidden.dim(0), hidden.dim(1), wide, wide};
  Tensor h = interpolate(std::move(hidden), larger);
  h = sam_convolution(net, "high_res_vision_proj.conv1", std::move(h), Dim(2 * out), 3, 2);
  return sam_convolution(net, "high_res_vision_proj.conv2", std::move(h), Dim(4 * out), 3, 2);
}

Tensor high_res(Net& net, Dim side) {
  const Architecture& arch = net.arch.parts[kSam];
  const Dim pictures(picture_count(net)), grid(arch.image_size / arch.patch_size), patch(arch.patch_size),
      large(arch.image_size);
  Net& sam = net.part(arch, pictures, Dim(grid.n() * grid.n()));
  Tape& t = net.tape;
  Scope in(t, "", kHighRes);
  Tensor last;
  {
    Scope encoder(t, "high_res_vision_model.vision_encoder", kEncoder);
    const char* const kPatches = "high_res_vision_model.vision_encoder.patch_embed.projection";
    Tensor weight = net.parameter(kPatches, "weight", Shape{sam.H, Dim(arch.num_channels), patch, patch});
    Tensor bias = net.parameter(kPatches, "bias", Shape{sam.H});
    const Tensor pixels = net.more_inputs.empty() ? t.allocate(Shape{pictures, Dim(arch.num_channels), large, large},
                                                               net.weight_dtype(4), "pixels")
                                                  : net.more_inputs.back();
    Tensor hidden = permute(patch_convolution(pixels, std::move(weight), std::move(bias)), {0, 2, 3, 1});
    hidden = sam.hooked_inputs(std::move(hidden));
    hidden = add(std::move(hidden),
                 net.parameter("high_res_vision_model.vision_encoder", "pos_embed", Shape{Dim(1), grid, grid, sam.H}));
    sam.outer_locals.push_back(hidden);
    Stack stack{"high_res_vision_model.vision_encoder.layers", arch.num_layers, sam_layer};
    stack.after = keep_hidden;
    hidden = sam.layers(stack, std::move(hidden));
    last = sam_neck(sam, kOwnNeck, hidden);
  }
  const std::size_t place = t.parameter_place();
  const Tensor projected = projection(sam, last, side);
  const Tensor global = sam_neck(sam, kOtherNeck, sam.model_locals.front());
  const std::size_t behind = t.parameter_place();
  t.set_parameter_place(place);
  Tensor other = projection(sam, global, side);
  t.set_parameter_place(behind);
  other = mul(std::move(other), net.parameter("", "high_res_vision_alpha", Shape{Dim(1)}));
  Tensor out = channels_last(add(projected, std::move(other)));
  const Shape rows{out.dim(0), Dim(side.n() * side.n()), out.dim(3)};
  out = view(std::move(out), rows);
  let_tower_go(sam);
  return out;
}

Tensor features(Net& net) {
  Net& tower = tower_part(net, Dim(picture_count(net)));
  const Dim side(tower.arch.image_size / tower.arch.patch_size), half(net.H.n() / 2);
  Tensor made;
  {
    const Tensor low = tower.arch.program->forward(tower);
    const Tensor high = high_res(net, side);
    Scope in(net.tape, "aligner", kAligner);
    const Tensor small = net.linear("aligner.vision_proj", low, half, true);
    const Tensor large = net.linear("aligner.high_res_vision_proj", high, half, true);
    made = cat({&large, &small}, -1);
    made = gelu(std::move(made));
    made = net.linear("aligner.proj", std::move(made), net.H, true);
  }
  let_tower_go(tower);
  return view(made, Shape{Dim(made.size(0) * made.size(1)), net.H});
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), features, kModel);
}

const Program kProgram = {
    .forward = forward_with_pictures<merge>, .lm_head = language_head, .inputs = inputs, .attention = kNoFlash};

}  // namespace

const Family kRows[] = {
    {"deepseek_vl_hybrid", "DeepseekVLHybrid", "DeepseekVLHybridForConditionalGeneration", kSeeingClasses, read_config,
     &kProgram, kModelLayers, kDeepseekVlFacts},
};

extern const FamilyRows deepseek_vl_hybrid_rows;
const FamilyRows deepseek_vl_hybrid_rows = kRows;

}  // namespace tidemark
