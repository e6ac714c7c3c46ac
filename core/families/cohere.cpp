// Command R, Aya (cohere) and Command R7B (cohere2): one norm feeds both branches, rotation in fp32, logits scaled. In
// cohere2 only sliding layers rotate. Cohere2-MoE: cohere2's attention beside experts.
#include <algorithm>

#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/rotations.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

// One norm without bias per layer, feeding both branches; the logits are scaled.
void read_cohere_like(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 8192);
  read_kv_heads(fields, architecture, std::nullopt);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.parallel_residual = true;
  architecture.logit_scale = true;
  fields.accept({"logit_scale"});
}

// transformers 5.12.1 models/cohere/configuration_cohere.py: CohereConfig (Command R, Aya).
void read_cohere_config(ConfigFields& fields, Architecture& architecture) {
  read_cohere_like(fields, architecture);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.qk_norm = fields.flag({"use_qk_norm"}, false);
}

// transformers 5.12.1 models/cohere2/configuration_cohere2.py: Cohere2Config. Three of four layers slide, and only
// those rotate (modeling_cohere2.py: Cohere2Attention.forward).
void read_cohere2_config(ConfigFields& fields, Architecture& architecture) {
  read_cohere_like(fields, architecture);
  derive_head_dim(fields, architecture);
  fields.accept({"order_of_interleaved_layers", "layer_switch", "position_embedding_type", "rotary_pct",
                 "use_embedding_sharing", "use_gated_activation", "use_parallel_block", "use_parallel_embedding",
                 "use_qk_norm"});
  architecture.rotary_dim = architecture.head_dim;
  const Count pattern = fields.count({"sliding_window_pattern", "_sliding_window_pattern"}, 4);
  const Count window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  const auto types = read_layer_types(fields, architecture);
  architecture.sliding_layers = types ? *types : sliding_but_every(pattern, architecture.num_layers);
  architecture.sliding_window = window;
  for (const bool slides : architecture.sliding_layers) {
    architecture.no_rope_layers.push_back(window > 0 && !slides);
  }
}

// The first `dense` layers slide by a pattern of their own.
LayerFlags sliding_behind_prefix(Count dense, Count prefix, Count pattern, Count layers) {
  LayerFlags flags;
  for (Count i = 0; i < layers; ++i) flags.push_back((i < dense ? (i + 1) % prefix : (i - dense + 1) % pattern) != 0);
  return flags;
}

// transformers 5.12.1 models/cohere2_moe/configuration_cohere2_moe.py: Cohere2MoeConfig. Layers that slide rotate, and
// dense ones whose pattern is 1 (Cohere2MoeAttention.force_rope). Experts are as wide as "intermediate_size".
void read_cohere2_moe_config(ConfigFields& fields, Architecture& architecture) {
  read_cohere_like(fields, architecture);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  read_experts(fields, architecture, {8, 2, 0}, {"num_experts", "num_local_experts"});
  Experts& experts = architecture.experts;
  experts.shared_width = experts.width * fields.count({"num_shared_experts"}, 0, 0);
  experts.normalised = fields.flag({"norm_topk_prob"}, true);
  experts.limited_groups = fields.text({"expert_selection_fn"}, "softmax") == "sigmoid";
  architecture.residual_scale = fields.text({"shared_expert_combination_strategy"}, "average") == "average";
  architecture.norm_bias = fields.has({"rms_norm_eps"});  // RMSNorm in the place of Cohere's
  const Count dense = std::min(fields.count({"first_k_dense_replace"}, 0, 0), architecture.num_layers);
  const Count prefix = fields.count({"prefix_dense_sliding_window_pattern"}, 1);
  const Count pattern = fields.count({"sliding_window_pattern", "_sliding_window_pattern"}, 4);
  if (fields.has({"mlp_layer_types"})) {
    read_mlp_layer_types(fields, architecture);
  } else {
    for (Count i = 0; i < architecture.num_layers; ++i) experts.dense_layers.push_back(i < dense);
  }
  architecture.sliding_window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  const auto types = read_layer_types(fields, architecture);
  architecture.sliding_layers = types ? *types : sliding_behind_prefix(dense, prefix, pattern, architecture.num_layers);
  if (experts.dense_layers.size() != architecture.sliding_layers.size()) return;  // an error that has been told
  for (std::size_t i = 0; i < architecture.sliding_layers.size(); ++i) {
    const bool rotates = architecture.sliding_layers[i] != 0 || (experts.dense_layers[i] != 0 && prefix == 1);
    architecture.no_rope_layers.push_back(!rotates);
  }
  if (const auto width = fields.nullable({"prefix_dense_intermediate_size"}, std::nullopt)) {
    architecture.intermediate_size = *width;
  }
}

constexpr const char* kMoeBlock =
    "transformers 5.12 models/cohere2_moe/modeling_cohere2_moe.py: Cohere2MoeSparseMoeBlock.forward";
constexpr const char* kMoeRouter =
    "transformers 5.12 models/cohere2_moe/modeling_cohere2_moe.py: Cohere2MoeTopKRouter.forward";
constexpr ExpertForm kMoeForm = {
    .source = "transformers 5.12 models/cohere2_moe/modeling_cohere2_moe.py: Cohere2MoeExperts.forward"};
