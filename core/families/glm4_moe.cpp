// GLM-4.5, Ling 2, Sarvam: attention with half of each head turning, then experts chosen as DeepSeek-V3 does. Solar
// Open: the same experts behind Llama's attention.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/layers/rotations.hpp"
#include "core/model/config_experts.hpp"

namespace tidemark {

void read_glm4_moe(ConfigFields& fields, Architecture& architecture, Count positions, bool bias) {
  read_dimensions(fields, architecture, positions);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture);
  read_rotary_factor(fields, architecture, 0.5);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, bias);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  read_routed_experts(fields, architecture, {128, 8, 1408}, 1);
  read_dense_prefix(fields, architecture, 1);
  read_expert_groups(fields, architecture, 1, 1);
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, true);
}

namespace {

// transformers 5.12.1 models/glm4_moe/configuration_glm4_moe.py: Glm4MoeConfig.
void read_glm4_moe_config(ConfigFields& fields, Architecture& architecture) {
  read_glm4_moe(fields, architecture, 131072, false);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.qk_norm = fields.flag({"use_qk_norm"}, false);
}

// transformers 5.24 models/sarvam_moe/configuration_sarvam_moe.py: SarvamMoEConfig, of GLM-4.5's classes.
void read_sarvam_moe_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 131072);
  read_kv_heads(fields, architecture, 4);
  read_head_dim(fields, architecture, 64);
  read_rotary_factor(fields, architecture, 1.0);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias", "use_qkv_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.qk_norm = fields.flag({"use_qk_norm"}, true);
  read_routed_experts(fields, architecture, {128, 6, 1024}, 1);
  read_dense_prefix(fields, architecture, 1);
  read_expert_groups(fields, architecture, 1, 1);
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, true);
  refuse_router_logits(fields);
  fields.accept({"num_mtp_layers"});
}

// inclusionAI/Ling-flash-2.0 configuration_bailing_moe_v2.py: BailingMoeV2Config, and NeMo AutoModel 0.7
// components/models/ling_v2/{config,layers}.py, which names the modules as they are named here; beside the weights q, k
// and v are one `query_key_value`. Forward and router are GLM-4.5's; no record covers them.
void read_ling_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 32768);
  read_kv_heads(fields, architecture, 4);
  read_head_dim(fields, architecture);
  read_rotary_factor(fields, architecture, 1.0);
  architecture.rotary_dim = fields.nullable({"rotary_dim"}, architecture.rotary_dim).value_or(architecture.rotary_dim);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"use_qkv_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.qk_norm = fields.flag({"use_qk_norm"}, true);
  read_routed_experts(fields, architecture, {256, 8, 512}, 1);
  read_dense_prefix(fields, architecture, 1);
  read_expert_groups(fields, architecture, 8, 4);
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, true);
  fields.accept({"score_function", "moe_router_enable_expert_bias", "use_bias", "embedding_dropout", "output_dropout",
                 "max_window_layers", "moe_shared_expert_intermediate_size", "mtp_loss_scaling_factor",
                 "output_router_logits", "norm_head", "use_rmsnorm", "router_dtype"});
}

// transformers 5.12.1 models/solar_open/configuration_solar_open.py: SolarOpenConfig. Every layer has experts, and
// without a plain feed-forward the file need not say how wide one is.
void read_solar_open_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.num_layers = fields.count({"num_hidden_layers"}, 48);
  architecture.num_heads = fields.count({"num_attention_heads"}, 64);
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, 131072);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture, 128);
  read_rotary_factor(fields, architecture, 1.0);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  read_routed_experts(fields, architecture, {128, 8, 1280}, 1);
  read_expert_groups(fields, architecture, 1, 1);
  Experts& e = architecture.experts;
  e.normalised = fields.flag({"norm_topk_prob"}, true);
  architecture.intermediate_size = fields.count({"intermediate_size"}, e.width);
  fields.accept({"first_k_dense_replace", "use_qk_norm"});
}

constexpr const char* kSolarLayer =
    "transformers 5.12 models/solar_open/modeling_solar_open.py: SolarOpenDecoderLayer.forward";
constexpr const char* kLayer = "transformers 5.12 models/glm4_moe/modeling_glm4_moe.py: Glm4MoeDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/glm4_moe/modeling_glm4_moe.py: Glm4MoeAttention.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = view(std::move(q), Shape{net.B, net.S, net.A, net.hd});
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = view(std::move(k), Shape{net.B, net.S, net.Kv, net.hd});
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  if (net.arch.qk_norm) {
    q = rms_norm(net, "self_attn.q_norm", std::move(q));
    k = rms_norm(net, "self_attn.k_norm", std::move(k));
  }
  q = transpose(std::move(q), 1, 2);
  k = transpose(std::move(k), 1, 2);
  turn_leading(net, q, k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H);
}

}  // namespace

Tensor glm4_moe_layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, deepseek_v3_mlp);
}

namespace {

Tensor sarvam_layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, wide_router_mlp);
}

Tensor solar_layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kSolarLayer, llama_attention, deepseek_v3_mlp);
}

}  // namespace

const Program kSolarOpenProgram = {one_stack<llama_embed, solar_layer, llama_norm>, llama_head};
const Program kSarvamMoeProgram = {one_stack<llama_embed, sarvam_layer, llama_norm>, llama_head};
const Program kGlm4MoeProgram = {one_stack<llama_embed, glm4_moe_layer, llama_norm>, llama_head};

const Family kRows[] = {
    {"glm4_moe", "Glm4Moe", "Glm4MoeForCausalLM", kLanguageModelOnly, read_glm4_moe_config, &kGlm4MoeProgram},
    {"solar_open", "SolarOpen", "SolarOpenForCausalLM", kLanguageModelOnly, read_solar_open_config, &kSolarOpenProgram},
    {"bailing_moe_v2", "BailingMoeV2", "BailingMoeV2ForCausalLM", kLanguageModelOnly, read_ling_config,
     &kGlm4MoeProgram},
    {"sarvam_moe", "Glm4Moe", "Glm4MoeForCausalLM", kLanguageModelOnly, read_sarvam_moe_config, &kSarvamMoeProgram},
};

extern const FamilyRows glm4_moe_rows;
const FamilyRows glm4_moe_rows = kRows;

}  // namespace tidemark
