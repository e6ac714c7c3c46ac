// DeepSeek-V2 and V3, and what is made like V3 (Moonlight, Kimi K2; GLM-4.7-Flash; Mistral 4): latent attention, a few
// dense layers first, then experts of which one or more see all tokens. dots.llm1: V3's experts behind Qwen3's
// attention. Youtu: V3's attention before Llama's feed-forward.
#include <algorithm>
#include <string>

#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/layers/model_call.hpp"
#include "core/layers/rotations.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

void read_deepseek(ConfigFields& fields, Architecture& architecture, Count max_positions) {
  read_dimensions(fields, architecture, max_positions);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

// transformers 5.12.1 models/deepseek_v2/configuration_deepseek_v2.py: DeepseekV2Config.
void read_deepseek_v2_config(ConfigFields& fields, Architecture& architecture) {
  read_deepseek(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  read_latent_attention(fields, architecture, 1536, 128, 128);
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  read_routed_experts(fields, architecture, {64, 6, 1407}, 2);
  // The class has no default, and without one routing fails: that of every published file stands in.
  if (!fields.has({"num_experts_per_tok"})) {
    fields.note("ASSUMED_DEFAULT", "num_experts_per_tok", "\"num_experts_per_tok\" is absent; 6 is taken.");
  }
  read_dense_prefix(fields, architecture, 0);
  read_expert_groups(fields, architecture, 1, 1);
  architecture.experts.limited_groups = fields.text({"topk_method"}, "greedy") == "group_limited_greedy";
  // DeepseekV2Moe.route_tokens_to_experts does not read it.
  fields.accept({"norm_topk_prob"});
}

// transformers 5.12.1 models/deepseek_v3/configuration_deepseek_v3.py: DeepseekV3Config.
void read_deepseek_v3_config(ConfigFields& fields, Architecture& architecture) {
  read_deepseek(fields, architecture, 4096);
  read_kv_heads(fields, architecture, 128);
  read_latent_attention(fields, architecture, 1536, 128, 128);
  architecture.latent.interleaved = fields.flag({"rope_interleave"}, true);
  read_routed_experts(fields, architecture, {256, 8, 2048}, 1);
  read_dense_prefix(fields, architecture, 3);
  read_expert_groups(fields, architecture, 8, 4);
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, true);
  fields.accept({"topk_method"});
}

// transformers 5.12.1 models/glm4_moe_lite/configuration_glm4_moe_lite.py: Glm4MoeLiteConfig (GLM-4.7-Flash).
void read_glm4_moe_lite_config(ConfigFields& fields, Architecture& architecture) {
  read_deepseek(fields, architecture, 202752);
  read_kv_heads(fields, architecture, 20);
  read_latent_attention(fields, architecture, 768, 192, 256);
  architecture.latent.interleaved = fields.flag({"rope_interleave"}, true);
  read_routed_experts(fields, architecture, {64, 4, 1536}, 1);
  read_mlp_layer_types(fields, architecture);
  read_expert_groups(fields, architecture, 1, 1);
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, true);
  fields.accept({"first_k_dense_replace", "topk_method"});
}

// transformers 5.12.1 models/mistral4/configuration_mistral4.py: Mistral4Config.
void read_mistral4_config(ConfigFields& fields, Architecture& architecture) {
  read_deepseek(fields, architecture, 1048576);
  read_kv_heads(fields, architecture, 32);
  read_latent_attention(fields, architecture, 1024, 64, 128, 256);
  architecture.latent.interleaved = fields.flag({"rope_interleave"}, true);
  architecture.query_scale = true;
  read_routed_experts(fields, architecture, {128, 4, 2048}, 1);
  read_dense_prefix(fields, architecture, 0);
  read_expert_groups(fields, architecture, 1, 1);
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, true);
  fields.accept({"topk_method"});
}

