// GLM-4.1V, GLM-4.5V and GLM-4.6V: Qwen2-VL's row of patches under learned positions that are sampled at each patch's
// place, four neighbours made one by a convolution and a gated feed-forward; GLM-4's or GLM-4.5's layers behind it.
// GLM-OCR: the same with norms over q and k in place of those positions.
#include <cmath>
#include <utility>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/families/qwen_vl.hpp"
#include "core/families/towers.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kTower = "transformers 5.12 models/glm4v/modeling_glm4v.py: Glm4vVisionModel.forward";
constexpr const char* kBlock = "transformers 5.12 models/glm4v/modeling_glm4v.py: Glm4vVisionBlock.forward";
constexpr const char* kAttention = "transformers 5.12 models/glm4v/modeling_glm4v.py: Glm4vVisionAttention.forward";
constexpr const char* kPositions = "transformers 5.12 models/glm4v/modeling_glm4v.py: Glm4vVisionEmbeddings.forward";
constexpr const char* kMerger = "transformers 5.12 models/glm4v/modeling_glm4v.py: Glm4vVisionPatchMerger.forward";
constexpr const char* kModel = "transformers 5.12 models/glm4v/modeling_glm4v.py: Glm4vModel.forward";
constexpr const char* kText = "transformers 5.12 models/glm4v/modeling_glm4v.py: Glm4vTextModel.forward";

// transformers 5.12.1 models/glm4v/configuration_glm4v.py: Glm4vVisionConfig, whose intermediate_size is the merger's:
// the blocks' feed-forward is as wide as what the tower hands out (Glm4VisionMlp).
void read_vision(ConfigFields& fields, Architecture& tower) {
  tower.hidden_size = fields.count({"hidden_size"}, 1536);
  tower.num_layers = fields.count({"depth"}, 24);
  tower.num_heads = 12;
  tower.activation = read_activation(fields, {"hidden_act"}, "silu");
  tower.attention_bias = fields.flag({"attention_bias"}, false);
  tower.attention_out_bias = tower.mlp_bias = false;
  tower.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  tower.pictures.width = tower.intermediate_size = fields.count({"out_hidden_size"}, 4096);
  tower.pooler_size = fields.count({"intermediate_size"}, 13696);
  const Count side = square_side(fields, "image_size", 336) / tower.patch_size;
  tower.pictures.positions = side * side;
}

// transformers 5.12.1 models/glm_ocr/configuration_glm_ocr.py: GlmOcrVisionConfig. One switch for all biases of a
// block; the merger is as wide as the channels' number times what the tower hands out.
void read_ocr_vision(ConfigFields& fields, Architecture& tower) {
  tower.hidden_size = fields.count({"hidden_size"}, 1024);
  tower.num_layers = fields.count({"depth"}, 24);
  tower.num_heads = 16;
  tower.activation = read_activation(fields, {"hidden_act"}, "silu");
  tower.attention_bias = fields.flag({"attention_bias"}, true);
  tower.attention_out_bias = tower.mlp_bias = tower.attention_bias;
  tower.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  tower.qk_norm = true;
  tower.pictures.width = fields.count({"out_hidden_size"}, 1536);
  tower.intermediate_size = fields.count({"intermediate_size"}, 4096);
  tower.pooler_size = tower.pictures.width * tower.num_channels;
  fields.accept({"image_size"});
}

