// Laguna: gated attention whose heads and rotary tables differ from layer to layer, and experts chosen by sigmoids
// beside one that all tokens pass through.
#include <algorithm>

#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/families/towers.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

// Columns of a head that rotate in layers of that type (LagunaConfig.__post_init__: rope_parameters).
Count rotary_columns(ConfigFields& fields, const Architecture& architecture, const char* type, double standard) {
  const double unsaid = object_in(fields, "rope_parameters") != nullptr ? 1.0 : standard;
  const double factor = rotary_factor_of(fields, type).value_or(unsaid);
  return static_cast<Count>(static_cast<double>(architecture.head_dim) * factor);
}

// Query heads of each layer, and which layers have as many.
void read_heads(ConfigFields& fields, Architecture& architecture) {
  const Value* given = fields.find({"num_attention_heads_per_layer"});
  if (given == nullptr || !given->is_array()) return;
  const auto fits = [&](const Value& item) {
    return item.is_integer() && item.integer > 0 && item.integer % architecture.num_kv_heads == 0;
  };
  if (static_cast<Count>(given->items.size()) != architecture.num_layers ||
      !std::all_of(given->items.begin(), given->items.end(), fits)) {
    fields.error("INVALID_VALUE", "num_attention_heads_per_layer",
                 "This must have a number of heads for each layer, which the key and value heads divide.");
    return;
  }
  std::vector<Count> seen;
  for (const Value& item : given->items) {
    architecture.local_layers.push_back(item.integer);
    const auto at = std::find(seen.begin(), seen.end(), item.integer);
    architecture.layer_kinds.push_back(static_cast<std::uint8_t>(at - seen.begin()));
    if (at == seen.end()) seen.push_back(item.integer);
  }
}

// transformers 5.12.1 models/laguna/configuration_laguna.py: LagunaConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 131072);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = rotary_columns(fields, architecture, "full_attention", 0.5);
  architecture.latent.rope_dim = rotary_columns(fields, architecture, "sliding_attention", 1.0);
  read_heads(fields, architecture);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.qk_norm = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  const Count window = fields.nullable({"sliding_window"}, 512).value_or(0);
  if (const auto types = read_layer_types(fields, architecture)) {
    architecture.sliding_window = window;
    architecture.sliding_layers = *types;
  }
  read_experts(fields, architecture, {256, 8, 512}, {"num_experts", "num_local_experts"}, {"moe_intermediate_size"});
  architecture.experts.shared_width = fields.count({"shared_expert_intermediate_size"}, 512);
  read_mlp_layer_types(fields, architecture);
  architecture.logit_softcap = fields.number({"moe_router_logit_softcapping"}, 0.0) > 0.0;
  read_aux_loss(fields, architecture);
  if (fields.flag({"moe_apply_router_weight_on_input"}, false)) {
    fields.error("INVALID_VALUE", "moe_apply_router_weight_on_input", "transformers 5.12.1 raises an error.", "false");
  }
  fields.accept({"moe_routed_scaling_factor"});
}

constexpr const char* kModel = "transformers 5.12 models/laguna/modeling_laguna.py: LagunaModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/laguna/modeling_laguna.py: LagunaDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/laguna/modeling_laguna.py: LagunaAttention.forward";
constexpr const char* kBlock = "transformers 5.12 models/laguna/modeling_laguna.py: LagunaSparseMoeBlock.forward";
constexpr const char* kRouter = "transformers 5.12 models/laguna/modeling_laguna.py: LagunaTopKRouter.forward";
constexpr ExpertForm kForm = {.source = "transformers 5.12 models/laguna/modeling_laguna.py: LagunaExperts.forward"};

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  rotary_tables_by_kind(net, embeds.dtype(), net.arch.latent.rope_dim);
  return embeds;
}

}  // namespace