// transformers 5.12.1 models/dots1/configuration_dots1.py: Dots1Config. Neither the experts nor how many a token takes
// has a default: those of every published file stand in.
void read_dots1_config(ConfigFields& fields, Architecture& architecture) {
  read_deepseek(fields, architecture, 2048);
  read_kv_heads(fields, architecture, 32);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.qk_norm = true;
  for (const char* key : {"n_routed_experts", "num_experts_per_tok", "n_shared_experts"}) {
    if (fields.has({key})) continue;
    fields.note("ASSUMED_DEFAULT", key,
                "\"" + std::string{key} + "\" is absent; that of every published file is taken.");
  }
  read_routed_experts(fields, architecture, {128, 6, 1408}, 2);
  read_dense_prefix(fields, architecture, 0);
  read_expert_groups(fields, architecture, 1, 1);
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, false);
  const Count window = fields.nullable({"sliding_window"}, 4096).value_or(0),
              full = fields.count({"max_window_layers"}, 62, 0);
  const auto types = read_layer_types(fields, architecture);
  architecture.sliding_window = window;
  for (Count i = 0; i < architecture.num_layers && window > 0; ++i) {
    architecture.sliding_layers.push_back(types ? (*types)[static_cast<std::size_t>(i)] : i >= full);
  }
  fields.accept({"topk_method", "mlp_layer_types"});
}

// transformers 5.12.1 models/youtu/configuration_youtu.py: YoutuConfig.
void read_youtu_config(ConfigFields& fields, Architecture& architecture) {
  read_deepseek(fields, architecture, 131072);
  read_kv_heads(fields, architecture, 16);
  read_latent_attention(fields, architecture, 1536, 128, 128);
  architecture.latent.interleaved = fields.flag({"rope_interleave"}, true);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"embedding_initializer_range", "mlp_bias"});
}

// GlmMoeDsaConfig.__post_init__: layers that take the choice of the one before are of kind 1.
void read_indexers(ConfigFields& fields, Architecture& architecture) {
  const Value* types = fields.find({"indexer_types"});
  const Count frequency = fields.count({"index_topk_freq"}, 1), offset = fields.count({"index_skip_topk_offset"}, 2, 0);
  const bool stated = types != nullptr && types->is_array();
  if (fields.has({"index_topk_pattern"}) || architecture.latent.query_rank == 0 ||
      (stated && static_cast<Count>(types->items.size()) != architecture.num_layers)) {
    fields.error(
        "INVALID_VALUE", "indexer_types",
        "\"indexer_types\" with an entry per layer is expected, and \"q_lora_rank\"; patterns are not modelled.");
    return;
  }
  for (Count i = 0; i < architecture.num_layers; ++i) {
    const bool shares = stated ? types->items[static_cast<std::size_t>(i)].string == "shared"
                               : std::max<Count>(i - offset + 1, 0) % frequency != 0;
    if (shares && i == 0) fields.error("INVALID_VALUE", "indexer_types", "The first layer has no choice to share.");
    architecture.layer_kinds.push_back(shares ? 1 : 0);
  }
}

// transformers 5.12.1 models/deepseek_v32/configuration_deepseek_v32.py, models/glm_moe_dsa/…: DeepseekV32Config,
// GlmMoeDsaConfig.
void read_sparse(ConfigFields& fields, Architecture& architecture, bool glm) {
  read_deepseek(fields, architecture, glm ? 202752 : 163840);
  read_kv_heads(fields, architecture, glm ? 64 : 128);
  read_latent_attention(fields, architecture, glm ? 2048 : 1536, glm ? 192 : 128, glm ? 256 : 128);
  LatentAttention& a = architecture.latent;
  a.interleaved = true;
  a.index_heads = fields.count({"index_n_heads"}, glm ? 32 : 64);
  a.index_dim = fields.count({"index_head_dim"}, 128);
  a.index_tokens = fields.count({"index_topk"}, 2048);
  read_routed_experts(fields, architecture, {256, 8, 2048}, 1);
  if (fields.has({"mlp_layer_types"})) {
    read_mlp_layer_types(fields, architecture);
    fields.accept({"first_k_dense_replace"});
  } else {
    read_dense_prefix(fields, architecture, 3);
  }
  read_expert_groups(fields, architecture, glm ? 1 : 8, glm ? 1 : 4);
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, true);
  // DeepseekV32NaiveMoe takes `num_experts` for how many there are, its router `n_routed_experts`.
  if (!glm && fields.count({"num_experts"}, 256) != architecture.experts.count) {
    fields.error("INVALID_VALUE", "num_experts", "\"num_experts\" (256 by default) must be \"n_routed_experts\".");
  }
  read_indexers(fields, architecture);
  fields.accept({"topk_method", "rope_interleave", "indexer_rope_interleave", "index_share_for_mtp_iteration",
                 "moe_router_dtype", "mlp_bias", "num_experts", "head_dim", "qk_head_dim", "layer_types"});
}

