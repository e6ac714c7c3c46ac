// Hunyuan, dense and as a mixture of experts (A13B): Llama's layer with a norm over each head of q and k behind the
// rotation; experts beside a feed-forward that all tokens share, chosen by a router in fp32. Hy3: norm before rotation,
// experts chosen by sigmoids.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/hunyuan_v1_dense/configuration_hunyuan_v1_dense.py: HunYuanDenseV1Config. One switch for
// the biases of all four projections, none in the feed-forward (modeling_hunyuan_v1_dense.py).
void read_hunyuan_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.qk_norm = true;
}

// `moe_topk`: one number, or a list with one for every layer.
Count experts_of_token(ConfigFields& fields) {
  const Value* given = fields.find({"moe_topk", "num_experts_per_tok"});
  if (given == nullptr || !given->is_array() || given->items.empty()) {
    return fields.count({"moe_topk", "num_experts_per_tok"}, 1);
  }
  const Value& first = given->items.front();
  for (const Value& other : given->items) {
    if (first.is_integer() && first.integer > 0 && other.is_integer() && other.integer == first.integer) continue;
    fields.error("INVALID_VALUE", "moe_topk",
                 "Layers whose tokens take different numbers of experts are not modelled.");
    return 1;
  }
  return first.integer;
}

// transformers 5.12.1 models/hunyuan_v1_moe/configuration_hunyuan_v1_moe.py: HunYuanMoEV1Config. Experts and the shared
// feed-forward are as wide as `intermediate_size`; what else published files say of experts nobody reads.
void read_hunyuan_moe_config(ConfigFields& fields, Architecture& architecture) {
  read_hunyuan_config(fields, architecture);
  Experts& e = architecture.experts;
  e.count = fields.count({"num_experts", "num_local_experts"}, 1);
  e.per_token = experts_of_token(fields);
  e.width = e.shared_width = architecture.intermediate_size;
  if (e.per_token > e.count) {
    fields.error("INVALID_VALUE", "moe_topk", "A token cannot pass through more experts than there are.");
  }
  fields.accept({"moe_intermediate_size",
                 "num_shared_expert",
                 "use_mixed_mlp_moe",
                 "moe_layer_num_skipped",
                 "moe_drop_tokens",
                 "moe_random_routing_dropped_token",
                 "norm_topk_prob",
                 "routed_scaling_factor",
                 "group_limited_greedy",
                 "n_group",
                 "topk_group",
                 "use_qk_norm",
                 "use_cla",
                 "cla_share_factor",
                 "use_rotary_pos_emb",
                 "mlp_bias",
                 "norm_type",
                 "attention_head_dim",
                 "capacity_factor",
                 "use_mla",
                 "kv_lora_rank",
                 "q_lora_rank",
                 "qk_nope_head_dim",
                 "qk_rope_head_dim",
                 "v_head_dim",
                 "expert_hidden_dim",
                 "num_media_embeds",
                 "class_num",
                 "pool_type",
                 "add_classification_head",
                 "position_embedding_xdrope"});
}

// transformers 5.12.1 models/hy_v3/configuration_hy_v3.py: HYV3Config. Its loss knows nothing of the routers' balance.
void read_hy3_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 131072);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = architecture.attention_out_bias = fields.flag({"attention_bias"}, false);
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.qk_norm = true;
  read_routed_experts(fields, architecture, {192, 8, 1536}, 1);
  read_mlp_layer_types(fields, architecture);
  if (!fields.flag({"enable_moe_fp32_combine"}, true)) {
    fields.error("INVALID_VALUE", "enable_moe_fp32_combine",
                 "Only experts whose sum is made in fp32 are modelled, as the class has it by default.");
  }
  fields.accept({"router_scaling_factor", "output_router_logits", "first_k_dense_replace", "qk_norm", "route_norm",
                 "moe_router_enable_expert_bias", "moe_router_use_sigmoid", "enable_lm_head_fp32",
                 "enable_attention_fp32_softmax", "expert_hidden_dim"});
}

constexpr const char* kMoe =
    "transformers 5.12 models/hunyuan_v1_moe/modeling_hunyuan_v1_moe.py: HunYuanMoEV1Moe.forward";
constexpr const char* kGate =
    "transformers 5.12 models/hunyuan_v1_moe/modeling_hunyuan_v1_moe.py: HunYuanMoEV1Gate.forward";
constexpr ExpertForm kExperts = {
    .source = "transformers 5.12 models/hunyuan_v1_moe/modeling_hunyuan_v1_moe.py: HunYuanMoEV1Experts.forward"};
constexpr GatedNames kShared = {"mlp.shared_mlp", "mlp.shared_mlp.gate_proj", "mlp.shared_mlp.act_fn",
                                "mlp.shared_mlp.up_proj", "mlp.shared_mlp.down_proj"};
constexpr const char* kLayer =
    "transformers 5.12 models/hunyuan_v1_dense/modeling_hunyuan_v1_dense.py: HunYuanDenseV1DecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/hunyuan_v1_dense/modeling_hunyuan_v1_dense.py: HunYuanDenseV1Attention.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, [](Net& n, Tensor& q, Tensor& k) {
    rotate_both(n, q, k);
    q = rms_norm(n, "self_attn.query_layernorm", std::move(q));
    k = rms_norm(n, "self_attn.key_layernorm", std::move(k));
  });
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, llama_mlp);
}

