// Qwen2-VL and Qwen2.5-VL: pictures as a row of patches of any number, merged two by two; positions in three
// dimensions.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/qwen_vl.hpp"

namespace tidemark {
namespace {

constexpr const char* kTower =
    "transformers 5.12 models/qwen2_vl/modeling_qwen2_vl.py: Qwen2VisionTransformerPretrainedModel.forward";
constexpr const char* kBlock = "transformers 5.12 models/qwen2_vl/modeling_qwen2_vl.py: Qwen2VLVisionBlock.forward";
constexpr const char* kBlock25 =
    "transformers 5.12 models/qwen2_5_vl/modeling_qwen2_5_vl.py: Qwen2_5_VLVisionBlock.forward";
constexpr const char* kAttention = "transformers 5.12 models/qwen2_vl/modeling_qwen2_vl.py: VisionAttention.forward";
constexpr const char* kPatches = "transformers 5.12 models/qwen2_vl/modeling_qwen2_vl.py: PatchEmbed.forward";
constexpr const char* kMerger = "transformers 5.12 models/qwen2_vl/modeling_qwen2_vl.py: PatchMerger.forward";
constexpr const char* kModel = "transformers 5.12 models/qwen2_vl/modeling_qwen2_vl.py: Qwen2VLModel.forward";
constexpr const char* kText = "transformers 5.12 models/qwen2_vl/modeling_qwen2_vl.py: Qwen2VLTextModel.forward";
constexpr const char* kTextAttention =
    "transformers 5.12 models/qwen2_vl/modeling_qwen2_vl.py: Qwen2VLAttention.forward";
constexpr const char* kSections =
    "transformers 5.12 models/qwen2_vl/modeling_qwen2_vl.py: apply_multimodal_rotary_pos_emb";
constexpr const char* kTower25 =
    "transformers 5.12 models/qwen2_5_vl/modeling_qwen2_5_vl.py: Qwen2_5_VisionTransformerPretrainedModel.forward";

}  // namespace

void read_qwen2_vl_text(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 32768);
  read_kv_heads(fields, architecture, 8);
  derive_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  read_qwen_window(fields, architecture);
}

void read_window_tower(ConfigFields& fields, Architecture& tower) {
  tower.hidden_size = fields.count({"hidden_size"}, 3584);
  tower.intermediate_size = fields.count({"intermediate_size"}, 3420);
  tower.num_layers = fields.count({"depth"}, 32);
  tower.activation = read_activation(fields, {"hidden_act"}, "silu");
  tower.pictures.width = fields.count({"out_hidden_size"}, 3584);
  tower.pictures.window = fields.count({"window_size"}, 112);
  tower.gated_mlp = true;
  const Value* full = fields.find({"fullatt_block_indexes"});
  std::vector<Count>& layers = tower.pictures.layers;
  if (full == nullptr || !full->is_array()) {
    layers = {7, 15, 23, 31};
  } else {
    for (const Value& item : full->items) layers.push_back(item.integer);
  }
  for (Count i = 0; i < tower.num_layers; ++i) {
    tower.layer_kinds.push_back(std::find(layers.begin(), layers.end(), i) != layers.end() ? 1 : 0);
  }
  fields.accept({"tokens_per_second"});
}

namespace {

// transformers 5.12.1 models/qwen2_vl/configuration_qwen2_vl.py: Qwen2VLVisionConfig.
void read_tower_2(ConfigFields& fields, Architecture& tower) {
  tower.hidden_size = fields.count({"embed_dim"}, 1280);
  tower.intermediate_size =
      static_cast<Count>(static_cast<double>(tower.hidden_size) * fields.multiplier({"mlp_ratio"}, 4.0));
  tower.num_layers = fields.count({"depth"}, 32);
  tower.activation = read_activation(fields, {"hidden_act"}, "quick_gelu");
  tower.pictures.width = fields.count({"hidden_size"}, 3584);
}

void read_either(ConfigFields& fields, Architecture& architecture, void (*read)(ConfigFields&, Architecture&)) {
  // Until 4.52 the language model's keys stood beside vision_config; both are read.
  if (const Value* text = object_in(fields, "text_config")) {
    ConfigFields inner(*text, fields.path() + "/text_config", fields.issues());
    read_qwen2_vl_text(inner, architecture);
    accept_rotation(inner);
    architecture.tie_word_embeddings = inner.flag({"tie_word_embeddings"}, false);
    inner.report_unread("qwen2_vl");
  } else {
    read_qwen2_vl_text(fields, architecture);
  }
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, architecture.tie_word_embeddings);
  accept_rotation(fields);
  read_qwen_tower(fields, architecture, read);
}

}  // namespace