void read_deepseek_v32_config(ConfigFields& fields, Architecture& architecture) {
  read_sparse(fields, architecture, false);
}

void read_glm_moe_dsa_config(ConfigFields& fields, Architecture& architecture) {
  read_sparse(fields, architecture, true);
}

constexpr const char* kModel2 = "transformers 5.12 models/deepseek_v2/modeling_deepseek_v2.py: DeepseekV2Model.forward";
constexpr const char* kLayer2 =
    "transformers 5.12 models/deepseek_v2/modeling_deepseek_v2.py: DeepseekV2DecoderLayer.forward";
constexpr const char* kRotary2 =
    "transformers 5.12 models/deepseek_v2/modeling_deepseek_v2.py: DeepseekV2RotaryEmbedding.forward";
constexpr const char* kBlock2 = "transformers 5.12 models/deepseek_v2/modeling_deepseek_v2.py: DeepseekV2Moe.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/deepseek_v3/modeling_deepseek_v3.py: DeepseekV3Attention.forward";
constexpr const char* kIndexer =
    "transformers 5.12 models/deepseek_v32/modeling_deepseek_v32.py: DeepseekV32Indexer.forward";
constexpr const char* kLayer =
    "transformers 5.12 models/deepseek_v3/modeling_deepseek_v3.py: DeepseekV3DecoderLayer.forward";
constexpr const char* kRotate =
    "transformers 5.12 models/deepseek_v3/modeling_deepseek_v3.py: apply_rotary_pos_emb_interleave";
constexpr ExpertForm kForm2 = {
    .source = "transformers 5.12 models/deepseek_v2/modeling_deepseek_v2.py: DeepseekV2Experts.forward"};

/// What turns and how, of both versions: q [B, A, S, rope], k [B, 1, S, rope].
using Turn = void (*)(Net& net, Tensor& q, Tensor& k);

// `narrow_queries`: what they are made of, which DeepSeek-V3.2's method has a name for.
Tensor queries(Net& net, const Tensor& x, Tensor& narrow_queries) {
  const LatentAttention& a = net.arch.latent;
  const Dim width(net.A.n() * net.hd.n());
  if (a.query_rank == 0) return net.linear("self_attn.q_proj", x, width);
  Tensor q = net.linear("self_attn.q_a_proj", x, Dim(a.query_rank), net.arch.attention_bias);
  q = rms_norm(net, "self_attn.q_a_layernorm", std::move(q));
  if (a.index_heads > 0) narrow_queries = q;
  return net.linear("self_attn.q_b_proj", std::move(q), width);
}

}  // namespace

Tensor index_products(Net& net, const Tensor& q, const Tensor& keys) {
  const Dim heads = q.dim(2), width = q.dim(3), n = keys.dim(1);
  // matmul's caller holds its arguments until it returns.
  const Tensor wide_queries = to(q, Dtype::kFp32), wide_keys = to(transpose(keys, -1, -2), Dtype::kFp32);
  Tensor left = lower_precision(wide_queries), right = lower_precision(wide_keys);
  // matmul broadcasts the keys over the queries' places: a copy of them for each place where the batch has rows.
  right = reshape(expand(unsqueeze(std::move(right), 1), Shape{net.B, net.S, width, n}), Shape{net.T, width, n});
  left = reshape(std::move(left), Shape{net.T, heads, width});
  return matmul(left, right);
}