// apply_rotary_pos_emb: the leading columns turn, and a cat joins the rest, be it nothing.
void turn_by_kind(Net& net, Tensor& q, Tensor& k) {
  const bool local = net.is_sliding_layer(net.layer_index);
  const Tensor cos = unsqueeze(local ? net.shared.local_cos : net.shared.cos, 1);
  const Tensor sin = unsqueeze(local ? net.shared.local_sin : net.shared.sin, 1);
  const Count columns = cos.size(-1), rest = net.hd.n() - columns;
  const auto leading = [&](const Tensor& x) { return narrow(x, -1, 0, Dim(columns)); };
  const Tensor q_turned = rotate_by(leading(q), cos, sin), k_turned = rotate_by(leading(k), cos, sin);
  const auto joined = [&](const Tensor& turned, const Tensor& whole) {
    if (rest == 0) return cat({&turned}, -1);
    const Tensor pass = narrow(whole, -1, columns, Dim(rest));
    return cat({&turned, &pass}, -1);
  };
  q = joined(q_turned, q);
  k = joined(k_turned, k);
}

namespace {

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  const auto i = static_cast<std::size_t>(net.layer_index);
  const Dim heads = net.arch.local_layers.empty() ? net.A : Dim(net.arch.local_layers[i]);
  const Dim wide(heads.n() * net.hd.n());
  Tensor q = view(net.linear("self_attn.q_proj", x, wide, bias), Shape{net.B, net.S, heads, net.hd});
  Tensor k = view(net.linear("self_attn.k_proj", x, net.K, bias), Shape{net.B, net.S, net.Kv, net.hd});
  const Tensor v = split_heads(net, net.linear("self_attn.v_proj", x, net.K, bias), net.Kv, net.hd);
  q = transpose(rms_norm(net, "self_attn.q_norm", std::move(q)), 1, 2);
  k = transpose(rms_norm(net, "self_attn.k_norm", std::move(k)), 1, 2);
  turn_by_kind(net, q, k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  Tensor gate = softplus(to(net.linear("self_attn.g_proj", x, heads), Dtype::kFp32));
  gate = to(std::move(gate), out.dtype());
  out = mul(view(std::move(out), Shape{net.B, net.S, heads, net.hd}), unsqueeze(std::move(gate), -1));
  out = view(std::move(out), Shape{net.B, net.S, wide});
  return net.linear("self_attn.o_proj", std::move(out), net.H, bias);
}

// The correction, a parameter that is never trained, is for the choice alone.
Routing route(Net& net, const Tensor& tokens) {
  const Experts& e = net.arch.experts;
  Scope in(net.tape, "mlp.gate", kRouter);
  const Tensor weight = net.parameter("mlp.gate", "weight", Shape{Dim(e.count), net.H});
  const Tensor correction = net.parameter("mlp.gate", "e_score_correction_bias", Shape{Dim(e.count)}, false);
  Routing r;
  r.logits = to(linear(tokens, weight), Dtype::kFp32);
  if (net.arch.logit_softcap) r.logits = mul_scalar(tanh(mul_scalar(std::move(r.logits))));
  const Tensor scores = sigmoid(r.logits);
  choose_corrected(r, scores, correction, Dim(e.per_token), false);
  r.weights = to(std::move(r.weights), tokens.dtype());
  mask_others(net, r);
  keep_router_logits(net, r.logits);
  return r;
}

Tensor feed_forward(Net& net, Tensor hidden_in) {
  if (is_dense_layer(net)) return llama_mlp(net, std::move(hidden_in));
  Scope in(net.tape, "mlp", kBlock);
  const Tensor tokens = as_tokens(net, std::move(hidden_in));
  const Tensor shared = gated_mlp(net, kSharedExperts, kBlock, tokens, Dim(net.arch.experts.shared_width));
  const Routing routing = route(net, tokens);
  Tensor out = run_experts(net, kForm, tokens, routing.indices, routing.weights);
  out = mul_scalar(std::move(out));
  return as_sequences(net, add(std::move(out), shared));
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, feed_forward);
}

const Program kProgram = {one_stack<embed, layer, llama_norm>, llama_head, kMoeForwards};

}  // namespace

const Family kRows[] = {
    {"laguna", "Laguna", "LagunaForCausalLM", kLanguageModelOnly, read_config, &kProgram},
};

extern const FamilyRows laguna_rows;
const FamilyRows laguna_rows = kRows;

}  // namespace tidemark