// HunYuanMoEV1Moe.route_tokens_to_experts: the weights are cast to what the router returns.
Routing route(Net& net, const Tensor& hidden) {
  const Experts& e = net.arch.experts;
  Routing r;
  {
    Scope in(net.tape, "mlp.gate", kGate);
    r.logits = net.fp32_linear("mlp.gate.wg", hidden, Dim(e.count));
  }
  TopK best = topk(softmax(r.logits, Dtype::kFp32), Dim(e.per_token));
  Tensor sum = sum_over(best.values, -1, true);
  best.values = div_in_place(std::move(best.values), std::move(sum));
  r.weights = to(std::move(best.values), r.logits.dtype());
  r.indices = std::move(best.indices);
  return r;
}

Tensor moe(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "mlp", kMoe);
  const Tensor hidden = std::move(hidden_in);
  const Tensor shared = gated_mlp(net, kShared, kMoe, hidden, Dim(net.arch.experts.shared_width));
  const Tensor tokens = as_tokens(net, hidden);
  const Routing routing = route(net, tokens);
  Tensor out = run_experts(net, kExperts, tokens, routing.indices, routing.weights);
  return add(as_sequences(net, std::move(out)), shared);
}

Tensor moe_layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, moe);
}

// -- Hy3 -------------------------------------------------------------------------------------------------------------

constexpr const char* kAttention3 = "transformers 5.12 models/hy_v3/modeling_hy_v3.py: HYV3Attention.forward";
constexpr const char* kMoe3 = "transformers 5.12 models/hy_v3/modeling_hy_v3.py: HYV3MoE.forward";
constexpr const char* kRouter3 = "transformers 5.12 models/hy_v3/modeling_hy_v3.py: HYV3TopKRouter.forward";
constexpr ExpertForm kExperts3 = {.source = "transformers 5.12 models/hy_v3/modeling_hy_v3.py: HYV3Experts.forward"};

Tensor attention3(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention3, [](Net& n, Tensor& q, Tensor& k) {
    q = rms_norm(n, "self_attn.q_norm", std::move(q));
    k = rms_norm(n, "self_attn.k_norm", std::move(k));
    rotate_both(n, q, k);
  });
}

Routing route3(Net& net, const Tensor& tokens) {
  Routing r;
  r.logits = fp32_router(net, "mlp.gate", kRouter3, tokens, false);
  const Tensor scores = sigmoid(r.logits);
  const Tensor choice = add(scores, net.tape.part_of_buffer(Shape{Dim(net.arch.experts.count)}, Dtype::kFp32));
  r.indices = topk(choice, Dim(net.arch.experts.per_token)).indices;
  Tensor weights = gather_last(scores, r.indices);
  Tensor sum = sum_over(weights, -1, true);
  sum = add_scalar(std::move(sum));
  weights = div(std::move(weights), std::move(sum));
  r.weights = mul_scalar(std::move(weights));
  return r;
}

Tensor moe3(Net& net, Tensor hidden) {
  if (is_dense_layer(net)) return llama_mlp(net, std::move(hidden));
  Scope in(net.tape, "mlp", kMoe3);
  const Experts& e = net.arch.experts;
  net.tape.buffer("mlp.e_score_correction_bias", 4 * e.count);
  const Tensor tokens = as_tokens(net, std::move(hidden));
  const Routing routing = route3(net, tokens);
  const Tensor routed = run_experts(net, kExperts3, tokens, routing.indices, routing.weights);
  Tensor wide = to(routed, Dtype::kFp32);
  Tensor shared = gated_mlp(net, kSharedExperts, kMoe3, tokens, Dim(e.shared_width), net.arch.mlp_bias);
  shared = to(std::move(shared), Dtype::kFp32);
  Tensor sum = add(std::move(wide), std::move(shared));
  return as_sequences(net, to(std::move(sum), tokens.dtype()));
}

Tensor layer3(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, attention3, moe3);
}

}  // namespace

const Program kHunyuanProgram = {one_stack<llama_embed, layer, llama_norm>, llama_head};
const Program kHunyuanMoeProgram = {one_stack<llama_embed, moe_layer, llama_norm>, llama_head};
const Program kHy3Program = {one_stack<llama_embed, layer3, llama_norm>, llama_head};

const Family kRows[] = {
    {"hunyuan_v1_dense", "HunYuanDenseV1", "HunYuanDenseV1ForCausalLM", kSequenceOnly, read_hunyuan_config,
     &kHunyuanProgram},
    {"hunyuan_v1_moe", "HunYuanMoEV1", "HunYuanMoEV1ForCausalLM", kSequenceOnly, read_hunyuan_moe_config,
     &kHunyuanMoeProgram},
    {"hy_v3", "HYV3", "HYV3ForCausalLM", kLanguageModelOnly, read_hy3_config, &kHy3Program},
};

extern const FamilyRows hunyuan_rows;
const FamilyRows hunyuan_rows = kRows;

}  // namespace tidemark