namespace {

// DeepseekV32Indexer.forward, GlmMoeDsaIndexer.forward: which tokens each token attends to, [B, S, k] int32. Scores are
// made of all pairs, by head, in fp32; nothing here is ever trained.
Tensor chosen_tokens(Net& net, const Tensor& x, const Tensor& narrow_queries, const Tensor& mask) {
  Scope in(net.tape, "self_attn.indexer", kIndexer);
  Tape& t = net.tape;
  const WithoutGradients quiet(t);
  const LatentAttention& a = net.arch.latent;
  const Dim heads(a.index_heads), width(a.index_dim), rope(a.rope_dim), rest(a.index_dim - a.rope_dim), one(1);
  Tensor q = net.linear("self_attn.indexer.wq_b", narrow_queries, Dim(a.index_heads * a.index_dim));
  q = view(std::move(q), Shape{net.B, net.S, heads, width});
  const Pieces q_parts = split(q, -1, {rope, rest});
  Tensor k = net.linear("self_attn.indexer.wk", x, width);
  k = net.layer_norm("self_attn.indexer.k_norm", std::move(k));
  k = unsqueeze(std::move(k), 2);
  const Pieces k_parts = split(k, -1, {rope, rest});
  const Tensor cos = unsqueeze(net.shared.cos, 2), sin = unsqueeze(net.shared.sin, 2);
  const Tensor q_turned = rotate_by(q_parts.part[0], cos, sin), k_turned = rotate_by(k_parts.part[0], cos, sin);
  q = cat({&q_turned, &q_parts.part[1]}, -1);
  k = view(cat({&k_turned, &k_parts.part[1]}, -1), Shape{net.B, net.S, width});
  Tensor scores = index_products(net, q, k);
  scores = mul_scalar(std::move(scores));
  {
    Tensor positive = relu(scores);
    scores = std::move(positive);
  }
  Tensor weights;
  {
    Tensor projected = net.linear("self_attn.indexer.weights_proj", x, heads);
    projected = to(std::move(projected), Dtype::kFp32);
    weights = mul_scalar(projected);
  }
  Tensor index_scores = matmul(view(weights, Shape{net.T, one, heads}), scores);
  index_scores = view(std::move(index_scores), Shape{net.B, net.S, net.S});
  Tensor key_positions, causal;
  if (mask.defined()) {
    index_scores = add(index_scores, view(mask, Shape{net.B, net.S, net.S}));
  } else {
    key_positions = t.allocate(Shape{net.S}, Dtype::kInt64, "arange");
    causal = t.allocate(Shape{one, net.S, net.S}, Dtype::kBool, "gt");
    index_scores = masked_fill(index_scores, causal);
  }
  const Dim k_best(t.above(net.S.n(), a.index_tokens) ? a.index_tokens : net.S.n());
  const TopK best = topk(index_scores, k_best);
  return t.allocate(best.indices.shape(), Dtype::kInt32, "to");
}

// The additive mask that hides all others.
Tensor sparse_mask(Net& net, const Tensor& chosen, Tensor mask) {
  Tape& t = net.tape;
  const Dim one(1);
  const Shape pairs{net.B, one, net.S, net.S};
  Tensor hidden = t.allocate(pairs, Dtype::kBool, "new_ones");
  {
    const Tensor wide = t.allocate(chosen.shape(), Dtype::kInt64, "to");
    hidden = t.allocate(pairs, Dtype::kBool, "scatter");
  }
  Tensor key_positions;
  if (!mask.defined()) {
    key_positions = t.allocate(Shape{net.S}, Dtype::kInt64, "arange");
    {
      const Tensor later = t.allocate(Shape{one, one, net.S, net.S}, Dtype::kBool, "gt");
      hidden = t.allocate(pairs, Dtype::kBool, "bitwise_or");
    }
    mask = zeros(t, pairs, net.weight_dtype(1), "new_zeros");
  }
  return masked_fill(mask, hidden);
}

// Both versions alike but for the turning.
Tensor latent_attention(Net& net, Tensor hidden, Turn turn) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const LatentAttention& a = net.arch.latent;
  const Dim rope(a.rope_dim), plain(a.plain_dim), value(a.value_dim);
  const bool bias = net.arch.attention_bias;
  Tensor narrow_queries;
  Tensor q_states = queries(net, x, narrow_queries);
  q_states = split_heads(net, std::move(q_states), net.A, net.hd);
  const Pieces q_parts = split(q_states, -1, {plain, rope});
  const Tensor compressed = net.linear("self_attn.kv_a_proj_with_mqa", x, Dim(a.rank + a.rope_dim), bias);
  const Pieces parts = split(compressed, -1, {Dim(a.rank), rope});
  Tensor up = rms_norm(net, "self_attn.kv_a_layernorm", parts.part[0]);
  up = net.linear("self_attn.kv_b_proj", std::move(up), Dim(net.A.n() * (a.plain_dim + a.value_dim)));
  up = split_heads(net, std::move(up), net.A, Dim(a.plain_dim + a.value_dim));
  const Pieces kv = split(up, -1, {plain, value});
  up.reset();
  Tensor q_turned = q_parts.part[1], k_turned = view(parts.part[1], Shape{net.B, Dim(1), net.S, rope});
  turn(net, q_turned, k_turned);
  k_turned = expand(std::move(k_turned), Shape{net.B, net.A, net.S, rope});
  Tensor q = cat({&q_parts.part[0], &q_turned}, -1);
  const Tensor k = cat({&kv.part[0], &k_turned}, -1);
  if (net.arch.query_scale) q = scale_queries(net, std::move(q));
  Tensor v = kv.part[1];
  const bool padded = wants_flash(net.job) && a.value_dim != net.hd.n();
  if (padded) v = pad_last(std::move(v), net.hd.n() - a.value_dim);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor chosen;
  if (a.index_heads > 0) {
    const bool shares =
        net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == 1 && !net.shared.captured.empty();
    chosen = shares ? net.shared.captured.front() : chosen_tokens(net, x, narrow_queries, options.mask);
    if (net.arch.model_type == "glm_moe_dsa") net.shared.captured = {chosen};  // it returns them, for the next layer
    options.mask = sparse_mask(net, chosen, options.mask);
  }
  Tensor out = attention(net, q, k, v, options);
  if (padded) {
    out = view(std::move(out), Shape{net.B, net.S, net.A, net.hd});
    out = narrow(std::move(out), -1, 0, value);
    out = reshape(std::move(out), Shape{net.B, net.S, Dim(net.A.n() * value.n())});
  }
  return net.linear("self_attn.o_proj", std::move(out), net.H, bias);
}