void accept_rotation(ConfigFields& fields) {
  fields.accept({"rope_scaling", "rope_parameters", "rope_theta", "image_token_id", "video_token_id",
                 "vision_start_token_id", "vision_end_token_id", "vision_token_id", "model_type", "architectures",
                 "torch_dtype", "dtype"});
}

void read_qwen_tower(ConfigFields& fields, Architecture& architecture, void (*read)(ConfigFields&, Architecture&)) {
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture tower;
  tower.attention_bias = tower.attention_out_bias = tower.mlp_bias = true;
  tower.num_channels = vision.count({"in_channels", "in_chans"}, 3);
  tower.patch_size = square_side(vision, "patch_size", 14);
  tower.pictures.merge = vision.count({"spatial_merge_size"}, 2);
  tower.pictures.frames = vision.count({"temporal_patch_size"}, 2);
  architecture.pictures.video_frames = tower.pictures.frames;
  architecture.facts.pictures = PictureRule::kPixels;
  vision.accept({"spatial_patch_size", "model_type", "in_chans", "hidden_act", "initializer_range"});
  read(vision, tower);
  tower.num_heads = vision.count({"num_heads"}, tower.num_heads > 0 ? tower.num_heads : 16);
  tower.num_kv_heads = tower.num_heads;
  derive_head_dim(vision, tower);
  // A picture of a size that the job leaves open: sixteen tokens square, as the processors' smallest.
  tower.image_size = 16 * tower.patch_size * tower.pictures.merge;
  tower.max_positions = 1;
  vision.report_unread(architecture.model_type);
  const Count width = tower.pictures.width;  // 0: a projector's
  if (width > 0 && width != architecture.hidden_size && architecture.hidden_size > 0) {
    fields.error("INVALID_VALUE", "vision_config",
                 "The vision tower hands out vectors of " + std::to_string(tower.pictures.width) +
                     ", the language model takes " + std::to_string(architecture.hidden_size) + ".");
  }
  architecture.parts.push_back(std::move(tower));
}

namespace {

/// Patches of a picture, down and across. Processors round to whole tokens (smart_resize).
PictureSize grid_of(const Net& net) {
  const Architecture& tower = net.arch.parts.empty() ? net.arch : net.arch.parts.front();
  const PictureSize size = picture_size(net);
  const Count merge = tower.pictures.merge, token = tower.patch_size * merge;
  const auto patches = [&](Count pixels) { return std::max<Count>(1, (pixels + token / 2) / token) * merge; };
  return {patches(size.height), patches(size.width)};
}

Count patches_of(const Net& net) {
  const PictureSize grid = grid_of(net);
  return grid.height * grid.width;
}

Dim pixels_of_patch(const Architecture& tower) {
  return Dim(tower.num_channels * tower.pictures.frames * tower.patch_size * tower.patch_size);
}

}  // namespace

std::vector<Count> vision_lengths(const Net& tower) {
  const auto layer = static_cast<std::size_t>(tower.layer_index);
  const bool full = tower.arch.pictures.window == 0 || tower.arch.layer_kinds[layer] != 0;
  const auto pictures = static_cast<std::size_t>(picture_count(tower));
  if (full) return std::vector<Count>(pictures, patches_of(tower));
  // get_vision_window_index: windows of tokens, those at the right and lower edge smaller.
  const Pictures& p = tower.arch.pictures;
  const PictureSize grid = grid_of(tower);
  const Count rows = grid.height / p.merge, columns = grid.width / p.merge;
  const Count side = std::max<Count>(1, p.window / p.merge / tower.arch.patch_size);
  std::vector<Count> lengths;
  for (std::size_t i = 0; i < pictures; ++i) {
    for (Count y = 0; y < rows; y += side) {
      for (Count x = 0; x < columns; x += side) {
        lengths.push_back(std::min(side, rows - y) * std::min(side, columns - x) * p.merge * p.merge);
      }
    }
  }
  return lengths;
}

