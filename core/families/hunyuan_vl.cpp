// HunyuanOCR (HunYuan VL): Qwen2-VL's row of patches through SigLIP's layers, under a table of positions that is
// stretched to each picture; convolutions make four neighbours one token, a vector ends each row and others each
// picture; dense Hunyuan behind it, turned along three or four axes.
#include <cmath>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/qwen_vl.hpp"
#include "core/families/towers.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kTower =
    "transformers 5.24 models/hunyuan_vl/modeling_hunyuan_vl.py: HunYuanVLVisionTransformer.forward";
constexpr const char* kEmbeddings =
    "transformers 5.24 models/hunyuan_vl/modeling_hunyuan_vl.py: HunYuanVLVisionPatchEmbed.forward";
constexpr const char* kBlock =
    "transformers 5.24 models/hunyuan_vl/modeling_hunyuan_vl.py: HunYuanVLVisionBlock.forward";
constexpr const char* kEye =
    "transformers 5.24 models/hunyuan_vl/modeling_hunyuan_vl.py: HunYuanVLVisionAttention.forward";
constexpr const char* kMerger =
    "transformers 5.24 models/hunyuan_vl/modeling_hunyuan_vl.py: HunYuanVLVisionPatchMerger.forward";
constexpr const char* kText = "transformers 5.24 models/hunyuan_vl/modeling_hunyuan_vl.py: HunYuanVLTextModel.forward";
constexpr const char* kLayer =
    "transformers 5.24 models/hunyuan_vl/modeling_hunyuan_vl.py: HunYuanVLDenseV1DecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.24 models/hunyuan_vl/modeling_hunyuan_vl.py: HunYuanVLDenseV1Attention.forward";
constexpr const char* kModel = "transformers 5.24 models/hunyuan_vl/modeling_hunyuan_vl.py: HunYuanVLModel.forward";

// How many axes positions have: sections of each head, as published files call them or as the class does.
Count axes_of(ConfigFields& fields) {
  for (const std::string_view key : {"rope_parameters", "rope_scaling"}) {
    const Value* rotation = object_in(fields, key);
    for (const std::string_view name : {"mrope_section", "xdrope_section"}) {
      const Value* sections = rotation == nullptr ? nullptr : rotation->find(name);
      if (sections != nullptr && sections->is_array()) return static_cast<Count>(sections->items.size());
    }
  }
  fields.error("MISSING_FIELD", "rope_parameters",
               "\"rope_parameters\" must have \"mrope_section\": the class fails without it.");
  return 1;
}

// transformers 5.24 models/hunyuan_vl/configuration_hunyuan_vl.py: HunYuanVLTextConfig.
void read_text(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  const Value* other = fields.find({"attention_head_dim"});
  const bool named = other != nullptr && other->is_integer() && other->integer > 0;
  read_head_dim(fields, architecture, named ? std::optional<Count>(other->integer) : std::nullopt);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = architecture.attention_out_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.qk_norm = true;
  architecture.pictures.depth = axes_of(fields);
  accept_rotation(fields);
  fields.accept({"attention_head_dim", "org_vocab_size", "pad_id", "eod_token_id", "sep_token_id", "pretraining_tp"});
}

// HunYuanVLVisionConfig
Architecture read_vision(ConfigFields& fields, const Architecture& text) {
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture tower;
  read_tower_sizes(vision, tower, 1152, 27, 16, 4304);
  tower.activation = read_activation(vision, {"hidden_act"}, "gelu");
  tower.patch_size = vision.count({"patch_size"}, 16);
  tower.pictures.merge = vision.count({"spatial_merge_size"}, 2);
  const Count side = vision.count({"max_image_size"}, 2048) / tower.patch_size;
  tower.pictures.positions = side * side;
  tower.pictures.width = text.hidden_size;  // HunYuanVLConfig.__post_init__
  tower.attention_bias = tower.attention_out_bias = tower.mlp_bias = true;
  tower.attention_dropout = 0.0;  // read by nobody
  // A picture of a size that the job leaves open: of as many pixels as the processor's smallest.
  tower.image_size = 16 * tower.patch_size * tower.pictures.merge;
  tower.max_positions = 1;
  if (vision.text({"interpolate_mode"}, "bilinear") != "bilinear") {
    vision.error("UNSUPPORTED_VALUE", "interpolate_mode", "Only \"bilinear\" is modelled, as of all published files.");
  }
  vision.accept({"model_type", "dtype", "torch_dtype", "rms_norm_eps", "num_key_value_heads", "out_hidden_size",
                 "temporal_patch_size", "img_max_token_num", "min_image_size", "max_vit_seq_len", "text_hidden_size"});
  vision.report_unread("hunyuan_vl_vision");
  return tower;
}