// -- DeepSeek-V2 -----------------------------------------------------------------------------------------------------

// One table of complex numbers: eight bytes for each pair.
Tensor embed2(Net& net) {
  Scope in(net.tape, "model", kModel2);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  complex_rotary_table(net, kRotary2);
  return embeds;
}

void turn2(Net& net, Tensor& q, Tensor& k) {
  Rotated turned = rotate_complex(net, std::move(q), std::move(k), true);
  q = std::move(turned.q);
  k = std::move(turned.k);
}

// DeepseekV2Moe.route_tokens_to_experts
Routing route2(Net& net, Tensor logits_in) {
  const Experts& e = net.arch.experts;
  const Tensor logits = view(std::move(logits_in), Shape{net.T, Dim(e.count)});
  const Tensor scores = softmax(logits, Dtype::kFp32);
  TopK best;
  if (e.limited_groups) {
    const Tensor limited = limit_to_groups(net, scores, false);
    best = topk(limited, Dim(e.per_token));
  } else {
    best = topk(scores, Dim(e.per_token));
  }
  Routing r;
  r.weights = mul_scalar(std::move(best.values));
  r.indices = std::move(best.indices);
  return r;
}

}  // namespace

// From this release on DeepseekV2TopkRouter, whose weight is a parameter and no nn.Linear's.
constexpr int kRouterRelease = 13;

