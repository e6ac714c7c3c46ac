// ERNIE 4.5 VL: Qwen2-VL's blocks on patches that a linear layer made, neighbours joined by two feed-forwards for space
// and time; ERNIE 4.5's layers, whose experts are of two kinds: those of text, and smaller ones of what is seen.
#include <string>
#include <utility>

#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/families/qwen_vl.hpp"
#include "core/layers/rotations.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kTower =
    "transformers 5.12 models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py: "
    "Ernie4_5_VLMoeVisionTransformerPretrainedModel.forward";
constexpr const char* kResampler =
    "transformers 5.12 models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py: "
    "Ernie4_5_VLMoeVariableResolutionResamplerModel.forward";
constexpr const char* kModel =
    "transformers 5.12 models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py: Ernie4_5_VLMoeModel.forward";
constexpr const char* kText =
    "transformers 5.12 models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py: Ernie4_5_VLMoeTextModel.forward";
constexpr const char* kTables =
    "transformers 5.12 models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py: Ernie4_5_VLMoeTextRotaryEmbedding.forward";
constexpr const char* kLayer =
    "transformers 5.12 models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py: Ernie4_5_VLMoeDecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py: Ernie4_5_VLMoeTextAttention.forward";
constexpr const char* kBlock =
    "transformers 5.12 models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py: Ernie4_5_VLMoeMoeBlock.forward";
constexpr const char* kExperts =
    "transformers 5.12 models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py: Ernie4_5_VLMoeMoeExperts.forward";

// -- the tower and what joins its patches -----------------------------------------------------------------------------

Tensor tower(Net& net) {
  Scope in(net.tape, "vision_tower", kTower);
  const Tensor positions = net.tape.allocate(Shape{net.S, Dim(2)}, Dtype::kInt64, "position_ids");
  Tensor hidden = net.linear("vision_tower.patch_embed.proj", std::move(net.pixel_values), net.H);
  hidden = net.hooked_inputs(std::move(hidden));
  const VisionTables tables = vision_tables(net);
  hidden = net.layers({"vision_tower.blocks", net.arch.num_layers, qwen2_vl_block}, std::move(hidden));
  return net.layer_norm("vision_tower.ln", std::move(hidden));
}

const Program kTowerProgram = {tower};

/// Ernie4_5_VLMoeVisionMLP: its modules.
struct Joint {
  const char *fc1, *fc2, *norm;
};
constexpr Joint kSpatial = {"resampler_model.spatial_linear.fc1", "resampler_model.spatial_linear.fc2",
                            "resampler_model.spatial_linear.ln"};
constexpr Joint kTemporal = {"resampler_model.temporal_linear.fc1", "resampler_model.temporal_linear.fc2",
                             "resampler_model.temporal_linear.ln"};

Tensor joint(Net& net, const Joint& names, Tensor hidden, Dim width) {
  const Tensor x = std::move(hidden);
  Tensor h = net.linear(names.fc1, x, width, true);
  h = gelu(std::move(h));
  h = net.linear(names.fc2, std::move(h), width, true);
  return net.layer_norm(names.norm, std::move(h));
}

// _temporal_slicing: a picture is both frames of its pair.
Tensor both_frames(Net& net, Tensor hidden) {
  const Tensor x = std::move(hidden);
  const auto places = [&] { return net.tape.allocate(Shape{x.dim(0)}, Dtype::kInt64, "offsets"); };
  const Tensor even_places = places(), odd_places = places();
  const Tensor even = index_rows(x, even_places);
  const Tensor odd = index_rows(x, odd_places);
  return cat({&even, &odd}, -1);
}

Tensor resampled(Net& net, const Net& eyes, const Tensor& last) {
  Scope in(net.tape, "resampler_model", kResampler);
  const Count squared = eyes.arch.pictures.merge * eyes.arch.pictures.merge;
  const Dim width(eyes.H.n() * squared);
  Tensor h = view(last, Shape{Dim(last.size(0) / squared), width});
  h = joint(net, kSpatial, std::move(h), width);
  h = both_frames(net, std::move(h));
  h = joint(net, kTemporal, std::move(h), width);
  h = net.linear("resampler_model.mlp", std::move(h), net.H, true);
  return rms_norm(net, "resampler_model.after_norm", std::move(h));
}

Tensor features(Net& net) {
  Net& eyes = qwen_tower_part(net);
  const Tensor last = eyes.arch.program->forward(eyes);
  eyes.shared = {};
  Tensor rows = resampled(net, eyes, last);
  return joined_pictures(net, std::move(rows));
}

// Ernie4_5_VLMoeProcessor sets a token before each picture and one behind it.
constexpr Count kEdges = 2;

Tensor merge(Net& net, Tensor embeds) {
  Tensor merged = merge_features(net, std::move(embeds), features, kModel, false);
  net.picture_tokens += kEdges * net.job.images_per_sample;
  return merged;
}

// -- the language model -----------------------------------------------------------------------------------------------