void qwen_picture_inputs(Net& net) {
  if (net.job.images_per_sample == 0) return;
  const Dim count(picture_count(net));
  net.pixel_values = net.tape.allocate(Shape{Dim(count.n() * patches_of(net)), pixels_of_patch(net.arch.parts.front())},
                                       Dtype::kFp32, "pixel_values");
  integer_input(net, Shape{count, Dim(3)}, "image_grid_thw");
}

void qwen_text_and_pictures(Net& net) {
  text_inputs(net);
  qwen_picture_inputs(net);
}

void qwen_inputs(Net& net) {
  qwen_text_and_pictures(net);
  integer_input(net, Shape{net.B, net.S}, "mm_token_type_ids");
}

Net& qwen_tower_part(Net& net) {
  const Architecture& tower = net.arch.parts.front();
  const Dim rows(picture_count(net) * patches_of(net));
  Net& part = net.part(tower, Dim(1), rows);
  Tensor pixels = net.pixel_values;
  if (!pixels.defined()) pixels = net.tape.allocate(Shape{rows, pixels_of_patch(tower)}, Dtype::kFp32, "pixel_values");
  part.pixel_values = to(std::move(pixels), net.weight_dtype(5));
  return part;
}

Tensor qwen_patches(Net& net, bool bias, const char* source, const char* name) {
  Scope in(net.tape, name, source);
  const Dim channels(net.arch.num_channels), frames(net.arch.pictures.frames), side(net.arch.patch_size);
  Tensor weight = net.parameter(name, "weight", Shape{net.H, channels, frames, side, side});
  Tensor b = bias ? net.parameter(name, "bias", Shape{net.H}) : Tensor();
  Tensor pixels = view(net.pixel_values, Shape{net.S, channels, frames, side, side});
  pixels = patch_convolution(std::move(pixels), std::move(weight), std::move(b));
  return view(std::move(pixels), Shape{net.S, net.H});
}

VisionTables vision_tables(Net& net) {
  return vision_tables_of(net, net.tape.allocate(Shape{net.S, Dim(net.hd.n() / 2)}, Dtype::kFp32, "mul"));
}

VisionTables vision_tables_of(Net& net, Tensor rotary) {
  Tape& t = net.tape;
  t.buffer("rotary_pos_emb.inv_freq", net.hd.n() / 4 * 4);
  const Shape table{net.S, net.hd};
  VisionTables tables;
  tables.rotary = std::move(rotary);
  tables.doubled = t.allocate(table, Dtype::kFp32, "cat");
  net.shared.cos = t.allocate(table, Dtype::kFp32, "cos");
  net.shared.sin = t.allocate(table, Dtype::kFp32, "sin");
  return tables;
}

// apply_rotary_pos_emb_vision: both in fp32, whose copies live until it returns.
void rotate_vision(Net& net, Tensor& q_states, Tensor& k_states) {
  const Tensor q = to(q_states, Dtype::kFp32);
  const Tensor k = to(k_states, Dtype::kFp32);
  const Tensor cos = unsqueeze(net.shared.cos, 1);
  const Tensor sin = unsqueeze(net.shared.sin, 1);
  Tensor q_embed = rotate_by(q, cos, sin);
  Tensor k_embed = rotate_by(k, cos, sin);
  q_embed = to(std::move(q_embed), q_states.dtype());
  k_embed = to(std::move(k_embed), k_states.dtype());
  q_states = std::move(q_embed);
  k_states = std::move(k_embed);
}

