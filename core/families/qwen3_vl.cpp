// Qwen3-VL, dense and of experts: Qwen2-VL's row of patches with learned positions; hidden states of three of the
// tower's layers join the language model's first three.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/families/qwen_vl.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kTower = "transformers 5.12 models/qwen3_vl/modeling_qwen3_vl.py: Qwen3VLVisionModel.forward";
constexpr const char* kBlock = "transformers 5.12 models/qwen3_vl/modeling_qwen3_vl.py: Qwen3VLVisionBlock.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/qwen3_vl/modeling_qwen3_vl.py: Qwen3VLVisionAttention.forward";
constexpr const char* kMerger =
    "transformers 5.12 models/qwen3_vl/modeling_qwen3_vl.py: Qwen3VLVisionPatchMerger.forward";
constexpr const char* kPositions = "transformers 5.12 vision_utils.py: get_vision_bilinear_indices_and_weights";
constexpr const char* kModel = "transformers 5.12 models/qwen3_vl/modeling_qwen3_vl.py: Qwen3VLModel.forward";
constexpr const char* kText = "transformers 5.12 models/qwen3_vl/modeling_qwen3_vl.py: Qwen3VLTextModel.forward";
constexpr const char* kDeep =
    "transformers 5.12 models/qwen3_vl/modeling_qwen3_vl.py: Qwen3VLTextModel._deepstack_process";

/// A merger's modules. The first is that of the last layer, the others those of deep features, as many as published
/// models have.
struct MergerNames {
  const char *norm, *fc1, *fc2;
};
constexpr MergerNames kMergerNames[] = {
    {"visual.merger.norm", "visual.merger.linear_fc1", "visual.merger.linear_fc2"},
    {"visual.deepstack_merger_list.0.norm", "visual.deepstack_merger_list.0.linear_fc1",
     "visual.deepstack_merger_list.0.linear_fc2"},
    {"visual.deepstack_merger_list.1.norm", "visual.deepstack_merger_list.1.linear_fc1",
     "visual.deepstack_merger_list.1.linear_fc2"},
    {"visual.deepstack_merger_list.2.norm", "visual.deepstack_merger_list.2.linear_fc1",
     "visual.deepstack_merger_list.2.linear_fc2"},
    {"visual.deepstack_merger_list.3.norm", "visual.deepstack_merger_list.3.linear_fc1",
     "visual.deepstack_merger_list.3.linear_fc2"}};
// Qwen3OmniMoeVisionPatchMerger
constexpr MergerNames kOmniMergerNames[] = {
    {"visual.merger.ln_q", "visual.merger.mlp.0", "visual.merger.mlp.2"},
    {"visual.merger_list.0.ln_q", "visual.merger_list.0.mlp.0", "visual.merger_list.0.mlp.2"},
    {"visual.merger_list.1.ln_q", "visual.merger_list.1.mlp.0", "visual.merger_list.1.mlp.2"},
    {"visual.merger_list.2.ln_q", "visual.merger_list.2.mlp.0", "visual.merger_list.2.mlp.2"},
    {"visual.merger_list.3.ln_q", "visual.merger_list.3.mlp.0", "visual.merger_list.3.mlp.2"}};
static_assert(std::size(kMergerNames) == std::size(kOmniMergerNames));
constexpr std::size_t kMostDeep = std::size(kMergerNames) - 1;

