// OLMo: norms without weights. OLMo 2 and 3: norms after each branch and over the whole of q and k. Rotation in fp32,
// but for OLMo 3. OLMo-Hybrid: three gated delta nets, each behind a norm, to one of OLMo 2's layers. FlexOlmo: OLMo
// 2's layers with OLMoE's experts.
#include <algorithm>

#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/rotations.hpp"
#include "core/layers/ssm.hpp"
#include "core/model/config_experts.hpp"
#include "core/model/config_ssm.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

void read_olmo_like(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

// transformers 5.12.1 models/olmo/configuration_olmo.py: OlmoConfig. Its norms have no weights at all.
void read_olmo_config(ConfigFields& fields, Architecture& architecture) {
  read_olmo_like(fields, architecture);
  architecture.clip_qkv = fields.number({"clip_qkv"}, 0.0) != 0.0;
}

// transformers 5.12.1 models/olmo2/configuration_olmo2.py: Olmo2Config. Norms after each branch, and over the whole
// width of q and k.
void read_olmo2_config(ConfigFields& fields, Architecture& architecture) {
  read_olmo_like(fields, architecture);
  architecture.qk_norm = true;
}

// transformers 5.12.1 models/olmo3/configuration_olmo3.py: Olmo3Config. Every fourth layer attends to everything.
void read_olmo3_config(ConfigFields& fields, Architecture& architecture) {
  read_olmo2_config(fields, architecture);
  architecture.sliding_window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  const auto types = read_layer_types(fields, architecture);
  architecture.sliding_layers = types ? *types : sliding_but_every(4, architecture.num_layers);
}

// transformers 5.12.1 models/olmo_hybrid/configuration_olmo_hybrid.py: OlmoHybridConfig. A rope dictionary without a
// base means that nothing rotates.
void read_olmo_hybrid_config(ConfigFields& fields, Architecture& architecture) {
  read_olmo2_config(fields, architecture);
  if (architecture.num_heads == 0) return;  // already an error
  architecture.max_positions = fields.count({"max_position_embeddings"}, 65536);
  const Value* rope = fields.find({"rope_parameters"});
  const Value* base = rope != nullptr ? rope->find("rope_theta") : nullptr;
  if (base != nullptr && base->is_null()) architecture.rotary_dim = 0;
  StateSpace& s = architecture.ssm;
  s.kernel = fields.count({"linear_conv_kernel_dim"}, 4);
  s.groups = fields.nullable({"linear_num_key_heads"}, std::nullopt).value_or(architecture.num_heads);
  s.heads = fields.nullable({"linear_num_value_heads"}, std::nullopt).value_or(architecture.num_heads);
  if (s.groups == 0 || s.heads % s.groups != 0) {
    fields.error("INVALID_VALUE", "linear_num_key_heads", "Heads of keys must divide those of values.");
    return;
  }
  const auto standard = static_cast<Count>(0.75 * static_cast<double>(architecture.hidden_size)) / s.groups;
  s.state = fields.nullable({"linear_key_head_dim"}, std::nullopt).value_or(standard);
  s.head_dim = fields.nullable({"linear_value_head_dim"}, std::nullopt).value_or(2 * s.state);
  s.norm = fields.flag({"linear_allow_neg_eigval"}, true);
  read_layer_kinds(fields, architecture, {"linear_attention", "full_attention"}, 4);
  std::vector<std::uint8_t>& kinds = architecture.layer_kinds;
  if (kinds.empty()) return;
  const bool stated = fields.has({"layer_types"});
  if (!stated && std::find(kinds.begin(), kinds.end(), 1) == kinds.end()) kinds.back() = 1;
  for (const std::uint8_t kind : {0, 1}) {
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) continue;
    fields.error("INVALID_VALUE", "layer_types", "OLMo-Hybrid wants layers of both kinds: its class fails without.");
    return;
  }
  fields.accept({"linear_a_log_min", "linear_a_log_max", "linear_dt_min", "linear_dt_max", "linear_dt_init_floor"});
}

// transformers 5.12.1 models/flex_olmo/configuration_flex_olmo.py: FlexOlmoConfig.
void read_flex_olmo_config(ConfigFields& fields, Architecture& architecture) {
  read_olmo2_config(fields, architecture);
  architecture.max_positions = fields.count({"max_position_embeddings"}, 4096);
  read_experts(fields, architecture, {7, 5, 0}, {"num_experts", "num_local_experts"});
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, false);
  read_aux_loss(fields, architecture);
}

