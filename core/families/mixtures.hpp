#pragma once

#include <optional>

#include "core/layers/moe.hpp"
#include "core/model/config_fields.hpp"

/// Methods of one mixture of experts' modelling file that others repeat word for word; each is defined in the file of
/// the family that it is named after.
namespace tidemark {

/// What Qwen3Config, Qwen3MoeConfig and MellumConfig have in common: sizes, and a norm of head width on q and k
/// (modeling_qwen3.py: Qwen3Attention); each has defaults of its own.
void read_qwen3_sizes(ConfigFields& fields, Architecture& architecture, Count max_positions, Count kv_heads,
                      std::optional<Count> head_dim);
/// Qwen3Attention.forward: Llama's with a norm over each head of q and k.
Tensor qwen3_attention(Net& net, Tensor hidden);
/// MixtralSparseMoeBlock.forward
Tensor mixtral_mlp(Net& net, Tensor hidden);
/// Qwen2MoeSparseMoeBlock.forward or, in a layer without experts, Qwen2MoeMLP.forward.
Tensor qwen2_moe_mlp(Net& net, Tensor hidden);
/// Qwen3MoeSparseMoeBlock.forward or, in a layer without experts, Qwen3MoeMLP.forward.
Tensor qwen3_moe_mlp(Net& net, Tensor hidden);

/// GraniteModel.forward up to its loop: the embeddings scaled.
Tensor granite_embed(Net& net);
/// GraniteForCausalLM.lm_head, its logits scaled.
Tensor granite_head(Net& net, Tensor hidden);
/// DeepseekV2Moe.forward or, in a layer without experts, DeepseekV2MLP.forward.
Tensor deepseek_v2_mlp(Net& net, Tensor hidden);
/// DeepseekV3MoE.forward or, in a layer without experts, DeepseekV3MLP.forward.
Tensor deepseek_v3_mlp(Net& net, Tensor hidden);
/// The same with a router whose weight stays in fp32 (`_keep_in_fp32_modules_strict`), as files of transformers 5.24
/// have it; also without a feed-forward of all tokens.
Tensor wide_router_mlp(Net& net, Tensor hidden);
Tensor wide_router_mlp(Net& net, Tensor hidden, const ExpertForm& form);
/// An error where `output_router_logits` is on: that the outputs keep them is not modelled for these files.
void refuse_router_logits(ConfigFields& fields);
/// LagunaAttention's apply_rotary_pos_emb: the leading columns turn, which may be more or fewer in sliding layers.
void turn_by_kind(Net& net, Tensor& q, Tensor& k);
/// DeepseekV3MoE.route_tokens_to_experts: sigmoids, a correction in the choice alone, the best of the best groups.
Routing deepseek_v3_routing(Net& net, const Tensor& logits);

/// ERNIE 4.5's router: its path, and that of the correction in the choice.
struct ErnieRouter {
  const char *module, *statics;
};
/// Ernie4_5_MoeTopKRouter.forward, all in fp32, whose logits are returned.
Routing ernie_routing(Net& net, const ErnieRouter& router, const Tensor& hidden);
/// What Ernie4_5_MoeConfig and Ernie4_5_VLMoeTextConfig have in common: all but the experts' widths, and which layers
/// have some.
void read_ernie4_5_experts(ConfigFields& fields, Architecture& architecture);

/// MiniMaxM2TopKRouter.forward: sigmoids, a correction in the choice alone; the weights stay in fp32.
Routing minimax_m2_routing(Net& net, const Tensor& hidden);
/// The eager attention of GPT-OSS and DeepSeek-V4, in whose softmax a learned number of each head, `sinks` [A], takes
/// part: q [B, A, S, hd], k and v of as many heads or fewer; [B, S, A, hd]. `source` says whose file.
Tensor attend_with_sinks(Net& net, const char* source, const Tensor& q, const Tensor& k, const Tensor& v,
                         const Tensor& sinks, const AttentionOptions& options);
/// The products of an indexer's queries [B, S, heads, width] and keys [B, n, width], in fp32 or as autocast has them:
/// [T, heads, n].
Tensor index_products(Net& net, const Tensor& q, const Tensor& keys);
/// GptOssExperts._apply_gate, of columns that are told apart.
Tensor clamped_glu(Tensor gate, Tensor up);

/// Glm4MoeDecoderLayer.forward
Tensor glm4_moe_layer(Net& net, Tensor hidden);
/// What Glm4MoeConfig and Glm4vMoeTextConfig have in common; `bias`: attention_bias where the file does not say.
void read_glm4_moe(ConfigFields& fields, Architecture& architecture, Count positions, bool bias);

/// What DeepSeek and others name the feed-forward of all tokens.
inline constexpr GatedNames kSharedExperts = {"mlp.shared_experts", "mlp.shared_experts.gate_proj",
                                              "mlp.shared_experts.act_fn", "mlp.shared_experts.up_proj",
                                              "mlp.shared_experts.down_proj"};

/// An error where an adapter's targets reach a router that is a Linear and returns two tensors (Llama 4, Phi-3.5-MoE).
void check_router_is_whole(const Architecture&, const TrainingJob& job, Issues& issues);
/// An error where a router's weight, which the class reads as a matrix, is packed (DeepseekV2Moe.forward multiplies by
/// `gate.weight`).
void check_router_is_unpacked(const Architecture&, const TrainingJob& job, Issues& issues);

}  // namespace tidemark