Tensor deepseek_v2_mlp(Net& net, Tensor hidden_in) {
  if (is_dense_layer(net)) return llama_mlp(net, std::move(hidden_in));
  Scope in(net.tape, "mlp", kBlock2);
  const Tensor hidden = std::move(hidden_in);
  const Tensor logits = fp32_router(net, "mlp.gate", kBlock2, hidden, !net.job.framework.at_least(5, kRouterRelease));
  const Routing routing = route2(net, logits);
  Tensor out = run_experts(net, kForm2, as_tokens(net, hidden), routing.indices, routing.weights);
  out = as_sequences(net, std::move(out));
  const Tensor shared =
      gated_mlp(net, kSharedExperts, kBlock2, hidden, Dim(net.arch.experts.shared_width), net.arch.mlp_bias);
  return add(std::move(out), shared);
}

namespace {

Tensor layer2(Net& net, Tensor hidden) {
  return pre_norm_layer(
      net, std::move(hidden), kLayer2, [](Net& n, Tensor h) { return latent_attention(n, std::move(h), turn2); },
      deepseek_v2_mlp);
}

// -- DeepSeek-V3 -----------------------------------------------------------------------------------------------------

void turn3(Net& net, Tensor& q, Tensor& k) {
  if (!net.arch.latent.interleaved) {
    Tensor q_embed = rotate(net, q);
    k = rotate(net, k);
    q = std::move(q_embed);
    return;
  }
  Scope in(net.tape, "self_attn", kRotate);
  const Dim half(net.arch.latent.rope_dim / 2);
  const Tensor cos = unsqueeze(narrow(net.shared.cos, -1, 0, half), 1);
  const Tensor sin = unsqueeze(narrow(net.shared.sin, -1, 0, half), 1);
  const Tensor q1 = every_other(q, 0), q2 = every_other(q, 1), k1 = every_other(k, 0), k2 = every_other(k, 1);
  q = turn_parts(q1, q2, cos, sin);
  k = turn_parts(k1, k2, cos, sin);
}

Tensor layer3(Net& net, Tensor hidden) {
  return pre_norm_layer(
      net, std::move(hidden), kLayer, [](Net& n, Tensor h) { return latent_attention(n, std::move(h), turn3); },
      deepseek_v3_mlp);
}

}  // namespace

namespace {

// The best of the best groups by `choice`, weighed by `scores`.
Routing best_of_groups(Net& net, const Tensor& scores, const Tensor& choice) {
  const Experts& e = net.arch.experts;
  const Tensor limited = limit_to_groups(net, choice, true);
  Routing r;
  r.indices = topk(limited, Dim(e.per_token)).indices;
  r.weights = gather_last(scores, r.indices);
  if (e.normalised) {
    Tensor sum = sum_over(r.weights, -1, true);
    sum = add_scalar(std::move(sum));
    r.weights = div_in_place(std::move(r.weights), std::move(sum));
  }
  r.weights = mul_scalar(std::move(r.weights));
  return r;
}

}  // namespace

// DeepseekV3MoE.route_tokens_to_experts
Routing deepseek_v3_routing(Net& net, const Tensor& logits) {
  const Tensor scores = sigmoid(logits);
  const Tensor choice = add(scores, net.tape.part_of_buffer(Shape{Dim(net.arch.experts.count)}, Dtype::kFp32));
  return best_of_groups(net, scores, choice);
}