// apply_rotary_pos_emb: in fp32, tables as well; all of it, and what it was given, lives until it returns.
struct Turned {
  Tensor q, k;
};
Turned turned(Net& net, const Tensor& q_states, const Tensor& k_states) {
  const Tensor q = to(q_states, Dtype::kFp32);
  const Tensor k = to(k_states, Dtype::kFp32);
  const Tensor cos = to(unsqueeze(net.shared.cos, 1), Dtype::kFp32);
  const Tensor sin = to(unsqueeze(net.shared.sin, 1), Dtype::kFp32);
  const Tensor q_embed = rotate_by(q, cos, sin);
  const Tensor k_embed = rotate_by(k, cos, sin);
  Turned both;
  both.q = to(q_embed, q_states.dtype());
  both.k = to(k_embed, k_states.dtype());
  return both;
}

Tensor self_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, [](Net& n, Tensor& q, Tensor& k) {
    Turned both = turned(n, q, k);
    q = std::move(both.q);
    k = std::move(both.k);
    q = rms_norm(n, "self_attn.query_layernorm", q);
    k = rms_norm(n, "self_attn.key_layernorm", k);
  });
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, llama_mlp);
}

// HunYuanVLRotaryEmbedding.forward: tables of each axis, of which each section takes one's.
void make_tables(Net& net, Dtype dtype) {
  Tape& t = net.tape;
  for (const char* name : {"rotary_emb.inv_freq", "rotary_emb.original_inv_freq"}) t.buffer(name, net.hd.n() / 2 * 4);
  const Dim axes(net.arch.pictures.depth), half(net.hd.n() / 2);
  const Shape halves{axes, net.B, net.S, half}, whole{axes, net.B, net.S, net.hd}, table{net.B, net.S, net.hd};
  Tensor wide = t.allocate(Shape{axes, net.B, net.S, Dim(1)}, Dtype::kFp32, "position_ids.float()");
  const Tensor freqs = t.allocate(halves, Dtype::kFp32, "mul");
  wide.reset();
  const auto scaled = [&](const char* op) {
    Tensor made = t.allocate(halves, Dtype::kFp32, op);
    made = t.allocate(halves, Dtype::kFp32, "mul");
    return made;
  };
  Tensor cos = scaled("cos"), sin = scaled("sin");
  const auto recomposed = [&] {
    const Tensor doubled = t.allocate(whole, Dtype::kFp32, "cat");
    return t.allocate(table, Dtype::kFp32, "cat");
  };
  sin = recomposed();
  cos = recomposed();
  net.shared.cos = to(cos, dtype);
  net.shared.sin = to(sin, dtype);
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kText);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  const bool pictures = net.job.images_per_sample > 0;
  const Shape positions = pictures ? Shape{Dim(net.arch.pictures.depth), net.B, net.S} : Shape{Dim(1), net.S};
  net.shared.position_ids = net.tape.allocate(positions, Dtype::kInt64, "position_ids");
  make_causal_masks(net, embeds);
  make_tables(net, embeds.dtype());
  return embeds;
}

const Program kLanguage = {one_stack<embed, layer, held_norm>, llama_head};

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