Tensor attend_in_stretches(Net& net, Tensor q, Tensor k, Tensor v, const std::vector<Count>& lengths,
                           const char* project) {
  const Dim rows = q.dim(0);
  for (Tensor* states : {&q, &k, &v}) *states = unsqueeze(transpose(std::move(*states), 0, 1), 0);
  AttentionOptions options;
  options.causal = false;
  Tensor out;
  std::vector<Tensor> outputs;
  Pieces qs, ks, vs;
  if (wants_flash(net.job)) {
    out = attention(net, q, k, v, options);
  } else {
    qs = split(q, 2, lengths);
    ks = split(k, 2, lengths);
    vs = split(v, 2, lengths);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      outputs.push_back(attention(net, qs.part[i], ks.part[i], vs.part[i], options));
      net.attention_weights.reset();
    }
    out = cat(outputs, 1);
  }
  out = view(std::move(out), Shape{rows, net.H});
  return net.linear(project, std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor qwen_vision_attention(Net& net, Tensor hidden, const char* source) {
  Scope in(net.tape, "attn", source);
  const Tensor x = std::move(hidden);
  Tensor qkv = net.linear("attn.qkv", x, Dim(3 * net.H.n()), net.arch.attention_bias);
  qkv = permute(view(std::move(qkv), Shape{net.S, Dim(3), net.A, net.hd}), {1, 0, 2, 3});
  Tensor q, k, v;
  {
    Pieces three = unbind(std::move(qkv), 0);
    q = three.part[0];
    k = three.part[1];
    v = three.part[2];
  }
  if (net.arch.qk_norm) {  // GLM-OCR's
    q = rms_norm(net, "attn.q_norm", std::move(q));
    k = rms_norm(net, "attn.k_norm", std::move(k));
  }
  rotate_vision(net, q, k);
  return attend_in_stretches(net, std::move(q), std::move(k), std::move(v), vision_lengths(net), "attn.proj");
}

Tensor qwen_vision_mlp(Net& net, Tensor hidden, const char* fc1, const char* fc2, const char* source) {
  Scope in(net.tape, "mlp", source);
  const Tensor x = std::move(hidden);
  Tensor h = net.linear(fc1, x, net.F, true);
  h = activate(net.arch.activation, std::move(h));
  return net.linear(fc2, std::move(h), net.H, true);
}

Tensor qwen_gated_mlp(Net& net, Tensor hidden, const char* source) {
  Scope in(net.tape, "mlp", source);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.mlp_bias;
  Tensor gate = net.linear("mlp.gate_proj", x, net.F, bias);
  gate = activate(net.arch.activation, std::move(gate));
  Tensor up = net.linear("mlp.up_proj", x, net.F, bias);
  gate = mul(std::move(gate), std::move(up));
  return net.linear("mlp.down_proj", std::move(gate), net.H, bias);
}

Tensor qwen_gated_block(Net& net, Tensor hidden_in, const char* source,
                        Tensor (*attention)(Net& tower, Tensor hidden)) {
  Scope in(net.tape, "", source);
  const Tensor argument = std::move(hidden_in);
  Tensor h = rms_norm(net, "norm1", argument);
  h = attention(net, std::move(h));
  Tensor hidden = add(argument, std::move(h));
  h = rms_norm(net, "norm2", hidden);
  h = qwen_gated_mlp(net, std::move(h), source);
  return add(std::move(hidden), std::move(h));
}

Tensor joined_pictures(Net& net, Tensor features) {
  const Count pictures = picture_count(net);
  const std::vector<Count> sizes(static_cast<std::size_t>(pictures), features.size(0) / pictures);
  const Pieces pieces = split(std::move(features), 0, sizes);
  return cat(std::vector<Tensor>(pieces.part.begin(), pieces.part.end()), 0);
}

namespace {

Tensor features(Net& net) {
  Net& tower = qwen_tower_part(net);
  Tensor rows = tower.arch.program->forward(tower);
  tower.shared = {};
  tower.pixel_values.reset();
  net.image_outputs = std::exchange(tower.image_outputs, {});
  net.keep_image_output(rows);
  return joined_pictures(net, std::move(rows));
}

}  // namespace

Tensor merge_qwen(Net& net, Tensor embeds, const char* source) {
  return merge_features(net, std::move(embeds), features, source, false);
}

void make_positions_3d(Net& net) {
  const bool pictures = net.job.images_per_sample > 0;
  const Shape shape = pictures ? Shape{Dim(3), net.B, net.S} : Shape{Dim(1), net.S};
  net.shared.position_ids = net.tape.allocate(shape, Dtype::kInt64, "position_ids");
}

void rotary_tables_from_3d(Net& net, Dtype dtype, Count dimensions, bool joined) {
  Tape& t = net.tape;
  const Dim dim = net.arch.rotary_dim == net.hd.n() ? net.hd : Dim(net.arch.rotary_dim);
  t.buffer("rotary_emb.inv_freq", dim.n() / 2 * 4);
  t.buffer("rotary_emb.original_inv_freq", dim.n() / 2 * 4);
  const Dim three(3), half(dim.n() / 2);
  const Shape table = dimensions == 1 ? Shape{net.B, net.S, dim} : Shape{three, net.B, net.S, dim};
  const Tensor positions = t.allocate(Shape{three, net.B, Dim(1), net.S}, Dtype::kFp32, "position_ids.float()");
  Tensor freqs = t.allocate(Shape{three, net.B, half, net.S}, Dtype::kFp32, "bmm");
  if (joined) freqs = t.allocate(Shape{net.B, net.S, half}, Dtype::kFp32, "cat");
  const Tensor emb = t.allocate(table, Dtype::kFp32, "cat");
  Tensor cos = t.allocate(table, Dtype::kFp32, "cos");
  cos = t.allocate(table, Dtype::kFp32, "mul");
  Tensor sin = t.allocate(table, Dtype::kFp32, "sin");
  sin = t.allocate(table, Dtype::kFp32, "mul");
  net.shared.cos = to(std::move(cos), dtype);
  net.shared.sin = to(std::move(sin), dtype);
}

void rotary_tables_3d(Net& net, Dtype dtype) {
  rotary_tables_from_3d(net, dtype, 3);
}

namespace {

// m[i % 3] of the split tables, joined again: a copy of the right dimension for each channel, in every layer.
Tensor sections(Net& net, const Tensor& table) {
  Scope in(net.tape, "self_attn", kSections);
  return net.tape.allocate(Shape{table.dim(1), table.dim(2), table.dim(3)}, table.dtype(), "cat");
}

void rotate_sections(Net& net, Tensor& q, Tensor& k) {
  const Tensor cos = std::exchange(net.shared.cos, sections(net, net.shared.cos));
  const Tensor sin = std::exchange(net.shared.sin, sections(net, net.shared.sin));
  Tensor q_embed = rotate(net, q);
  Tensor k_embed = rotate(net, k);
  q = std::move(q_embed);
  k = std::move(k_embed);
  net.shared.cos = cos;
  net.shared.sin = sin;
}

Tensor text_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kTextAttention, rotate_sections);
}