namespace {

constexpr const char* kBlock3 = "transformers 5.12 models/deepseek_v3/modeling_deepseek_v3.py: DeepseekV3MoE.forward";
constexpr ExpertForm kForm3 = {
    .source = "transformers 5.12 models/deepseek_v3/modeling_deepseek_v3.py: DeepseekV3NaiveMoe.forward"};

Tensor wide_logits(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp.gate", kBlock3);
  Tensor weight = net.fp32_parameter("mlp.gate", "weight", Shape{Dim(net.arch.experts.count), net.H}, true);
  Tensor wide = to(std::move(hidden), Dtype::kFp32);
  return linear(std::move(wide), std::move(weight));
}

// DeepseekV3MoE.forward, or DeepseekV3MLP in the first layers.
Tensor sigmoid_experts(Net& net, Tensor hidden_in, const ExpertForm& form, bool wide_router) {
  if (is_dense_layer(net)) return llama_mlp(net, std::move(hidden_in));
  Scope in(net.tape, "mlp", kBlock3);
  const Tensor hidden = std::move(hidden_in);
  const Tensor logits = wide_router ? wide_logits(net, as_tokens(net, hidden))
                                    : fp32_router(net, "mlp.gate", kBlock3, as_tokens(net, hidden), false);
  net.tape.buffer("mlp.gate.e_score_correction_bias", 4 * net.arch.experts.count);
  const Routing routing = deepseek_v3_routing(net, logits);
  Tensor out = run_experts(net, form, as_tokens(net, hidden), routing.indices, routing.weights);
  out = as_sequences(net, std::move(out));
  if (net.arch.experts.shared_width == 0) return out;
  const Tensor shared = gated_mlp(net, kSharedExperts, kBlock3, hidden, Dim(net.arch.experts.shared_width));
  return add(std::move(out), shared);
}

}  // namespace

Tensor deepseek_v3_mlp(Net& net, Tensor hidden) {
  return sigmoid_experts(net, std::move(hidden), kForm3, false);
}

Tensor wide_router_mlp(Net& net, Tensor hidden) {
  return sigmoid_experts(net, std::move(hidden), kForm3, true);
}

Tensor wide_router_mlp(Net& net, Tensor hidden, const ExpertForm& form) {
  return sigmoid_experts(net, std::move(hidden), form, true);
}

void refuse_router_logits(ConfigFields& fields) {
  if (!fields.flag({"output_router_logits"}, false)) return;
  fields.error("INVALID_VALUE", "output_router_logits", "Routers whose logits are handed out are not modelled here.",
               "false");
}

namespace {

// -- Mistral 4, dots.llm1, Youtu -------------------------------------------------------------------------------------

// Mistral4MoE.forward: the router in the model's own dtype, and softmax in place of sigmoids.
Tensor mistral4_mlp(Net& net, Tensor hidden_in) {
  constexpr const char* kBlock = "transformers 5.12 models/mistral4/modeling_mistral4.py: Mistral4MoE.forward";
  constexpr ExpertForm kForm = {.source =
                                    "transformers 5.12 models/mistral4/modeling_mistral4.py: Mistral4NaiveMoe.forward"};
  if (is_dense_layer(net)) return llama_mlp(net, std::move(hidden_in));
  Scope in(net.tape, "mlp", kBlock);
  const Tensor hidden = std::move(hidden_in);
  Tensor weight = net.parameter("mlp.gate", "weight", Shape{Dim(net.arch.experts.count), net.H});
  const Tensor logits = linear(as_tokens(net, hidden), std::move(weight));
  Routing routing;
  {
    const Tensor scores = softmax(logits);
    routing = best_of_groups(net, scores, scores);
  }
  Tensor out = run_experts(net, kForm, as_tokens(net, hidden), routing.indices, routing.weights);
  out = as_sequences(net, std::move(out));
  const Tensor shared = gated_mlp(net, kSharedExperts, kBlock, hidden, Dim(net.arch.experts.shared_width));
  return add(std::move(out), shared);
}

Tensor mistral4_layer(Net& net, Tensor hidden) {
  return pre_norm_layer(
      net, std::move(hidden), kLayer, [](Net& n, Tensor h) { return latent_attention(n, std::move(h), turn3); },
      mistral4_mlp);
}

Tensor youtu_layer(Net& net, Tensor hidden) {
  return pre_norm_layer(
      net, std::move(hidden), kLayer, [](Net& n, Tensor h) { return latent_attention(n, std::move(h), turn3); },
      llama_mlp);
}

Tensor dots1_layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, qwen3_attention, deepseek_v3_mlp);
}

}  // namespace

