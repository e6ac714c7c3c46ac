// LFM2: short convolutions, gated on both sides, and now and then an attention; in LFM2-MoE experts behind both. LFM3:
// norms behind both branches, too, attention to a window in some layers, a gate on each of its heads.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/layers/rotations.hpp"
#include "core/layers/ssm.hpp"
#include "core/model/config_experts.hpp"
#include "core/model/config_ssm.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

// Lfm2MLP.__init__: the width that is built of what the file states.
Count adjusted_width(ConfigFields& fields, Count width) {
  const double factor = fields.multiplier({"block_ffn_dim_multiplier"}, 1.0);
  const Count multiple = fields.count({"block_multiple_of"}, 256);
  if (!fields.flag({"block_auto_adjust_ff_dim"}, true)) return width;
  const auto scaled = static_cast<Count>(factor * static_cast<double>(2 * width / 3));
  return (scaled + multiple - 1) / multiple * multiple;
}

// What Lfm2Config and Lfm2MoeConfig have in common.
void read_lfm2(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = fields.count({"num_attention_heads"}, 32);
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, 128000);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.tie_word_embeddings = fields.flag({"tie_embedding", "tie_word_embeddings"}, true);
  architecture.ssm.kernel = fields.count({"conv_L_cache"}, 3);
  architecture.ssm.conv_bias = fields.flag({"conv_bias"}, false);
  read_layer_kinds(fields, architecture, {"conv", "full_attention"}, 1);
}

// transformers 5.12.1 models/lfm2/configuration_lfm2.py: Lfm2Config; `full_attn_idxs` says which layers attend where
// `layer_types` does not.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_lfm2(fields, architecture);
  architecture.intermediate_size = adjusted_width(fields, fields.required({"block_ff_dim", "intermediate_size"}));
  const Value* attending = fields.find({"full_attn_idxs"});
  if (fields.has({"layer_types"}) || attending == nullptr || !attending->is_array()) return;
  architecture.layer_kinds.assign(architecture.layer_kinds.size(), 0);
  for (const Value& item : attending->items) {
    if (item.integer >= 0 && item.integer < architecture.num_layers) {
      architecture.layer_kinds[static_cast<std::size_t>(item.integer)] = 1;
    }
  }
}

// transformers 5.12.1 models/lfm2_moe/configuration_lfm2_moe.py: Lfm2MoeConfig. Its class has no list of layers of its
// own and fails without one.
void read_moe_config(ConfigFields& fields, Architecture& architecture) {
  read_lfm2(fields, architecture);
  architecture.intermediate_size = fields.count({"intermediate_size"}, 7168);
  if (!fields.has({"layer_types"})) {
    fields.error("MISSING_FIELD", "layer_types", "\"layer_types\" is missing: which layers attend would be guessed.");
  }
  read_experts(fields, architecture, {32, 4, 1792}, {"num_experts"}, {"moe_intermediate_size"});
  Experts& e = architecture.experts;
  e.normalised = fields.flag({"norm_topk_prob"}, true);
  e.bias = fields.flag({"use_expert_bias"}, true);
  const Count dense = fields.count({"num_dense_layers"}, 2, 0);
  for (Count i = 0; i < architecture.num_layers; ++i) e.dense_layers.push_back(i < dense);
  fields.accept({"routed_scaling_factor"});
}

constexpr std::uint8_t kGated = 4;  // of a kind of LFM3's attention: each head's output is multiplied by a number

// transformers 5.24 models/lfm3/configuration_lfm3.py: Lfm3Config. The rotation's partial factor leaves its tables as
// wide as a head.
void read_lfm3_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 128000);
  read_kv_heads(fields, architecture, 4);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.attention_bias = architecture.attention_out_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.norm_before = !fields.flag({"use_sandwich_norm"}, true);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.ssm.kernel = fields.count({"conv_L_cache"}, 7);
  architecture.ssm.conv_bias = fields.flag({"conv_bias"}, false);
  architecture.sliding_window = fields.nullable({"sliding_window"}, 256).value_or(0);
  read_layer_kinds(fields, architecture, {"conv", "full_attention", "sliding_attention"}, architecture.num_layers + 1);
  const bool stated = fields.has({"layer_types"}), gated = fields.flag({"use_attention_gate"}, true);
  Count layer = 0;
  for (std::uint8_t& kind : architecture.layer_kinds) {
    if (!stated && layer % 2 == 0 && layer > 0) kind = layer % 4 == 2 ? 1 : 2;
    architecture.sliding_layers.push_back(kind == 2);
    if (gated && kind > 0) kind |= kGated;
    ++layer;
  }
}