constexpr const char* kModel = "transformers 5.12 models/olmo/modeling_olmo.py: OlmoModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/olmo/modeling_olmo.py: OlmoDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/olmo/modeling_olmo.py: OlmoAttention.forward";
constexpr const char* kHead = "transformers 5.12 models/olmo/modeling_olmo.py: OlmoForCausalLM.forward";
constexpr const char* kLayer2 = "transformers 5.12 models/olmo2/modeling_olmo2.py: Olmo2DecoderLayer.forward";
constexpr const char* kAttention2 = "transformers 5.12 models/olmo2/modeling_olmo2.py: Olmo2Attention.forward";
constexpr const char* kLinearLayer =
    "transformers 5.12 models/olmo_hybrid/modeling_olmo_hybrid.py: OlmoHybridLinearAttentionDecoderLayer.forward";
constexpr const char* kDeltaNet =
    "transformers 5.12 models/olmo_hybrid/modeling_olmo_hybrid.py: OlmoHybridGatedDeltaNet.forward";
constexpr const char* kHead2 = "transformers 5.12 models/olmo2/modeling_olmo2.py: Olmo2ForCausalLM.forward";

// OlmoRotaryEmbedding.forward leaves its tables in fp32; modeling_olmo3.py casts them to the activations' dtype again.
Tensor embed(Net& net) {
  return decoder_embed(net, kModel, net.arch.model_type != "olmo3");
}

// From the projections on, both generations are alike.
Tensor attend(Net& net, Tensor q_in, Tensor k_in, Tensor v_in) {
  Tensor q = split_heads(net, std::move(q_in), net.A, net.hd);
  Tensor k = split_heads(net, std::move(k_in), net.Kv, net.hd);
  const Tensor v = split_heads(net, std::move(v_in), net.Kv, net.hd);
  if (net.arch.rotary_dim > 0) {
    Rotated turned = rotate_fp32(net, q, k);
    q = std::move(turned.q);
    k = std::move(turned.k);
  }
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  if (net.arch.clip_qkv) {
    q = clamp_in_place(std::move(q));
    k = clamp_in_place(std::move(k));
    v = clamp_in_place(std::move(v));
  }
  return attend(net, std::move(q), std::move(k), std::move(v));
}