// Positions sampled at every patch's place in the table's grid, in fp32, and cast back: what has a name there lives
// until the sum is made.
Tensor add_positions(Net& net, Tensor hidden) {
  const char* const kTable = "visual.embeddings.position_embedding";
  Scope in(net.tape, kTable, kPositions);
  Tape& t = net.tape;
  const Count rows = net.arch.pictures.positions;
  const Dim side(static_cast<Count>(std::sqrt(static_cast<double>(rows))));
  const Tensor weight = net.parameter(kTable, "weight", Shape{Dim(rows), net.H});
  Tensor table = permute(view(weight, Shape{side, side, net.H}), {2, 0, 1});
  table = to(unsqueeze(std::move(table), 0), Dtype::kFp32);
  std::vector<Tensor> places;
  for (const char* name : {"token_positions", "seq_ids"})
    places.push_back(t.allocate(Shape{net.S}, Dtype::kInt64, name));
  for (const char* name : {"target_h", "target_w", "norm_w", "norm_h"}) {
    places.push_back(t.allocate(Shape{net.S}, Dtype::kFp32, name));
  }
  const Tensor grid = t.allocate(Shape{Dim(1), net.S, Dim(1), Dim(2)}, Dtype::kFp32, "stack");
  const Tensor sampled = grid_sample(table, grid);
  const Tensor wide = permute(view(sampled, Shape{net.H, net.S}), {1, 0});
  const Tensor positions = to(wide, weight.dtype());
  return add(std::move(hidden), positions);
}

Tensor attention_of_patches(Net& net, Tensor hidden) {
  return qwen_vision_attention(net, std::move(hidden), kAttention);
}

Tensor block(Net& net, Tensor hidden) {
  return qwen_gated_block(net, std::move(hidden), kBlock, attention_of_patches);
}

// nn.Conv2d over merge² neighbours, which lie one behind another.
Tensor downsampled(Net& net, Tensor hidden) {
  const char* const kName = "visual.downsample";
  Scope in(net.tape, kName, kTower);
  const Dim side(net.arch.pictures.merge), width(net.arch.pictures.width), rows(net.S.n() / (side.n() * side.n()));
  Tensor weight = net.parameter(kName, "weight", Shape{width, net.H, side, side});
  Tensor bias = net.parameter(kName, "bias", Shape{width});
  Tensor squares = permute(view(std::move(hidden), Shape{rows, side, side, net.H}), {0, 3, 1, 2});
  squares = patch_convolution(std::move(squares), std::move(weight), std::move(bias));
  return view(std::move(squares), Shape{rows, width});
}

Tensor merger(Net& net, Tensor hidden) {
  Scope in(net.tape, "visual.merger", kMerger);
  const Dim width(net.arch.pictures.width), wide(net.arch.pooler_size);
  Tensor h = net.linear("visual.merger.proj", std::move(hidden), width);
  h = gelu(net.layer_norm("visual.merger.post_projection_norm", std::move(h)));
  Tensor gate = net.linear("visual.merger.gate_proj", h, wide);
  gate = activate(net.arch.activation, std::move(gate));
  Tensor up = net.linear("visual.merger.up_proj", h, wide);
  gate = mul(std::move(gate), std::move(up));
  return net.linear("visual.merger.down_proj", std::move(gate), width);
}

Tensor tower(Net& net) {
  Scope in(net.tape, "visual", kTower);
  const Tensor positions = net.tape.allocate(Shape{net.S, Dim(2)}, Dtype::kInt64, "position_ids");
  const bool placed = net.arch.pictures.positions > 0;
  Tensor hidden = qwen_patches(net, true, kTower);
  if (placed) hidden = rms_norm(net, "visual.post_conv_layernorm", std::move(hidden));
  const VisionTables tables = vision_tables(net);
  if (placed) hidden = add_positions(net, std::move(hidden));
  hidden = net.layers({"visual.blocks", net.arch.num_layers, block}, std::move(hidden));
  hidden = rms_norm(net, "visual.post_layernorm", std::move(hidden));
  hidden = downsampled(net, std::move(hidden));
  net.keep_image_output(hidden);
  return merger(net, hidden);
}

const Program kTowerProgram = {tower};

Tensor merge(Net& net, Tensor embeds) {
  return merge_qwen(net, std::move(embeds), kModel);
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kText);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_positions_3d(net);
  make_causal_masks(net, embeds);
  rotary_tables_from_3d(net, embeds.dtype(), 1, true);
  return embeds;
}