// transformers 5.12.1 models/qwen3_vl/configuration_qwen3_vl.py: Qwen3VLVisionConfig.
void read_vision(ConfigFields& fields, Architecture& tower) {
  tower.hidden_size = fields.count({"hidden_size"}, 1152);
  tower.intermediate_size = fields.count({"intermediate_size"}, 4304);
  tower.num_layers = fields.count({"depth"}, 27);
  tower.patch_size = square_side(fields, "patch_size", 16);
  tower.activation = read_activation(fields, {"hidden_act"}, "gelu_pytorch_tanh");
  tower.pictures.width = fields.count({"out_hidden_size"}, 3584);
  tower.pictures.positions = fields.count({"num_position_embeddings"}, 2304);
  const Value* deep = fields.find({"deepstack_visual_indexes"});
  std::vector<Count>& layers = tower.pictures.layers;
  if (deep == nullptr || !deep->is_array()) {
    layers = {8, 16, 24};
  } else {
    for (const Value& item : deep->items) layers.push_back(item.integer);
  }
  if (layers.size() > kMostDeep) {
    fields.error("INVALID_VALUE", "deepstack_visual_indexes", "At most four deep features are modelled.");
  }
  for (Count i = 0; i < tower.num_layers; ++i) {
    // Each of them has a merger of its own: none stands for another.
    const auto found = std::find(layers.begin(), layers.end(), i);
    tower.layer_kinds.push_back(found == layers.end() ? 0 : static_cast<std::uint8_t>(1 + (found - layers.begin())));
  }
}

// transformers 5.12.1 models/qwen3_5/configuration_qwen3_5.py: Qwen3_5VisionConfig; no features but the last.
void read_plain_vision(ConfigFields& fields, Architecture& tower) {
  read_vision(fields, tower);
  tower.pictures.layers.clear();
  tower.layer_kinds.clear();
}

// transformers 5.12.1 models/qwen3_vl/configuration_qwen3_vl.py: Qwen3VLTextConfig.
void read_text(ConfigFields& fields, Architecture& architecture, Count kv_heads, std::optional<Count> head_dim) {
  read_dimensions(fields, architecture, 128000);
  read_kv_heads(fields, architecture, kv_heads);
  read_head_dim(fields, architecture, head_dim);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.qk_norm = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  accept_rotation(fields);
  fields.accept({"tie_word_embeddings"});
}

}  // namespace

void read_qwen3_vl_moe_text(ConfigFields& fields, Architecture& architecture, Count kv_heads,
                            const ExpertDefaults& experts) {
  read_text(fields, architecture, kv_heads, std::nullopt);
  read_experts(fields, architecture, experts, {"num_experts", "num_local_experts"}, {"moe_intermediate_size"});
  read_sparse_step(fields, architecture);
  architecture.experts.normalised = true;
  fields.accept({"router_aux_loss_coef"});
}

namespace {

Tensor merger(Net& net, Tensor hidden, std::size_t which) {
  const MergerNames& names = (net.arch.model_type.empty() ? kMergerNames : kOmniMergerNames)[which];
  Scope in(net.tape, "visual.merger", kMerger);
  const Count squared = net.arch.pictures.merge * net.arch.pictures.merge;
  const Dim wide(net.H.n() * squared), rows(net.S.n() / squared);
  Tensor h = std::move(hidden);
  if (which > 0) h = view(std::move(h), Shape{rows, wide});  // use_postshuffle_norm
  h = net.layer_norm(names.norm, std::move(h));
  if (which == 0) h = view(std::move(h), Shape{rows, wide});
  h = net.linear(names.fc1, std::move(h), wide, true);
  h = gelu(std::move(h));
  return net.linear(names.fc2, std::move(h), Dim(net.arch.pictures.width), true);
}

Tensor block(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "", kBlock);
  const Tensor argument = std::move(hidden_in);
  Tensor h = net.layer_norm("norm1", argument);
  h = qwen_vision_attention(net, std::move(h), kAttention);
  Tensor hidden = add(argument, std::move(h));
  h = net.layer_norm("norm2", hidden);
  h = qwen_vision_mlp(net, std::move(h), "mlp.linear_fc1", "mlp.linear_fc2", kBlock);
  return add(std::move(hidden), std::move(h));
}

// deepstack_feature_lists: behind the layers of deepstack_visual_indexes.
Tensor deep_features(Net& net, Tensor hidden) {
  const std::vector<Count>& layers = net.arch.pictures.layers;
  const auto found = std::find(layers.begin(), layers.end(), net.layer_index);
  if (found != layers.end()) {
    net.model_locals.push_back(merger(net, hidden, 1 + static_cast<std::size_t>(found - layers.begin())));
  }
  return hidden;
}