// A picture at a time: the table, but for the class token's row, stretched to its shape in fp32.
Tensor embedded(Net& net) {
  const char* const kTable = "vision_tower.embeddings.position_embedding";
  Scope in(net.tape, "vision_tower.embeddings", kEmbeddings);
  const Tensor hidden = row_patches(net, "vision_tower.embeddings.patch_embedding");
  const Count rows = net.arch.pictures.positions;
  const PictureSize g = grid(net);
  const Dim edge(static_cast<Count>(std::sqrt(static_cast<double>(rows)))), patches(g.height * g.width);
  const Tensor weight = net.parameter(kTable, "weight", Shape{Dim(rows + 1), net.H});
  std::vector<Tensor> placed;
  for (Count i = 0; i < picture_count(net); ++i) {
    Tensor table = narrow(weight, 0, 1, Dim(rows));
    table = channels_first(view(std::move(table), Shape{Dim(1), edge, edge, net.H}));
    table = to(std::move(table), Dtype::kFp32);
    table = interpolate(std::move(table), Shape{Dim(1), net.H, Dim(g.height), Dim(g.width)});
    table = view(channels_last(std::move(table)), Shape{patches, net.H});
    table = to(std::move(table), hidden.dtype());
    placed.push_back(clone(std::move(table)));  // repeat(t, 1)
  }
  const Tensor positions = cat(placed, 0);
  return add(hidden, positions);
}

Tensor eye_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kEye);
  const Tensor x = std::move(hidden);
  const Shape heads{net.S, net.A, net.hd};
  const Tensor query = net.linear("self_attn.q_proj", x, net.H, true);
  const Tensor key = net.linear("self_attn.k_proj", x, net.H, true);
  const Tensor value = net.linear("self_attn.v_proj", x, net.H, true);
  Tensor q = view(query, heads), k = view(key, heads), v = view(value, heads);
  return attend_in_stretches(net, std::move(q), std::move(k), std::move(v), vision_lengths(net), "self_attn.o_proj");
}

Tensor block(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBlock);
  Tensor residual = std::move(hidden);
  Tensor h = eye_attention(net, net.layer_norm("layer_norm1", residual));
  h = add(residual, std::move(h));
  residual = h;
  h = qwen_vision_mlp(net, net.layer_norm("layer_norm2", std::move(h)), "mlp.fc1", "mlp.fc2", kBlock);
  return add(std::move(residual), std::move(h));
}

// nn.Conv2d with a bias, of squares of so many places.
Tensor joined(Net& net, const char* name, Tensor x, Dim out, Count side) {
  Scope in(net.tape, name, net.source());
  Tensor weight = net.parameter(name, "weight", Shape{out, x.dim(1), Dim(side), Dim(side)});
  Tensor bias = net.parameter(name, "bias", Shape{out});
  return patch_convolution(std::move(x), std::move(weight), std::move(bias));
}

Tensor merged(Net& net, const Tensor& picture) {
  const char* const kModule = "vision_tower.patch_merger";
  Scope in(net.tape, kModule, kMerger);
  const Dim one(1), four(4 * net.H.n()), width(net.arch.pictures.width);
  const PictureSize g = grid(net);
  const Count merge = net.arch.pictures.merge;
  const Dim down(g.height / merge), across(g.width / merge);
  Tensor newline = net.parameter(kModule, "image_newline", Shape{four});
  Tensor begin = net.parameter(kModule, "image_begin", Shape{width});
  Tensor last = net.parameter(kModule, "image_end", Shape{width});
  net.parameter(kModule, "image_sep", Shape{width});  // unused
  Tensor h = rms_norm(net, "vision_tower.patch_merger.before_rms", picture);
  h = channels_first(view(std::move(h), Shape{one, Dim(g.height), Dim(g.width), net.H}));
  h = joined(net, "vision_tower.patch_merger.proj_conv", h, Dim(2 * net.H.n()), merge);
  h = activate(net.arch.activation, h);
  h = joined(net, "vision_tower.patch_merger.proj_out", h, four, 1);
  newline = expand(view(std::move(newline), Shape{one, four, one, one}), Shape{one, four, down, one});
  h = cat({&h, &newline}, -1);
  const Dim tokens(down.n() * (across.n() + 1));
  h = permute(view(std::move(h), Shape{one, four, tokens}), {0, 2, 1});
  h = net.linear("vision_tower.patch_merger.mlp", h, width, true);
  for (Tensor* end : {&begin, &last}) {
    *end = expand(view(std::move(*end), Shape{one, one, width}), Shape{one, one, width});
  }
  h = cat({&begin, &h, &last}, 1);
  return rms_norm(net, "vision_tower.patch_merger.after_rms", h);
}

