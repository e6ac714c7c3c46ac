// Nemotron-H: each layer is one thing, Mamba-2, attention, a feed-forward or experts.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/layers/ssm.hpp"
#include "core/model/config_experts.hpp"
#include "core/model/config_ssm.hpp"

namespace tidemark {
namespace {

enum Kind : std::uint8_t { kMamba, kExperts, kAttends, kFeedForward };

// `hybrid_override_pattern`: a letter per layer.
void read_pattern(ConfigFields& fields, Architecture& architecture) {
  const std::string pattern = fields.text({"hybrid_override_pattern"}, "");
  constexpr std::string_view kLetters = "ME*-";
  if (pattern.empty()) {
    return read_layer_kinds(fields, architecture, {"mamba", "moe", "attention", "mlp"}, 1);
  }
  if (static_cast<Count>(pattern.size()) != architecture.num_layers ||
      pattern.find_first_not_of(kLetters) != std::string::npos) {
    fields.error("INVALID_VALUE", "hybrid_override_pattern", "One of M, E, * and - is needed for each layer.");
    return;
  }
  for (const char letter : pattern) {
    architecture.layer_kinds.push_back(static_cast<std::uint8_t>(kLetters.find(letter)));
  }
}

void read_mixer(ConfigFields& fields, Architecture& architecture) {
  StateSpace& s = architecture.ssm;
  s.heads = fields.count({"mamba_num_heads"}, 128);
  s.head_dim = fields.count({"mamba_head_dim"}, 64);
  s.width = s.heads * s.head_dim;
  s.groups = fields.count({"mamba_n_groups", "n_groups"}, 8);
  s.state = fields.count({"ssm_state_size"}, 128);
  s.kernel = fields.count({"mamba_d_conv", "conv_kernel"}, 4);
  s.chunk = fields.count({"mamba_chunk_size", "chunk_size"}, 128);
  s.conv_bias = fields.flag({"mamba_conv_bias", "use_conv_bias"}, true);
  s.bias = fields.flag({"use_bias"}, false);
  fields.accept({"expand", "mamba_expand", "mamba_hidden_act", "mamba_proj_bias", "mamba_ssm_cache_dtype",
                 "time_step_min", "time_step_max", "time_step_limit", "time_step_floor", "mamba_dt_min", "mamba_dt_max",
                 "mamba_dt_limit", "mamba_dt_init_floor", "use_mamba_kernels"});
}

// transformers 5.12.1 models/nemotron_h/configuration_nemotron_h.py: NemotronHConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture, 128);
  architecture.positions_by_token = false;
  architecture.activation = read_activation(fields, {"mlp_hidden_act"}, "relu2");
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = false;  // NemotronHForCausalLM: _tied_weights_keys = {}
  fields.accept({"tie_word_embeddings"});
  read_pattern(fields, architecture);
  read_mixer(fields, architecture);
  read_routed_experts(fields, architecture, {8, 2, 7688}, 1);
  architecture.experts.shared_width = fields.count({"moe_shared_expert_intermediate_size"}, 7688);
  read_expert_groups(fields, architecture, 1, 1);
  architecture.experts.normalised = fields.flag({"norm_topk_prob"}, true);
  architecture.experts.latent = fields.nullable({"moe_latent_size"}, std::nullopt).value_or(0);
  fields.accept({"attention_bias", "layer_norm_epsilon", "residual_in_fp32", "hidden_dropout", "sliding_window",
                 "rescale_prenorm_residual", "num_logits_to_keep", "moe_shared_expert_overlap",
                 "num_nextn_predict_layers", "mtp_layers_block_type", "mtp_hybrid_override_pattern",
                 "partial_rotary_factor"});
}

constexpr const char* kModel = "transformers 5.12 models/nemotron_h/modeling_nemotron_h.py: NemotronHModel.forward";
constexpr const char* kBlock = "transformers 5.12 models/nemotron_h/modeling_nemotron_h.py: NemotronHBlock.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/nemotron_h/modeling_nemotron_h.py: NemotronHAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/nemotron_h/modeling_nemotron_h.py: NemotronHMLP.forward";
constexpr const char* kMoe = "transformers 5.12 models/nemotron_h/modeling_nemotron_h.py: NemotronHMoE.forward";
constexpr ExpertForm kForm = {
    .module = "mixer.experts",
    .source = "transformers 5.12 models/nemotron_h/modeling_nemotron_h.py: NemotronHExperts.forward",
    .gated = false,
    .act = "mixer.experts.act_fn"};
constexpr Mamba2Form kMixer = {
    .source = "transformers 5.12 models/nemotron_h/modeling_nemotron_h.py: NemotronHMamba2Mixer.torch_forward",
    .gated_norm = gate_then_norm};

// No positions: states tell them.
Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "mixer", kAttention);
  const Tensor x = std::move(hidden);
  const Tensor q = split_heads(net, net.linear("mixer.q_proj", x, net.Q), net.A, net.hd);
  const Tensor k = split_heads(net, net.linear("mixer.k_proj", x, net.K), net.Kv, net.hd);
  const Tensor v = split_heads(net, net.linear("mixer.v_proj", x, net.K), net.Kv, net.hd);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("mixer.o_proj", std::move(out), net.H);
}

