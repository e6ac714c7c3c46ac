// Granite: Llama with four factors, each a multiplication of its own. HyperCLOVA X: the same, with a norm behind each
// branch.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/granite/configuration_granite.py: GraniteConfig. modeling_granite.py multiplies and
// divides by its four factors even where they are one.
void read_granite_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.embedding_scale = true;
  architecture.residual_scale = true;
  architecture.logit_scale = true;
  fields.accept({"embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"});
}

// transformers 5.12.1 models/hyperclovax/configuration_hyperclovax.py: HyperCLOVAXConfig.
void read_hyperclovax_config(ConfigFields& fields, Architecture& architecture) {
  read_granite_config(fields, architecture);
  architecture.norm_before = !fields.flag({"use_post_norm"}, true);
}

constexpr const char* kModel = "transformers 5.12 models/granite/modeling_granite.py: GraniteModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/granite/modeling_granite.py: GraniteDecoderLayer.forward";
constexpr const char* kHead = "transformers 5.12 models/granite/modeling_granite.py: GraniteForCausalLM.forward";

}  // namespace

Tensor granite_embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  embeds = mul_scalar(std::move(embeds));
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  if (net.arch.rotary_dim > 0) rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

Tensor scaled_layer(Net& net, Tensor hidden, const char* source, Norm norm, Branch attention) {
  Scope in(net.tape, "", source);
  Tensor residual = std::move(hidden);
  Tensor h = norm(net, "input_layernorm", residual);
  h = attention(net, std::move(h));
  Tensor scaled = mul_scalar(h);
  h = add(residual, std::move(scaled));
  residual = h;
  h = norm(net, "post_attention_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  scaled = mul_scalar(h);
  return add(std::move(residual), std::move(scaled));
}

namespace {

Tensor layer(Net& net, Tensor hidden) {
  return scaled_layer(net, std::move(hidden), kLayer, rms_norm, llama_attention);
}

Tensor norm(Net& net, Tensor hidden) {
  return rms_norm(net, "model.norm", std::move(hidden));
}

}  // namespace

Tensor granite_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor logits = net.lm_head("lm_head", std::move(hidden), net.V);
  return mul_scalar(std::move(logits));
}

namespace {

constexpr const char* kPeriLayer =
    "transformers 5.12 models/hyperclovax/modeling_hyperclovax.py: HyperCLOVAXDecoderLayer.forward";

Tensor peri_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kPeriLayer);
  const bool post = !net.arch.norm_before;
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "input_layernorm", residual);
  h = llama_attention(net, std::move(h));
  if (post) h = rms_norm(net, "post_norm1", std::move(h));
  Tensor scaled = mul_scalar(h);
  h = add(residual, std::move(scaled));
  residual = h;
  h = rms_norm(net, "post_attention_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  if (post) h = rms_norm(net, "post_norm2", std::move(h));
  scaled = mul_scalar(h);
  return add(std::move(residual), std::move(scaled));
}

const Program kPeriProgram = {one_stack<granite_embed, peri_layer, norm>, granite_head};

}  // namespace

const Program kGraniteProgram = {
    .forward = one_stack<granite_embed, layer, norm>, .lm_head = granite_head, .has_tp_plan = true};

const Family kRows[] = {
    {"granite", "Granite", "GraniteForCausalLM", kLanguageModelOnly, read_granite_config, &kGraniteProgram},
    {"hyperclovax", "HyperCLOVAX", "HyperCLOVAXForCausalLM", kLanguageModelOnly, read_hyperclovax_config,
     &kPeriProgram},
};

extern const FamilyRows granite_rows;
const FamilyRows granite_rows = kRows;

}  // namespace tidemark
