// EXAONE 4: norms after each branch and over each head of q and k; where some layers slide, the others do not rotate.
// K-EXAONE: the same attention between norms before the branches, and DeepSeek-V3's experts.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/model/config_experts.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/exaone4/configuration_exaone4.py: Exaone4Config. Without a window all layers attend to
// everything and rotate (modeling_exaone4.py: Exaone4Attention.forward).
void read_exaone4_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, 32);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.sliding_window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  const auto types = read_layer_types(fields, architecture);
  // The published files write the pattern as letters ("LLLG") and the layers beside it.
  const Value* pattern = fields.find({"sliding_window_pattern"});
  const Count period = pattern != nullptr && pattern->is_integer() && pattern->integer > 0 ? pattern->integer : 4;
  if (types) {
    architecture.sliding_layers = *types;
  } else if (architecture.sliding_window > 0) {
    architecture.sliding_layers = sliding_but_every(period, architecture.num_layers);
  }
  if (architecture.sliding_window == 0) return;
  for (const char slides : architecture.sliding_layers) architecture.no_rope_layers.push_back(!slides);
}

// transformers 5.12.1 models/exaone_moe/configuration_exaone_moe.py: ExaoneMoeConfig.
void read_exaone_moe_config(ConfigFields& fields, Architecture& architecture) {
  read_exaone4_config(fields, architecture);
  read_routed_experts(fields, architecture, {64, 8, 1024}, 1);
  read_expert_groups(fields, architecture, 1, 1);
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, true);
  if (fields.has({"mlp_layer_types"})) {
    read_mlp_layer_types(fields, architecture);
    fields.accept({"first_k_dense_replace"});
  } else {
    read_dense_prefix(fields, architecture, 1);
  }
}

constexpr const char* kLayer = "transformers 5.12 models/exaone4/modeling_exaone4.py: Exaone4DecoderLayer.forward";
constexpr const char* kMoeLayer =
    "transformers 5.12 models/exaone_moe/modeling_exaone_moe.py: ExaoneMoeDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/exaone4/modeling_exaone4.py: Exaone4Attention.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, [](Net& n, Tensor& q, Tensor& k) {
    q = rms_norm(n, "self_attn.q_norm", std::move(q));
    k = rms_norm(n, "self_attn.k_norm", std::move(k));
    if (n.rotates(n.layer_index)) rotate_both(n, q, k);
  });
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = self_attention(net, residual);
  h = rms_norm(net, "post_attention_layernorm", std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = llama_mlp(net, std::move(h));
  h = rms_norm(net, "post_feedforward_layernorm", std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor moe_layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kMoeLayer, self_attention, deepseek_v3_mlp);
}

}  // namespace

const Program kExaone4Program = {one_stack<llama_embed, layer, llama_norm>, llama_head};
const Program kExaoneMoeProgram = {one_stack<llama_embed, moe_layer, llama_norm>, llama_head};

const Family kRows[] = {
    {"exaone4", "Exaone4", "Exaone4ForCausalLM", kFourHeads, read_exaone4_config, &kExaone4Program},
    {"exaone_moe", "ExaoneMoe", "ExaoneMoeForCausalLM", kLanguageModelOnly, read_exaone_moe_config, &kExaoneMoeProgram},
};

extern const FamilyRows exaone4_rows;
const FamilyRows exaone4_rows = kRows;

}  // namespace tidemark