Tensor text_layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kText, text_attention, llama_mlp);
}

Tensor text_embed(Net& net) {
  Scope in(net.tape, "model", kText);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_positions_3d(net);
  make_causal_masks(net, embeds);
  rotary_tables_3d(net, embeds.dtype());
  return embeds;
}

}  // namespace

const Program kQwen2VlLanguage = {one_stack<text_embed, text_layer, llama_norm>, llama_head};

Tensor qwen2_vl_block(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "", kBlock);
  const Tensor argument = std::move(hidden_in);
  Tensor h = net.layer_norm("norm1", argument);
  h = qwen_vision_attention(net, std::move(h), kAttention);
  Tensor hidden = add(argument, std::move(h));
  h = net.layer_norm("norm2", hidden);
  h = qwen_vision_mlp(net, std::move(h), "mlp.fc1", "mlp.fc2", kBlock);
  return add(std::move(hidden), std::move(h));
}

namespace {

Tensor attention25(Net& net, Tensor hidden) {
  return qwen_vision_attention(net, std::move(hidden), kAttention);
}

Tensor block25(Net& net, Tensor hidden) {
  return qwen_gated_block(net, std::move(hidden), kBlock25, attention25);
}

Tensor merger(Net& net, Tensor hidden) {
  Scope in(net.tape, "visual.merger", kMerger);
  const char* const kNorm = "visual.merger.ln_q";
  Tensor h = net.arch.gated_mlp ? rms_norm(net, kNorm, std::move(hidden)) : net.layer_norm(kNorm, std::move(hidden));
  const Count squared = net.arch.pictures.merge * net.arch.pictures.merge;
  const Dim wide(net.H.n() * squared);
  h = view(std::move(h), Shape{Dim(net.S.n() / squared), wide});
  h = net.linear("visual.merger.mlp.0", std::move(h), wide, true);
  h = gelu(std::move(h));
  return net.linear("visual.merger.mlp.2", std::move(h), Dim(net.arch.pictures.width), true);
}

Tensor tower(Net& net) {
  Scope in(net.tape, "visual", kTower);
  const Tensor positions = net.tape.allocate(Shape{net.S, Dim(2)}, Dtype::kInt64, "position_ids");
  Tensor hidden = net.hooked_inputs(qwen_patches(net, false, kPatches));
  const VisionTables tables = vision_tables(net);
  hidden = net.layers({"visual.blocks", net.arch.num_layers, qwen2_vl_block}, std::move(hidden));
  net.keep_image_output(hidden);
  return merger(net, hidden);
}

/// The patches in windows' order, and back: rows of `merge` squared patches are moved.
Tensor reorder(Net& net, Tensor x, const Tensor& index, bool merged) {
  const Count group = merged ? 1 : net.arch.pictures.merge * net.arch.pictures.merge;
  const Dim width = x.dim(-1), rows = x.dim(0);
  Tensor grouped = reshape(std::move(x), Shape{Dim(rows.n() / group), Dim(group), width});
  grouped = gather_rows(std::move(grouped), index);
  return reshape(std::move(grouped), Shape{rows, width});
}

}  // namespace