constexpr const char* kLayer = "transformers 5.12 models/cohere/modeling_cohere.py: CohereDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/cohere/modeling_cohere.py: CohereAttention.forward";
constexpr const char* kHead = "transformers 5.12 models/cohere/modeling_cohere.py: CohereForCausalLM.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  qkv_at_once(net, x, bias);
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = view(std::move(q), Shape{net.B, net.S, net.A, net.hd});
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = view(std::move(k), Shape{net.B, net.S, net.Kv, net.hd});
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  v = view(std::move(v), Shape{net.B, net.S, net.Kv, net.hd});
  if (net.arch.qk_norm) {
    q = cohere_norm(net, "self_attn.q_norm", std::move(q), true);
    k = cohere_norm(net, "self_attn.k_norm", std::move(k), true);
  }
  q = transpose(std::move(q), 1, 2);
  k = transpose(std::move(k), 1, 2);
  v = transpose(std::move(v), 1, 2);
  if (net.rotates(net.layer_index)) {
    Rotated turned = rotate_pairs_fp32(net, q, k);
    q = std::move(turned.q);
    k = std::move(turned.k);
  }
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor cohere_layer(Net& net, Tensor hidden, Norm norm, Branch feed_forward) {
  Scope in(net.tape, "", kLayer);
  const Tensor residual = std::move(hidden);
  Tensor h = norm(net, "input_layernorm", residual);
  const Tensor attended = self_attention(net, h);
  const Tensor fed = feed_forward(net, h);
  Tensor sum = add(residual, attended);
  h = add(std::move(sum), fed);
  return h;
}

Tensor plain_norm(Net& net, const char* name, Tensor x) {
  return cohere_norm(net, name, std::move(x));
}

Tensor layer(Net& net, Tensor hidden) {
  return cohere_layer(net, std::move(hidden), plain_norm, llama_mlp);
}

Tensor norm(Net& net, Tensor hidden) {
  return cohere_norm(net, "model.norm", std::move(hidden));
}

// The best logits alone go through the softmax, or a sigmoid.
Routing choose_experts(Net& net, const Tensor& tokens) {
  Scope in(net.tape, "mlp.gate", kMoeRouter);
  const Experts& e = net.arch.experts;
  Routing r;
  r.logits = linear(tokens, net.parameter("mlp.gate", "weight", Shape{Dim(e.count), net.H}));
  TopK best = topk(r.logits, Dim(e.per_token));
  if (!e.limited_groups) {
    r.weights = softmax(std::move(best.values), Dtype::kFp32);
  } else {
    r.weights = sigmoid(std::move(best.values));
    if (e.normalised) {
      Tensor sum = sum_over(r.weights, -1, true);
      r.weights = div(std::move(r.weights), std::move(sum));
    }
  }
  r.weights = to(std::move(r.weights), tokens.dtype());
  r.indices = std::move(best.indices);
  mask_others(net, r);
  return r;
}

Tensor moe_mlp(Net& net, Tensor hidden_in) {
  if (is_dense_layer(net)) return llama_mlp(net, std::move(hidden_in));
  Scope in(net.tape, "mlp", kMoeBlock);
  const Tensor tokens = as_tokens(net, std::move(hidden_in));
  const Routing routing = choose_experts(net, tokens);
  Tensor out = run_experts(net, kMoeForm, tokens, routing.indices, routing.weights);
  if (net.arch.experts.shared_width > 0) {
    const Tensor shared = gated_mlp(net, kSharedExperts, kMoeBlock, tokens, Dim(net.arch.experts.shared_width));
    out = add(std::move(out), shared);
    if (net.arch.residual_scale) out = mul_scalar(std::move(out));
  }
  return as_sequences(net, std::move(out));
}

Tensor moe_norm_of(Net& net, const char* name, Tensor x) {
  return net.arch.norm_bias ? rms_norm(net, name, std::move(x)) : cohere_norm(net, name, std::move(x));
}

Tensor moe_layer(Net& net, Tensor hidden) {
  return cohere_layer(net, std::move(hidden), moe_norm_of, moe_mlp);
}

Tensor moe_norm(Net& net, Tensor hidden) {
  return moe_norm_of(net, "model.norm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor logits = net.lm_head("lm_head", std::move(hidden), net.V);
  return mul_scalar(std::move(logits));
}

}  // namespace

const Program kCohereProgram = {.forward = one_stack<llama_embed, layer, norm>, .lm_head = head, .has_tp_plan = true};

const Program kCohereMoeProgram = {one_stack<llama_embed, moe_layer, moe_norm>, head};

const Family kRows[] = {
    {"cohere", "Cohere", "CohereForCausalLM", kLanguageModelOnly, read_cohere_config, &kCohereProgram},
    {"cohere2", "Cohere2", "Cohere2ForCausalLM", kLanguageModelOnly, read_cohere2_config, &kCohereProgram},
    {"cohere2_moe", "Cohere2Moe", "Cohere2MoeForCausalLM", kLanguageModelOnly, read_cohere2_moe_config,
     &kCohereMoeProgram},
};

extern const FamilyRows cohere_rows;
const FamilyRows cohere_rows = kRows;

}  // namespace tidemark