constexpr const char* kModel = "transformers 5.12 models/lfm2/modeling_lfm2.py: Lfm2Model.forward";
constexpr const char* kLayer = "transformers 5.12 models/lfm2/modeling_lfm2.py: Lfm2DecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/lfm2/modeling_lfm2.py: Lfm2Attention.forward";
constexpr const char* kConvolution = "transformers 5.12 models/lfm2/modeling_lfm2.py: Lfm2ShortConv.forward";
constexpr const char* kModel3 = "transformers 5.24 models/lfm3/modeling_lfm3.py: Lfm3Model.forward";
constexpr const char* kLayer3 = "transformers 5.24 models/lfm3/modeling_lfm3.py: Lfm3DecoderLayer.forward";
constexpr const char* kAttention3 = "transformers 5.24 models/lfm3/modeling_lfm3.py: Lfm3Attention.forward";
constexpr const char* kMlp = "transformers 5.12 models/lfm2/modeling_lfm2.py: Lfm2MLP.forward";
constexpr GatedNames kMlpNames = {"feed_forward", "feed_forward.w1", "feed_forward", "feed_forward.w3",
                                  "feed_forward.w2"};
constexpr const char* kMoe = "transformers 5.12 models/lfm2_moe/modeling_lfm2_moe.py: Lfm2MoeSparseMoeBlock.forward";
constexpr ExpertForm kExperts = {
    .module = "feed_forward.experts",
    .source = "transformers 5.12 models/lfm2_moe/modeling_lfm2_moe.py: Lfm2MoeExperts.forward",
    .act = "feed_forward.experts"};

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const Shape heads{net.B, net.S, net.A, net.hd}, kv_heads{net.B, net.S, net.Kv, net.hd};
  Tensor q = view(net.linear("self_attn.q_proj", x, net.Q), heads);
  q = transpose(rms_norm(net, "self_attn.q_layernorm", std::move(q)), 1, 2);
  Tensor k = view(net.linear("self_attn.k_proj", x, net.K), kv_heads);
  k = transpose(rms_norm(net, "self_attn.k_layernorm", std::move(k)), 1, 2);
  Tensor v = split_heads(net, net.linear("self_attn.v_proj", x, net.K), net.Kv, net.hd);
  rotate_both(net, q, k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.out_proj", std::move(out), net.H);
}

Tensor short_convolution(Net& net, Tensor hidden) {
  Scope in(net.tape, "conv", kConvolution);
  const Tensor handed = std::move(hidden), x = mask_padding(net, handed);
  const bool bias = net.arch.ssm.conv_bias;
  Tensor both = net.linear("conv.in_proj", x, Dim(3 * net.H.n()), bias);
  const Pieces three = split(transpose(std::move(both), -1, -2), -2, {net.H, net.H, net.H});
  Tensor gated = mul(three.part[0], three.part[2]);
  const Tensor out = causal_convolution(net, "conv.conv", gated, bias, false);
  if (net.job.framework.at_least(5, 15)) gated.reset();  // names are bound anew
  Tensor y = mul(three.part[1], out);
  y = contiguous(transpose(std::move(y), -1, -2));
  return net.linear("conv.out_proj", std::move(y), net.H, bias);
}

// Lfm2MoeSparseMoeBlock.route_tokens_to_experts, since transformers 5.13 Lfm2MoeTopKRouter: sigmoids, a correction in
// fp32 for the choice alone.
Routing route(Net& net, const Tensor& hidden) {
  const Experts& e = net.arch.experts;
  Routing r;
  r.logits = router_logits(net, "feed_forward.gate", hidden, 13);
  Tensor weights = sigmoid(r.logits);
  TopK best;
  if (e.bias) {
    const Tensor choice = add(weights, net.tape.part_of_buffer(Shape{Dim(e.count)}, Dtype::kFp32));
    best = topk(choice, Dim(e.per_token));
    weights = gather_last(std::move(weights), best.indices);
    weights = to(std::move(weights), r.logits.dtype());
  } else {
    best = topk(std::move(weights), Dim(e.per_token));
    weights = std::move(best.values);
  }
  if (e.normalised) {
    Tensor sum = sum_over(weights, -1, true);
    sum = add_scalar(std::move(sum));
    weights = div(std::move(weights), std::move(sum));
  }
  r.weights = mul_scalar(std::move(weights));
  r.indices = std::move(best.indices);
  return r;
}