Tensor qwen_window_tower(Net& net, const char* source, Tensor (*block)(Net& tower, Tensor hidden), bool tables) {
  Scope in(net.tape, "visual", source);
  Tape& t = net.tape;
  const Dim merged(net.S.n() / (net.arch.pictures.merge * net.arch.pictures.merge));
  const Tensor positions = t.allocate(Shape{net.S, Dim(2)}, Dtype::kInt64, "position_ids");
  Tensor hidden = net.hooked_inputs(qwen_patches(net, false, kPatches));
  const Tensor window_index = t.allocate(Shape{merged}, Dtype::kInt64, "window_index");
  Tensor rotary = t.allocate(Shape{net.S, Dim(net.hd.n() / 2)}, Dtype::kFp32, "mul");
  hidden = reorder(net, std::move(hidden), window_index, false);
  rotary = reorder(net, std::move(rotary), window_index, false);
  VisionTables held;
  if (tables) {
    held = vision_tables_of(net, std::move(rotary));
  } else {
    t.buffer("rotary_pos_emb.inv_freq", net.hd.n() / 4 * 4);
    net.shared.cos = rotary;
  }
  hidden = net.layers({"visual.blocks", net.arch.num_layers, block}, std::move(hidden));
  net.keep_image_output(hidden);
  Tensor out = merger(net, hidden);
  const Tensor reverse = t.allocate(Shape{merged}, Dtype::kInt64, "argsort");
  return gather_rows(std::move(out), reverse);
}

namespace {

Tensor tower25(Net& net) {
  return qwen_window_tower(net, kTower25, block25, true);
}

const Program kTower2 = {tower}, kTower2_5 = {tower25};

Tensor merge(Net& net, Tensor embeds) {
  return merge_qwen(net, std::move(embeds), kModel);
}

// transformers 5.12.1 models/qwen2_vl/configuration_qwen2_vl.py: Qwen2VLConfig, Qwen2VLTextConfig.
void read_qwen2_vl_config(ConfigFields& fields, Architecture& architecture) {
  read_either(fields, architecture, read_tower_2);
  architecture.language = &kQwen2VlLanguage;
  if (!architecture.parts.empty()) architecture.parts.front().program = &kTower2;
}

// transformers 5.12.1 models/qwen2_5_vl/configuration_qwen2_5_vl.py: Qwen2_5_VLConfig, Qwen2_5_VLTextConfig.
void read_qwen2_5_vl_config(ConfigFields& fields, Architecture& architecture) {
  read_either(fields, architecture, read_window_tower);
  architecture.language = &kQwen2VlLanguage;
  if (!architecture.parts.empty()) architecture.parts.front().program = &kTower2_5;
}

const Program kProgram = {
    forward_with_pictures<merge>, language_head, kDecoderForwards, OwnLoss::kFp32, {}, qwen_inputs};

}  // namespace

const Family kRows[] = {
    {"qwen2_vl", "Qwen2VL", "Qwen2VLForConditionalGeneration", kSeeingClasses, read_qwen2_vl_config, &kProgram,
     kModelLayers, kNoFlex},
    {"qwen2_5_vl", "Qwen2_5_VL", "Qwen2_5_VLForConditionalGeneration", kSeeingClasses, read_qwen2_5_vl_config,
     &kProgram, kModelLayers, kNoFlex},
};

extern const FamilyRows qwen2_vl_rows;
const FamilyRows qwen2_vl_rows = kRows;

}  // namespace tidemark