Tensor recomposed(Net& net, const Tensor& table) {
  // Height and width take turns in pairs before the columns of time.
  Tape& t = net.tape;
  const Tensor pairs = t.allocate(table.shape(), table.dtype(), "stack");
  const Tensor one = t.allocate(Shape{net.B, net.S, table.dim(3)}, table.dtype(), "cat");
  return t.allocate(Shape{net.B, net.S, net.hd}, table.dtype(), "repeat_interleave");
}

void rotary_tables_of_sections(Net& net) {
  Scope in(net.tape, "rotary_emb", kTables);
  Tape& t = net.tape;
  const Dim three(3), half(net.hd.n() / 2);
  t.buffer("rotary_emb.inv_freq", half.n() * 4);
  const Shape table{three, net.B, net.S, half};
  const Tensor positions = t.allocate(Shape{three, net.B, Dim(1), net.S}, Dtype::kFp32, "position_ids.float()");
  const Tensor freqs = t.allocate(table, Dtype::kFp32, "bmm");
  Tensor cos = t.allocate(table, Dtype::kFp32, "cos");
  cos = t.allocate(table, Dtype::kFp32, "mul");
  Tensor sin = t.allocate(table, Dtype::kFp32, "sin");
  sin = t.allocate(table, Dtype::kFp32, "mul");
  net.shared.sin = recomposed(net, sin);
  net.shared.cos = recomposed(net, cos);
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kText);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_positions_3d(net);
  make_causal_masks(net, embeds);
  rotary_tables_of_sections(net);
  return embeds;
}

Tensor self_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, [](Net& n, Tensor& q, Tensor& k) {
    Rotated turned = rotate_pairs_by_fp32(n, q, k, true);
    q = std::move(turned.q);
    k = std::move(turned.k);
  });
}

/// One kind of experts, and who chooses among them.
struct Kind {
  const char* module;
  ErnieRouter router;
  ExpertForm experts;
};
constexpr Kind kOfText = {"mlp.text_moe",
                          {"mlp.text_moe.gate", "mlp.text_moe.gate.moe_statics"},
                          {.module = "mlp.text_moe.experts", .source = kExperts, .act = "mlp.text_moe.experts.act_fn"}};
constexpr Kind kOfPictures = {"mlp.vision_moe",
                              {"mlp.vision_moe.gate", "mlp.vision_moe.gate.moe_statics"},
                              {.module = "mlp.vision_moe.experts",
                               .source = kExperts,
                               .act = "mlp.vision_moe.experts.act_fn",
                               .width = [](const Net& net) { return net.arch.parts.front().experts.width; }}};

struct Chosen {
  Tensor out, logits;
};
Chosen run_kind(Net& net, const Kind& kind, Tensor numbers) {
  Scope in(net.tape, kind.module, kBlock);
  const Tensor hidden = view(numbers, Shape{Dim(numbers.numel() / net.H.n()), net.H});
  const Routing routing = ernie_routing(net, kind.router, hidden);
  Chosen chosen;
  chosen.out = run_experts(net, kind.experts, hidden, routing.indices, routing.weights);
  chosen.logits = routing.logits;
  return chosen;
}

// Tokens of both kinds: each kind's are found by a mask as large as the hidden states, inverted at each use for text.
Chosen by_kind(Net& net, const Tensor& hidden) {
  Tape& t = net.tape;
  const Shape of_logits{net.T, Dim(net.arch.experts.count)};
  Chosen all;
  all.out = zeros(t, hidden.shape(), hidden.dtype(), "zeros_like");
  all.logits = zeros(t, of_logits, Dtype::kFp32);
  const Tensor types = t.allocate(Shape{net.B, net.S}, Dtype::kBool, "to");
  const Count seen = net.B.n() * net.picture_tokens;
  for (const bool text : {true, false}) {
    const auto mask = [&](const Shape& shape) {
      if (text) return t.allocate(shape.contiguous(), Dtype::kBool, "bitwise_not");
      return expand(view(types, shape.with_last(Dim(1))), shape);
    };
    // A sequence that its pictures do not fit is refused when it has run.
    const Count tokens = !text ? seen : t.above(net.T.n(), seen) ? net.T.n() - seen : 1;
    Tensor where = mask(hidden.shape());
    Tensor numbers = index_marked(hidden, std::move(where), Dim(tokens * net.H.n()));
    Chosen chosen = run_kind(net, text ? kOfText : kOfPictures, std::move(numbers));
    where = mask(hidden.shape());
    all.out = put_marked(std::move(all.out), std::move(where), std::move(chosen.out));
    where = mask(of_logits);
    all.logits = put_marked(std::move(all.logits), std::move(where), std::move(chosen.logits));
  }
  return all;
}

