// Falcon-H1: Mamba-2 and attention side by side in every layer, all of it scaled.
#include "core/families/family.hpp"
#include "core/layers/ssm.hpp"
#include "core/model/config_ssm.hpp"

namespace tidemark {
namespace {

// FalconH1Config.__post_init__: how the mixer is cut.
void read_mixer(ConfigFields& fields, Architecture& architecture) {
  StateSpace& s = architecture.ssm;
  const Count expand = fields.count({"mamba_expand"}, 2);
  s.width = fields.nullable({"mamba_d_ssm"}, 1024).value_or(expand * architecture.hidden_size);
  read_mamba2_sizes(fields, s);
  s.norm = fields.flag({"mamba_rms_norm"}, false);
  if (s.heads * s.head_dim != s.width) {
    fields.error("INVALID_VALUE", "mamba_n_heads", "The heads' columns do not add up to the mixer's width.");
  }
  if (fields.flag({"projectors_bias"}, false) != s.bias || (s.norm && fields.flag({"mamba_norm_before_gate"}, true))) {
    fields.error("INVALID_VALUE", "projectors_bias",
                 "Biases on one projection of the mixer alone, and a norm before its gate, are not modelled.");
  }
  fields.accept({"mamba_norm_before_gate", "mamba_use_mlp"});
}

// transformers 5.12.1 models/falcon_h1/configuration_falcon_h1.py: FalconH1Config.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 8192);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  read_mixer(fields, architecture);
  fields.accept({"lm_head_multiplier", "embedding_multiplier", "mlp_multipliers", "key_multiplier",
                 "attention_out_multiplier", "attention_in_multiplier", "ssm_multipliers", "ssm_in_multiplier",
                 "ssm_out_multiplier", "time_step_min", "time_step_max", "time_step_limit", "time_step_floor",
                 "num_logits_to_keep", "mlp_expansion_factor"});
}

constexpr const char* kModel = "transformers 5.12 models/falcon_h1/modeling_falcon_h1.py: FalconH1Model.forward";
constexpr const char* kLayer = "transformers 5.12 models/falcon_h1/modeling_falcon_h1.py: FalconH1DecoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/falcon_h1/modeling_falcon_h1.py: FalconH1Attention.forward";
constexpr const char* kMlp = "transformers 5.12 models/falcon_h1/modeling_falcon_h1.py: FalconH1MLP.forward";

// The torch path masks twice: FalconH1Mixer.forward does, and torch_forward.
Tensor scaled_input(Net& net, Tensor hidden) {
  if (net.job.torch_scan) hidden = mask_padding(net, std::move(hidden));
  return mul_scalar(std::move(hidden));
}

// projected_states * self.mup_vector
Tensor scaled_projection(Net& net, Tensor projected) {
  const Dtype dtype = net.buffer_dtype(net.weight_dtype(1));
  const Dim width = projected.dim(-1);
  net.tape.buffer("mamba.mup_vector", width.n() * size_of(dtype));
  return mul(std::move(projected), net.tape.part_of_buffer(Shape{Dim(1), Dim(1), width}, dtype));
}

Tensor gated(Net& net, const char* name, Tensor y, Tensor gate) {
  if (net.arch.ssm.norm) return gate_then_norm(net, name, std::move(y), std::move(gate));
  Tensor open = silu(std::move(gate));
  return mul(std::move(y), std::move(open));
}

constexpr Mamba2Form kMixer = {
    .module = "mamba",
    .in_proj = "mamba.in_proj",
    .conv1d = "mamba.conv1d",
    .norm = "mamba.norm",
    .out_proj = "mamba.out_proj",
    .source = "transformers 5.12 models/falcon_h1/modeling_falcon_h1.py: FalconH1Mixer.torch_forward",
    .scale_input = scaled_input,
    .scale_projected = scaled_projection,
    .gated_norm = gated};

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "feed_forward", kMlp);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.mlp_bias;
  Tensor up = net.linear("feed_forward.up_proj", x, net.F, bias);
  Tensor gate = mul_scalar(net.linear("feed_forward.gate_proj", x, net.F, bias));
  gate = activate(net.arch.activation, std::move(gate));
  up = mul(std::move(up), std::move(gate));
  return mul_scalar(net.linear("feed_forward.down_proj", std::move(up), net.H, bias));
}

Tensor self_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, [](Net& n, Tensor& q, Tensor& k) {
    k = mul_scalar(std::move(k));
    rotate_both(n, q, k);
  });
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "input_layernorm", residual);
  Tensor mamba = mamba2_mixer(net, kMixer, h);
  mamba = mul_scalar(std::move(mamba));
  Tensor attended = self_attention(net, mul_scalar(h));
  attended = mul_scalar(std::move(attended));
  h = add(mamba, attended);
  h = add(residual, std::move(h));
  residual = h;
  h = rms_norm(net, "pre_ff_layernorm", std::move(h));
  h = mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = mul_scalar(net.token_embedding("model.embed_tokens", net.H));
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

// The last layer's outputs have a name until the model returns.
Tensor norm(Net& net, Tensor hidden) {
  net.model_locals.push_back(hidden);
  return rms_norm(net, "model.final_layernorm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Tensor logits = llama_head(net, std::move(hidden));
  return net.fuse_loss ? logits : mul_scalar(std::move(logits));
}

const Program kProgram = {one_stack<embed, layer, norm>, head};

}  // namespace

constexpr ClassFacts kFacts = {.flex_attention = false, .layer_first = "feed_forward.gate feed_forward"};

const Family kRows[] = {
    {"falcon_h1", "FalconH1", "FalconH1ForCausalLM", kLanguageModelOnly, read_config, &kProgram, kModelLayers, kFacts},
};

extern const FamilyRows falcon_h1_rows;
const FamilyRows falcon_h1_rows = kRows;

}  // namespace tidemark
