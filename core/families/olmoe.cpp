// OLMoE: norms over the whole of q and k, then 64 experts.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/model/config_experts.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/olmoe/configuration_olmoe.py: OlmoeConfig.
void read_olmoe_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.clip_qkv = fields.has({"clip_qkv"});
  read_experts(fields, architecture, {64, 8, 0}, {"num_experts", "num_local_experts"});
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, false);
  read_aux_loss(fields, architecture);
}

constexpr const char* kLayer = "transformers 5.12 models/olmoe/modeling_olmoe.py: OlmoeDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/olmoe/modeling_olmoe.py: OlmoeAttention.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = rms_norm(net, "self_attn.q_norm", std::move(q));
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = rms_norm(net, "self_attn.k_norm", std::move(k));
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  if (net.arch.clip_qkv) {
    q = clamp_in_place(std::move(q));
    k = clamp_in_place(std::move(k));
    v = clamp_in_place(std::move(v));
  }
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.Kv, net.hd);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  rotate_both(net, q, k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, qwen3_moe_mlp);
}

}  // namespace

const Program kOlmoeProgram = {one_stack<llama_embed, layer, llama_norm>, llama_head, kMoeForwards};

const Family kRows[] = {
    {"olmoe", "Olmoe", "OlmoeForCausalLM", kLanguageModelOnly, read_olmoe_config, &kOlmoeProgram, kModelLayers,
     kNoFlex},
};

extern const FamilyRows olmoe_rows;
const FamilyRows olmoe_rows = kRows;

}  // namespace tidemark