Tensor mlp(Net& net, Tensor hidden_in) {
  if (is_dense_layer(net)) return llama_mlp(net, std::move(hidden_in));
  Scope in(net.tape, "mlp", kBlock);
  const Tensor hidden = std::move(hidden_in);
  const Experts& e = net.arch.experts;
  Tensor shared;
  if (e.shared_width > 0) {
    shared = gated_mlp(net, kSharedExperts, kBlock, hidden, Dim(e.shared_width), net.arch.mlp_bias);
  }
  const bool sees = net.job.images_per_sample > 0;
  Chosen chosen = sees ? by_kind(net, hidden) : run_kind(net, kOfText, hidden);
  if (!sees) {
    const Declared idle(net);
    run_kind(net, kOfPictures, hidden);
  }
  keep_router_logits(net, chosen.logits);
  Tensor out = view(std::move(chosen.out), hidden.shape().contiguous());
  return shared.defined() ? add(std::move(out), shared) : out;
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, mlp);
}

const Program kLanguage = {one_stack<embed, layer, llama_norm>, llama_head};

// transformers 5.12.1 models/ernie4_5_vl_moe/configuration_ernie4_5_vl_moe.py: Ernie4_5_VLMoeTextConfig. The first of
// two widths is that of text's experts; the other is kept with what the tower is like.
void read_text(ConfigFields& fields, Architecture& architecture, Architecture& tower) {
  read_ernie4_5_experts(fields, architecture);
  Count widths[] = {1536, 512};
  if (const Value* given = fields.find({"moe_intermediate_size"})) {
    const bool both = given->is_array() && given->items.size() == 2 && given->items[0].is_integer() &&
                      given->items[1].is_integer() && given->items[0].integer > 0 && given->items[1].integer > 0;
    if (!both && !given->is_null()) {
      fields.error("INVALID_VALUE", "moe_intermediate_size",
                   "Experts have two widths, a list of two numbers: of text's, and of what is seen.");
      return;
    }
    for (std::size_t i = 0; both && i < 2; ++i) widths[i] = given->items[i].integer;
  }
  Experts& e = architecture.experts;
  e.width = widths[0];
  tower.experts.width = widths[1];
  e.shared_width = e.width * fields.count({"moe_num_shared_experts"}, 2, 0);
  read_mlp_layer_types(fields, architecture);
  accept_rotation(fields);
}

// Ernie4_5_VLMoeVisionConfig
void read_vision(ConfigFields& fields, Architecture& tower) {
  tower.hidden_size = fields.count({"hidden_size"}, 1280);
  tower.num_layers = fields.count({"depth"}, 32);
  tower.num_heads = fields.count({"num_heads"}, 16);
  tower.num_kv_heads = tower.num_heads;
  derive_head_dim(fields, tower);
  tower.intermediate_size = fields.count({"intermediate_size"}, 5120);
  tower.activation = read_activation(fields, {"hidden_act"}, "quick_gelu");
  tower.attention_bias = tower.attention_out_bias = tower.mlp_bias = true;
  tower.num_channels = fields.count({"in_channels"}, 3);
  tower.patch_size = square_side(fields, "patch_size", 14);
  tower.pictures.merge = fields.count({"spatial_merge_size"}, 2);
  // A picture of a size that the job leaves open: sixteen tokens square, as Qwen's.
  tower.image_size = 16 * tower.patch_size * tower.pictures.merge;
  tower.max_positions = 1;
  fields.accept({"temporal_merge_size", "model_type", "initializer_range", "rms_norm_eps"});
}

// Ernie4_5_VLMoeConfig. Videos, which are merged two frames at a time, are not modelled.
void read_config(ConfigFields& fields, Architecture& architecture) {
  Architecture tower;
  ConfigFields text(required_object(fields, "text_config"), fields.path() + "/text_config", fields.issues());
  read_text(text, architecture, tower);
  text.accept({"tie_word_embeddings"});
  text.report_unread(architecture.model_type);
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  read_vision(vision, tower);
  vision.report_unread(architecture.model_type);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  accept_rotation(fields);
  fields.accept({"image_start_token_id", "image_end_token_id", "video_start_token_id", "video_end_token_id"});
  tower.program = &kTowerProgram;
  architecture.language = &kLanguage;
  architecture.facts.pictures = PictureRule::kPixels;
  architecture.parts.push_back(std::move(tower));
}

void inputs(Net& net) {
  qwen_inputs(net);
  integer_input(net, Shape{net.B, net.S}, "moe_mm_token_type_ids");
}

const Program kProgram = {.forward = forward_with_pictures<merge>,
                          .lm_head = language_head,
                          .heads = kMoeForwards,
                          .inputs = inputs,
                          .check = refuse_packed_pictures};

}  // namespace

constexpr ClassFacts kFacts = {.flex_attention = false, .behind_language = "vision_tower resampler_model"};

const Family kRows[] = {
    {"ernie4_5_vl_moe", "Ernie4_5_VLMoe", "Ernie4_5_VLMoeForConditionalGeneration", kSeeingClasses, read_config,
     &kProgram, kModelLayers, kFacts},
};

extern const FamilyRows ernie4_5_vl_moe_rows;
const FamilyRows ernie4_5_vl_moe_rows = kRows;

}  // namespace tidemark