// transformers 5.12 modeling_deepseek_v2.py: DeepseekV2Moe.forward; DeepSeek-OCR 2's has the same.
void check_router_is_unpacked(const Architecture&, const TrainingJob& job, Issues& issues) {
  if (job.method != Method::kQlora || !job.framework.at_least(5, 0)) return;
  if (job.framework.at_least(5, kRouterRelease)) return;
  issues.push_back({"INVALID_VALUE", Severity::kError, "/method",
                    "transformers 5.0 to 5.12 reads the packed weight of DeepSeek-V2's router as a matrix: QLoRA fails "
                    "with a shape error. "
                    "Use \"lora\".",
                    "lora"});
}

const Program kMistral4Program = {one_stack<llama_embed, mistral4_layer, llama_norm>, llama_head};
const Program kYoutuProgram = {one_stack<llama_embed, youtu_layer, llama_norm>, llama_head};
const Program kDots1Program = {one_stack<llama_embed, dots1_layer, llama_norm>, llama_head};
const Program kDeepseekV2Program = {
    .forward = one_stack<embed2, layer2, llama_norm>, .lm_head = llama_head, .check = check_router_is_unpacked};
const Program kDeepseekV3Program = {one_stack<llama_embed, layer3, llama_norm>, llama_head};

const Program kSparseProgram = {
    .forward = one_stack<llama_embed, layer3, llama_norm>, .lm_head = llama_head, .attention = kNoFlash};

const Family kRows[] = {
    {"deepseek_v2", "DeepseekV2", "DeepseekV2ForCausalLM", kSequenceOnly, read_deepseek_v2_config, &kDeepseekV2Program},
    {"deepseek_v3", "DeepseekV3", "DeepseekV3ForCausalLM", kSequenceAndToken, read_deepseek_v3_config,
     &kDeepseekV3Program},
    // Moonshot's Kimi K2: "architectures" names DeepSeek-V3's class, for code beside the weights that is a copy of it.
    {"kimi_k2", "DeepseekV3", "DeepseekV3ForCausalLM", kSequenceAndToken, read_deepseek_v3_config, &kDeepseekV3Program},
    {"deepseek_v32", "DeepseekV32", "DeepseekV32ForCausalLM", kLanguageModelOnly, read_deepseek_v32_config,
     &kSparseProgram, kModelLayers, kNoFlex},
    {"glm_moe_dsa", "GlmMoeDsa", "GlmMoeDsaForCausalLM", kLanguageModelOnly, read_glm_moe_dsa_config, &kSparseProgram,
     kModelLayers, kNoFlex},
    {"glm4_moe_lite", "Glm4MoeLite", "Glm4MoeLiteForCausalLM", kLanguageModelOnly, read_glm4_moe_lite_config,
     &kDeepseekV3Program},
    {"mistral4", "Mistral4", "Mistral4ForCausalLM", kSequenceAndToken, read_mistral4_config, &kMistral4Program},
    {"dots1", "Dots1", "Dots1ForCausalLM", kLanguageModelOnly, read_dots1_config, &kDots1Program},
    {"youtu", "Youtu", "YoutuForCausalLM", kLanguageModelOnly, read_youtu_config, &kYoutuProgram},
};

extern const FamilyRows deepseek_rows;
const FamilyRows deepseek_rows = kRows;

}  // namespace tidemark