// Its last hidden state and what it makes are among the outputs.
Tensor features(Net& net) {
  Net& eyes = qwen_tower_part(net);
  Scope in(net.tape, "vision_tower", kTower);
  Tensor hidden = eyes.layers({"vision_tower.layers", eyes.arch.num_layers, block}, embedded(eyes));
  const Count pictures = picture_count(net);
  const Pieces pieces =
      split(hidden, 0, std::vector<Count>(static_cast<std::size_t>(pictures), hidden.size(0) / pictures));
  const std::size_t merger = net.tape.parameter_place();  // the same for each picture
  std::vector<Tensor> made;
  for (const Tensor& picture : pieces.part) {
    net.tape.set_parameter_place(merger);
    made.push_back(merged(eyes, picture));
  }
  Tensor all = cat(made, 1);
  eyes.pixel_values.reset();
  made.clear();
  net.wrapper_locals.push_back(std::move(hidden));
  net.wrapper_locals.push_back(all);
  return joined_pictures(net, select(std::move(all), 0));
}

// The places of pictures are counted by a copy of what stands there (get_placeholder_mask).
Tensor merge(Net& net, Tensor embeds) {
  {
    const Declared alone(net);
    if (alone) {
      const std::size_t held = net.wrapper_locals.size();
      features(net);
      net.wrapper_locals.resize(held);
      return embeds;
    }
  }
  Tensor made = features(net);
  {
    Scope in(net.tape, "", kModel);
    made = to(std::move(made), embeds.dtype());
    Tensor mask = net.tape.allocate(Shape{net.B, net.S}, Dtype::kBool, "eq");
    mask = expand(unsqueeze(std::move(mask), -1), embeds.shape());
    const Tensor counted = index_marked(embeds, std::move(mask), Dim(made.numel()));
  }
  Tensor merged = scatter_features(net, std::move(embeds), std::move(made), kModel);
  net.outer_locals.push_back(merged);
  return merged;
}

// HunYuanVLConfig. The first files have the language model's keys beside vision_config.
void read_config(ConfigFields& fields, Architecture& architecture) {
  if (const Value* text = object_in(fields, "text_config")) {
    ConfigFields inner(*text, fields.path() + "/text_config", fields.issues());
    read_text(inner, architecture);
    inner.report_unread("hunyuan_vl_text");
  } else {
    read_text(fields, architecture);
  }
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true) || architecture.tie_word_embeddings;
  accept_rotation(fields);
  fields.accept({"im_start_id", "im_end_id", "im_newline_id"});
  architecture.parts.push_back(read_vision(fields, architecture));
  architecture.language = &kLanguage;
}

Outputs answer(Net& net, const Program& program, Tensor hidden) {
  Outputs out = causal_lm(net, program, std::move(hidden));
  for (const Tensor& seen : net.wrapper_locals) out.rest.push_back(seen);
  return out;
}

constexpr HeadForward kHeads[] = {
    {Head::kCausalLm, answer}, {Head::kSequenceClassification, sequence_classification}, {Head::kNone, body_alone}};
const Program kProgram = {
    .forward = forward_with_pictures<merge>, .lm_head = language_head, .heads = kHeads, .inputs = qwen_inputs};
constexpr ClassFacts kFacts = {.pictures = PictureRule::kPixels, .behind_language = "vision_tower"};

}  // namespace

const Family kRows[] = {
    {"hunyuan_vl", "HunYuanVL", "HunYuanVLForConditionalGeneration", kSeeingClasses, read_config, &kProgram,
     kModelLayers, kFacts},
};

extern const FamilyRows hunyuan_vl_rows;
const FamilyRows hunyuan_vl_rows = kRows;

}  // namespace tidemark