// (pos_embed(indices) * weights).sum(0), cast to the hidden states' dtype.
Tensor add_positions(Net& net, Tensor hidden, const Tensor& indices, const Tensor& weights) {
  Scope in(net.tape, "visual.pos_embed", kPositions);
  Tensor corners = net.embedding("visual.pos_embed", indices, Dim(net.arch.pictures.positions), net.H);
  corners = mul(std::move(corners), unsqueeze(weights, -1));
  Tensor positions = sum_over(std::move(corners), 0, false);
  positions = to(std::move(positions), hidden.dtype());
  return add(std::move(hidden), std::move(positions));
}

Tensor tower(Net& net) {
  Scope in(net.tape, "visual", kTower);
  Tape& t = net.tape;
  const Shape corners{Dim(4), net.S};
  const Tensor indices = t.allocate(corners, Dtype::kInt64, "stack");
  const Tensor weights = t.allocate(corners, Dtype::kFp32, "stack");
  const Tensor positions = t.allocate(Shape{net.S, Dim(2)}, Dtype::kInt64, "position_ids");
  // Unlike Qwen2-VL's, this class names no input embeddings: no hook makes them require a gradient.
  Tensor hidden = qwen_patches(net, true, kTower);
  hidden = add_positions(net, std::move(hidden), indices, weights);
  const VisionTables tables = vision_tables(net);
  hidden = net.layers({"visual.blocks", net.arch.num_layers, block, true, Phase::kForward, deep_features},
                      std::move(hidden));
  Tensor merged = merger(net, hidden, 0);
  net.outer_locals.push_back(hidden);  // image_outputs.last_hidden_state
  return merged;
}

const Program kTowerProgram = {tower};

}  // namespace

// image_outputs has a name in Qwen3VLModel.forward: all that the tower hands out lives as long.
Tensor qwen3_vl_features(Net& net) {
  Net& part = qwen_tower_part(net);
  Tensor merged = part.arch.program->forward(part);
  part.shared = {};
  part.pixel_values.reset();
  net.outer_locals = std::move(part.outer_locals);
  net.outer_locals.push_back(merged);
  for (const Tensor& made : net.outer_locals) net.keep_image_output(made);
  for (const Tensor& deep : part.model_locals) net.keep_image_output(deep);
  net.handed_out.clear();
  for (Tensor& deep : part.model_locals) net.handed_out.emplace_back(-1, std::move(deep));
  part.model_locals.clear();
  return merged;
}

namespace {

Tensor features(Net& net) {
  return joined_pictures(net, qwen3_vl_features(net));
}

Tensor merge(Net& net, Tensor embeds) {
  Tensor merged = merge_features(net, std::move(embeds), features, kModel, false);
  if (!net.job.framework.at_least(5, 18)) return merged;
  for (auto& [instance, deep] : net.handed_out) deep = joined_pictures(net, std::move(deep));
  return merged;
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kText, qwen3_attention,
                        net.arch.experts.count > 0 ? qwen3_moe_mlp : llama_mlp);
}

// hidden_states[visual_pos_masks, :] += visual_embeds, on a copy: a mask as an index is a search for its rows.
Tensor add_deep(Net& net, Tensor hidden) {
  const auto which = static_cast<std::size_t>(net.layer_index);
  if (which >= net.handed_out.size()) return hidden;
  Scope in(net.tape, "", kDeep);
  const Tensor embeds = to(net.handed_out[which].second, hidden.dtype());
  const Tensor copy = clone(std::move(hidden));
  const Shape found{embeds.dim(0), Dim(2)};
  Tensor indices = net.tape.allocate(found, Dtype::kInt64, "nonzero");
  Tensor local = gather_rows(view(copy, Shape{net.T, net.H}), std::move(indices));
  local = add(std::move(local), embeds);
  indices = net.tape.allocate(found, Dtype::kInt64, "nonzero");
  return put_rows(copy, std::move(indices), std::move(local));
}

