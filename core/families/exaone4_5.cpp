// EXAONE 4.5: Qwen2.5-VL's tower with fewer heads of keys than of queries; EXAONE 4 behind it, whose positions have one
// dimension.
#include "core/families/family.hpp"
#include "core/families/qwen_vl.hpp"

namespace tidemark {
namespace {

constexpr const char* kTower =
    "transformers 5.12 models/exaone4_5/modeling_exaone4_5.py: Exaone4_5_VisionModel.forward";
constexpr const char* kBlock =
    "transformers 5.12 models/exaone4_5/modeling_exaone4_5.py: Exaone4_5_VisionBlock.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/exaone4_5/modeling_exaone4_5.py: Exaone4_5_VisionAttention.forward";
constexpr const char* kModel = "transformers 5.12 models/exaone4_5/modeling_exaone4_5.py: Exaone4_5_Model.forward";

Tensor attention_of_patches(Net& net, Tensor hidden) {
  Scope in(net.tape, "attn", kAttention);
  const Tensor x = std::move(hidden);
  Tensor qkv = net.linear("attn.qkv", x, Dim(net.Q.n() + 2 * net.K.n()), true);
  Tensor q, k, v;
  {
    const Pieces parts = split(std::move(qkv), -1, {net.Q, net.K, net.K});
    q = view(parts.part[0], Shape{net.S, net.A, net.hd});
    k = view(parts.part[1], Shape{net.S, net.Kv, net.hd});
    v = view(parts.part[2], Shape{net.S, net.Kv, net.hd});
  }
  rotate_vision(net, q, k);
  return attend_in_stretches(net, std::move(q), std::move(k), std::move(v), vision_lengths(net), "attn.proj");
}

Tensor block(Net& net, Tensor hidden) {
  return qwen_gated_block(net, std::move(hidden), kBlock, attention_of_patches);
}

Tensor tower(Net& net) {
  return qwen_window_tower(net, kTower, block, true);
}

const Program kTowerProgram = {tower};

// transformers 5.12.1 models/exaone4_5/configuration_exaone4_5.py: Exaone4_5_VisionConfig.
void read_vision(ConfigFields& fields, Architecture& tower) {
  read_window_tower(fields, tower);
  tower.pictures.kv_heads = fields.count({"num_key_value_heads"}, 8);
}

// Exaone4_5_Config.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "exaone4");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  accept_rotation(fields);
  read_qwen_tower(fields, architecture, read_vision);
  Architecture& tower = architecture.parts.front();
  tower.num_kv_heads = tower.pictures.kv_heads;
  tower.program = &kTowerProgram;
  if (tower.num_kv_heads > 0 && tower.num_heads % tower.num_kv_heads != 0) {
    fields.error("INVALID_VALUE", "vision_config", "\"num_heads\" must be a multiple of \"num_key_value_heads\".");
  }
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_qwen(net, std::move(embeds), kModel);
}

const Program kProgram = {
    .forward = forward_with_pictures<merge>, .lm_head = language_head, .inputs = qwen_text_and_pictures};

}  // namespace

constexpr ClassFacts kFacts = {.no_split = NoSplit::kAbsentToo, .layer_first = "attn.proj"};

const Family kRows[] = {
    {"exaone4_5", "Exaone4_5_", "Exaone4_5_ForConditionalGeneration", kSeeingClasses, read_config, &kProgram,
     kModelLayers, kFacts},
};

extern const FamilyRows exaone4_5_rows;
const FamilyRows exaone4_5_rows = kRows;

}  // namespace tidemark