Tensor feed_forward(Net& net, const char* scope, const char* up, const char* down, Tensor x, Dim width) {
  Scope in(net.tape, scope, kMlp);
  const bool bias = net.arch.mlp_bias;
  Tensor h = net.linear(up, std::move(x), width, bias);
  h = activate(net.arch.activation, std::move(h));
  return net.linear(down, std::move(h), net.H, bias);
}

Tensor experts(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "mixer", kMoe);
  const Tensor hidden = std::move(hidden_in);
  const Tensor logits = fp32_router(net, "mixer.gate", kMoe, as_tokens(net, hidden), false);
  net.tape.buffer("mixer.gate.e_score_correction_bias", 4 * net.arch.experts.count);
  const Routing routing = deepseek_v3_routing(net, logits);
  Tensor rows = as_tokens(net, hidden);
  const Dim latent(net.arch.experts.latent);
  const bool bias = net.arch.mlp_bias;
  if (latent.n() > 0) rows = net.linear("mixer.fc1_latent_proj", std::move(rows), latent, bias);
  Tensor out = run_experts(net, kForm, std::move(rows), routing.indices, routing.weights);
  if (latent.n() > 0) {
    const Tensor projected = std::move(out);
    out = net.linear("mixer.fc2_latent_proj", projected, net.H, bias);
  }
  out = as_sequences(net, std::move(out));
  const Tensor shared = feed_forward(net, "mixer.shared_experts", "mixer.shared_experts.up_proj",
                                     "mixer.shared_experts.down_proj", hidden, Dim(net.arch.experts.shared_width));
  return add(std::move(out), shared);
}

Tensor mixer(Net& net, Tensor hidden) {
  switch (net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)]) {
    case kMamba:
      return mamba2_mixer(net, kMixer, std::move(hidden));
    case kExperts:
      return experts(net, std::move(hidden));
    case kAttends:
      return self_attention(net, std::move(hidden));
    default:
      return feed_forward(net, "mixer", "mixer.up_proj", "mixer.down_proj", std::move(hidden), net.F);
  }
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBlock);
  const Tensor residual = std::move(hidden);
  Tensor h = to(residual, net.weight_dtype(1));
  h = rms_norm(net, "norm", std::move(h));
  h = mixer(net, std::move(h));
  return add(residual, std::move(h));
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embeddings", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  return embeds;
}

Tensor norm(Net& net, Tensor hidden) {
  return rms_norm(net, "model.norm_f", std::move(hidden));
}

constexpr HeadForward kHeads[] = {{Head::kCausalLm, wide_causal_lm}, {Head::kNone, body_alone}};

const Program kProgram = {one_stack<embed, layer, norm>, llama_head, kHeads};

}  // namespace

const Family kRows[] = {
    {"nemotron_h", "NemotronH", "NemotronHForCausalLM", kLanguageModelOnly, read_config, &kProgram},
};

extern const FamilyRows nemotron_h_rows;
const FamilyRows nemotron_h_rows = kRows;

}  // namespace tidemark