Tensor moe(Net& net, Tensor hidden) {
  Scope in(net.tape, "feed_forward", kMoe);
  if (net.arch.experts.bias) net.tape.buffer("feed_forward.expert_bias", 4 * net.arch.experts.count);
  const Tensor tokens = as_tokens(net, std::move(hidden));
  const Routing routing = route(net, tokens);
  return as_sequences(net, run_experts(net, kExperts, tokens, routing.indices, routing.weights));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor residual = std::move(hidden);
  const bool attends = net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == 1;
  Tensor h = rms_norm(net, "operator_norm", residual);
  h = attends ? self_attention(net, std::move(h)) : short_convolution(net, std::move(h));
  h = add(std::move(h), residual);
  Tensor normed = rms_norm(net, "ffn_norm", h);
  const bool mixes = net.arch.experts.count > 0 && !is_dense_layer(net);
  normed = mixes ? moe(net, std::move(normed)) : gated_mlp(net, kMlpNames, kMlp, std::move(normed), net.F);
  return add(std::move(h), std::move(normed));
}

// q and k turn in fp32. What a norm is handed lives until it returns.
Tensor gated_attention(Net& net, Tensor hidden, bool gated) {
  Scope in(net.tape, "self_attn", kAttention3);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  const Shape heads{net.B, net.S, net.A, net.hd}, kv_heads{net.B, net.S, net.Kv, net.hd};
  Tensor q = view(net.linear("self_attn.q_proj", x, net.Q, bias), heads);
  q = transpose(rms_norm(net, "self_attn.q_norm", q), 1, 2);
  Tensor k = view(net.linear("self_attn.k_proj", x, net.K, bias), kv_heads);
  k = transpose(rms_norm(net, "self_attn.k_norm", k), 1, 2);
  const Tensor v = split_heads(net, net.linear("self_attn.v_proj", x, net.K, bias), net.Kv, net.hd);
  Rotated turned = rotate_fp32(net, std::move(q), std::move(k));
  q = std::move(turned.q);
  k = std::move(turned.k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  if (gated) {
    const Tensor open = sigmoid(net.linear("self_attn.g_proj", x, net.A));
    out = mul(view(std::move(out), heads), unsqueeze(open, -1));
    out = view(std::move(out), Shape{net.B, net.S, net.Q});
  }
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor sandwich_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer3);
  const bool behind = !net.arch.norm_before;
  Tensor residual = std::move(hidden);
  const std::uint8_t kind = net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)];
  Tensor h = rms_norm(net, "operator_norm", residual);
  h = kind > 0 ? gated_attention(net, std::move(h), (kind & kGated) != 0) : short_convolution(net, std::move(h));
  if (behind) h = rms_norm(net, "post_operator_norm", h);
  h = add(std::move(residual), std::move(h));
  residual = h;
  h = gated_mlp(net, kMlpNames, kMlp, rms_norm(net, "ffn_norm", std::move(h)), net.F);
  if (behind) h = rms_norm(net, "post_ffn_norm", h);
  return add(std::move(residual), std::move(h));
}

Tensor embed(Net& net) {
  return decoder_embed(net, kModel, false);
}

// A pair of tables for each kind of attention, sliding last.
Tensor embed_by_kind(Net& net) {
  Scope in(net.tape, "model", kModel3);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  rotary_tables_by_kind(net, Dtype::kFp32);
  return embeds;
}

// Lfm3Model.forward: a layer that attends is handed the tables and the mask of its kind, a convolution neither.
void hand_by_kind(Net& net, Count layer) {
  const bool attends = net.arch.layer_kinds[static_cast<std::size_t>(layer)] > 0;
  const bool local = net.is_sliding_layer(layer), slides = net.slides(layer);
  Net::Shared& all = net.shared;
  if (!attends || local) all.cos = all.sin = {};
  if (!attends || !local) all.local_cos = all.local_sin = {};
  if (!attends || slides) all.causal_mask.reset();
  if (!attends || !slides) all.sliding_mask.reset();
}

Tensor norm(Net& net, Tensor hidden) {
  return rms_norm(net, "model.embedding_norm", std::move(hidden));
}

// `hidden_states = self.norm(hidden_states)`: the name holds what goes in until the norm returns.
Tensor last_norm(Net& net, Tensor hidden_in) {
  const Tensor hidden = std::move(hidden_in);
  return norm(net, hidden);
}

const Program kProgram = {one_stack<embed, layer, norm>, llama_head};
const Program kSandwichProgram = {one_stack<embed_by_kind, sandwich_layer, last_norm, hand_by_kind>, llama_head};

}  // namespace

const Family kRows[] = {
    {"lfm2", "Lfm2", "Lfm2ForCausalLM", kLanguageModelOnly, read_config, &kProgram},
    {"lfm3", "Lfm3", "Lfm3ForCausalLM", kLanguageModelOnly, read_lfm3_config, &kSandwichProgram},
    {"lfm2_moe", "Lfm2Moe", "Lfm2MoeForCausalLM", kLanguageModelOnly, read_moe_config, &kProgram},
};

extern const FamilyRows lfm2_rows;
const FamilyRows lfm2_rows = kRows;

}  // namespace tidemark