Tensor language(Net& net) {
  Tensor embeds;
  {
    Scope in(net.tape, "model", kText);
    embeds = net.token_embedding("model.embed_tokens", net.H);
    net.model_locals = {embeds};
    make_positions_3d(net);
    make_causal_masks(net, embeds);
    rotary_tables_from_3d(net, embeds.dtype(), 1);
  }
  Stack stack{net.arch.layers_path, net.arch.num_layers, layer, true, Phase::kLoss};
  if (net.job.images_per_sample > 0) stack.after = add_deep;
  Tensor hidden = net.layers(stack, std::move(embeds));
  hidden = llama_norm(net, std::move(hidden));
  net.handed_out.clear();
  return hidden;
}

const Program kLanguage = {language, llama_head};

}  // namespace

void read_qwen3_vl_tower(ConfigFields& fields, Architecture& architecture) {
  read_qwen_tower(fields, architecture, read_vision);
  if (architecture.parts.empty()) return;
  architecture.language = &kLanguage;
  Architecture& part = architecture.parts.front();
  part.program = &kTowerProgram;
  architecture.layer_kinds.assign(static_cast<std::size_t>(architecture.num_layers), 0);
  const std::size_t deep = std::min(part.pictures.layers.size(), architecture.layer_kinds.size());
  std::fill_n(architecture.layer_kinds.begin(), deep, 1);
}

namespace {

// transformers 5.12.1 models/qwen3_vl/configuration_qwen3_vl.py: Qwen3VLConfig;
// models/qwen3_vl_moe/configuration_qwen3_vl_moe.py: Qwen3VLMoeConfig, whose router always normalises.
void read_config(ConfigFields& fields, Architecture& architecture) {
  ConfigFields text(required_object(fields, "text_config"), fields.path() + "/text_config", fields.issues());
  if (architecture.model_type == "qwen3_vl") {
    read_text(text, architecture, 32, 128);
  } else {
    read_qwen3_vl_moe_text(text, architecture, 16, {60, 4, 1408});
    text.accept({"norm_topk_prob"});
  }
  text.report_unread("qwen3_vl");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  accept_rotation(fields);
  read_qwen3_vl_tower(fields, architecture);
}

// transformers 5.12.1 models/qwen3_5/configuration_qwen3_5.py: Qwen3_5Config; models/qwen3_5_moe: Qwen3_5MoeConfig.
void read_hybrid(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, architecture.model_type == "qwen3_5" ? "qwen3_5_text" : "qwen3_5_moe_text");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  accept_rotation(fields);
  read_qwen_tower(fields, architecture, read_plain_vision);
  if (!architecture.parts.empty()) architecture.parts.front().program = &kTowerProgram;
}

const Program kProgram = {
    forward_with_pictures<merge>, language_head, kDecoderForwards, OwnLoss::kFp32, {}, qwen_inputs};

}  // namespace

constexpr ClassFacts kHybridFacts = {.flex_attention = false, .layer_first = "linear_attn.out_proj"};

const Family kRows[] = {
    {"qwen3_vl", "Qwen3VL", "Qwen3VLForConditionalGeneration", kSeeingClasses, read_config, &kProgram, kModelLayers,
     kNoFlex},
    {"qwen3_vl_moe", "Qwen3VLMoe", "Qwen3VLMoeForConditionalGeneration", kSeeingClasses, read_config, &kProgram},
    {"qwen3_5", "Qwen3_5", "Qwen3_5ForConditionalGeneration", kJudgingClasses, read_hybrid, &kProgram, kModelLayers,
     kHybridFacts},
    {"qwen3_5_moe", "Qwen3_5Moe", "Qwen3_5MoeForConditionalGeneration", kSeeingClasses, read_hybrid, &kProgram,
     kModelLayers, kHybridFacts},
};

extern const FamilyRows qwen3_vl_rows;
const FamilyRows qwen3_vl_rows = kRows;

}  // namespace tidemark