const Program kLanguage = {one_stack<embed, glm4_layer, llama_norm>, llama_head};
const Program kMoeLanguage = {one_stack<embed, glm4_moe_layer, llama_norm>, llama_head};

// transformers 5.12.1 models/glm4v/configuration_glm4v.py: Glm4vTextConfig. Biases are in the modelling file.
void read_text(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 32768);
  read_kv_heads(fields, architecture, 2);
  read_head_dim(fields, architecture);
  read_rotary_factor(fields, architecture, 0.5);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  fields.accept({"attention_bias"});
}

// transformers 5.12.1 models/glm4v_moe/configuration_glm4v_moe.py: Glm4vMoeTextConfig. No norm of q and k.
void read_moe_text(ConfigFields& fields, Architecture& architecture) {
  read_glm4_moe(fields, architecture, 65536, true);
  fields.accept({"use_qk_norm", "router_aux_loss_coef"});
}

// transformers 5.12.1 models/glm_ocr/configuration_glm_ocr.py: GlmOcrTextConfig.
void read_ocr_text(ConfigFields& fields, Architecture& architecture) {
  read_text(fields, architecture);
  architecture.max_positions = fields.count({"max_position_embeddings"}, 131072);
  architecture.num_kv_heads = fields.count({"num_key_value_heads"}, 8);
  architecture.attention_bias = false;
  fields.accept({"num_nextn_predict_layers"});
}

// Glm46VConfig's text_config says which of the two language models it is.
bool has_experts(ConfigFields& fields, std::string_view model_type) {
  if (model_type != "glm46v") return model_type == "glm4v_moe";
  const Value* named = required_object(fields, "text_config").find("model_type");
  return named != nullptr && named->is_string() && named->string == "glm4v_moe_text";
}

// Glm4vConfig, Glm4vMoeConfig, Glm46VConfig, GlmOcrConfig. The language model's keys may stand beside vision_config, as
// the first files have them.
void read_config(ConfigFields& fields, Architecture& architecture) {
  const bool experts = has_experts(fields, architecture.model_type), ocr = architecture.model_type == "glm_ocr";
  const auto read = experts ? read_moe_text : ocr ? read_ocr_text : read_text;
  if (const Value* text = object_in(fields, "text_config")) {
    ConfigFields inner(*text, fields.path() + "/text_config", fields.issues());
    read(inner, architecture);
    accept_rotation(inner);
    inner.accept({"tie_word_embeddings", "image_start_token_id", "image_end_token_id", "video_start_token_id",
                  "video_end_token_id"});
    inner.report_unread(architecture.model_type);
  } else {
    read(fields, architecture);
  }
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  accept_rotation(fields);
  fields.accept({"image_start_token_id", "image_end_token_id", "video_start_token_id", "video_end_token_id"});
  read_qwen_tower(fields, architecture, ocr ? read_ocr_vision : read_vision);
  architecture.language = experts ? &kMoeLanguage : &kLanguage;
  if (!architecture.parts.empty()) architecture.parts.front().program = &kTowerProgram;
}

const Program kProgram = {
    forward_with_pictures<merge>, language_head, kDecoderForwards, OwnLoss::kFp32, {}, qwen_inputs};

}  // namespace

const Family kRows[] = {
    {"glm4v", "Glm4v", "Glm4vForConditionalGeneration", kSeeingClasses, read_config, &kProgram, kModelLayers, kNoFlex},
    {"glm46v", "Glm46V", "Glm46VForConditionalGeneration", kSeeingClasses, read_config, &kProgram, kModelLayers,
     kNoFlex},
    {"glm_ocr", "GlmOcr", "GlmOcrForConditionalGeneration", kSeeingClasses, read_config, &kProgram, kModelLayers,
     kNoFlex},
    {"glm4v_moe", "Glm4vMoe", "Glm4vMoeForConditionalGeneration", kSeeingClasses, read_config, &kProgram},
};

extern const FamilyRows glm4v_rows;
const FamilyRows glm4v_rows = kRows;

}  // namespace tidemark