Tensor self_attention2(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention2);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = olmo2_norm(net, "self_attn.q_norm", std::move(q), false);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = olmo2_norm(net, "self_attn.k_norm", std::move(k), false);
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  return attend(net, std::move(q), std::move(k), std::move(v));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = olmo_norm(net, "input_layernorm", residual);
  h = self_attention(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = olmo_norm(net, "post_attention_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

/// Norms behind the branches, of which `feed_forward` is the second.
Tensor post_norm_layer(Net& net, Tensor hidden, Branch feed_forward) {
  Scope in(net.tape, "", kLayer2);
  Tensor residual = std::move(hidden);
  Tensor h = self_attention2(net, residual);
  h = olmo2_norm(net, "post_attention_layernorm", std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = feed_forward(net, std::move(h));
  h = olmo2_norm(net, "post_feedforward_layernorm", std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor layer2(Net& net, Tensor hidden) {
  return post_norm_layer(net, std::move(hidden), llama_mlp);
}

// FlexOlmoDecoderLayer.forward
Tensor flex_layer(Net& net, Tensor hidden) {
  return post_norm_layer(net, std::move(hidden), qwen3_moe_mlp);
}

// A projection, its own convolution over the tokens before, cut into heads.
Tensor convolved(Net& net, const Tensor& x, const char* projection, const char* convolution, Dim heads, Dim width) {
  Tensor h = net.linear(projection, x, Dim(heads.n() * width.n()));
  h = causal_convolution(net, convolution, transpose(std::move(h), 1, 2), false);
  return reshape(transpose(std::move(h), 1, 2), Shape{net.B, net.S, heads, width});
}

struct Projected {
  Tensor q, k, v;
};

// Since transformers 5.15 one convolution over all three.
Projected convolved_at_once(Net& net, const Tensor& x, Dim groups, Dim dk, Dim heads, Dim dv) {
  const Dim keys(groups.n() * dk.n()), values(heads.n() * dv.n());
  Tensor q = net.linear("linear_attn.q_proj", x, keys);
  Tensor k = net.linear("linear_attn.k_proj", x, keys);
  Tensor v = net.linear("linear_attn.v_proj", x, values);
  Tensor mixed = transpose(cat({&q, &k, &v}, -1), 1, 2);
  q.reset();
  k.reset();
  v.reset();
  mixed = causal_convolution(net, "linear_attn.conv1d", std::move(mixed), false);
  const Pieces parts = split(transpose(std::move(mixed), 1, 2), -1, {keys, keys, values});
  q = reshape(parts.part[0], Shape{net.B, net.S, groups, dk});
  k = reshape(parts.part[1], Shape{net.B, net.S, groups, dk});
  v = reshape(parts.part[2], Shape{net.B, net.S, heads, dv});
  return {std::move(q), std::move(k), std::move(v)};
}

Projected convolved_apart(Net& net, const Tensor& x, Dim groups, Dim dk, Dim heads, Dim dv) {
  Tensor q = convolved(net, x, "linear_attn.q_proj", "linear_attn.q_conv1d", groups, dk);
  Tensor k = convolved(net, x, "linear_attn.k_proj", "linear_attn.k_conv1d", groups, dk);
  Tensor v = convolved(net, x, "linear_attn.v_proj", "linear_attn.v_conv1d", heads, dv);
  return {std::move(q), std::move(k), std::move(v)};
}

Tensor delta_net(Net& net, Tensor hidden) {
  Scope in(net.tape, "linear_attn", kDeltaNet);
  const Tensor x = mask_padding(net, std::move(hidden));
  const StateSpace& s = net.arch.ssm;
  const Dim heads(s.heads), groups(s.groups), dk(s.state), dv(s.head_dim), values(s.heads * s.head_dim);
  auto [q, k, v] = net.job.framework.at_least(5, 15) ? convolved_at_once(net, x, groups, dk, heads, dv)
                                                     : convolved_apart(net, x, groups, dk, heads, dv);
  q = repeat_heads(std::move(q), s.heads / s.groups);
  k = repeat_heads(std::move(k), s.heads / s.groups);
  Tensor beta = sigmoid(net.linear("linear_attn.b_proj", x, heads));
  if (s.norm) beta = mul_scalar(std::move(beta));  // linear_allow_neg_eigval
  const Tensor g = delta_decay(net, net.linear("linear_attn.a_proj", x, heads), true);
  Tensor out = gated_delta_rule(net, q, k, v, g, beta);
  Tensor gate = net.linear("linear_attn.g_proj", x, values);
  const Dim rows(net.T.n() * heads.n());
  out = reshape(std::move(out), Shape{rows, dv});
  gate = reshape(std::move(gate), Shape{rows, dv});
  out = norm_then_gate(net, "linear_attn.o_norm", std::move(out), gate);
  out = reshape(std::move(out), Shape{net.B, net.S, values});
  return net.linear("linear_attn.o_proj", std::move(out), net.H);
}

Tensor hybrid_layer(Net& net, Tensor hidden) {
  if (net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == 1) return layer2(net, std::move(hidden));
  Scope in(net.tape, "", kLinearLayer);
  Tensor residual = std::move(hidden);
  Tensor h = delta_net(net, olmo2_norm(net, "input_layernorm", residual));
  h = add(residual, std::move(h));
  residual = h;
  h = llama_mlp(net, olmo2_norm(net, "post_attention_layernorm", std::move(h)));
  return add(std::move(residual), std::move(h));
}

Tensor norm(Net& net, Tensor hidden) {
  return olmo_norm(net, "model.norm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

Tensor norm2(Net& net, Tensor hidden) {
  return olmo2_norm(net, "model.norm", std::move(hidden));
}

Tensor head2(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead2);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

}  // namespace

const Program kOlmoProgram = {.forward = one_stack<embed, layer, norm>, .lm_head = head, .has_tp_plan = true};
const Program kOlmo2Program = {one_stack<embed, layer2, norm2>, head2};
const Program kFlexOlmoProgram = {one_stack<embed, flex_layer, norm2>, head2, kMoeForwards};
// fla's kernels for it are others than Qwen3-Next's (ShortConvolution, FusedRMSNormGated).
const Program kOlmoHybridProgram = {
    .forward = one_stack<embed, hybrid_layer, norm2>, .lm_head = head2, .fused_scan = false};

const Family kRows[] = {
    {"olmo", "Olmo", "OlmoForCausalLM", kSequenceOnly, read_olmo_config, &kOlmoProgram},
    {"olmo2", "Olmo2", "Olmo2ForCausalLM", kSequenceOnly, read_olmo2_config, &kOlmo2Program},
    {"olmo3", "Olmo3", "Olmo3ForCausalLM", kSequenceOnly, read_olmo3_config, &kOlmo2Program},
    {"flex_olmo", "FlexOlmo", "FlexOlmoForCausalLM", kLanguageModelOnly, read_flex_olmo_config, &kFlexOlmoProgram},
    {"olmo_hybrid", "OlmoHybrid", "OlmoHybridForCausalLM", kLanguageModelOnly, read_olmo_hybrid_config,
     &kOlmoHybridProgram, kModelLayers, kNoFlex},
};

extern const FamilyRows olmo_rows;
const FamilyRows olmo_rows = kRows;

}  // namespace tidemark
