// Gemma 1, 2 and 3 (text) and VaultGemma: embeddings scaled, norms in fp32 around one plus the weight; from the second
// generation a norm after each branch too, from the third a norm over each head of q and k and two kinds of rotation.
#include "core/families/gemma.hpp"

#include "core/families/family.hpp"
#include "core/layers/norms.hpp"

namespace tidemark {
namespace {

// Gemma's three text configurations: heads of 256 whatever the width, tied embeddings, one bias switch for all four
// projections.
void read_gemma_like(ConfigFields& fields, Architecture& architecture, Count kv_heads) {
  read_kv_heads(fields, architecture, kv_heads);
  read_head_dim(fields, architecture, 256);
  architecture.rotary_dim = architecture.head_dim;
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.embedding_scale = true;
  architecture.bidirectional = fields.flag({"use_bidirectional_attention"}, false);
}

// transformers 5.12.1 models/gemma/configuration_gemma.py: GemmaConfig. Its code reads `hidden_act`; the
// `hidden_activation` of the published files is a leftover (both name the same fused kernel).
void read_gemma_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 8192);
  read_gemma_like(fields, architecture, 16);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu_pytorch_tanh");
  fields.accept({"hidden_activation"});
}

}  // namespace

// transformers 5.12.1 models/gemma2/configuration_gemma2.py: Gemma2Config;
// models/vaultgemma/configuration_vaultgemma.py: VaultGemmaConfig has the same keys and defaults.
void read_gemma2_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 8192);
  read_gemma_like(fields, architecture, 4);
  architecture.activation = read_activation(fields, {"hidden_activation"}, "gelu_pytorch_tanh");
  fields.accept({"hidden_act"});
  architecture.sliding_window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  const auto types = read_layer_types(fields, architecture);
  architecture.sliding_layers = types ? *types : sliding_but_every(2, architecture.num_layers);
  if (fields.find({"final_logit_softcapping"}) == nullptr || fields.has({"final_logit_softcapping"})) {
    architecture.logit_softcap = fields.number({"final_logit_softcapping"}, 30.0) != 0.0;
  }
  if (fields.find({"attn_logit_softcapping"}) == nullptr || fields.has({"attn_logit_softcapping"})) {
    architecture.attention_softcap = fields.number({"attn_logit_softcapping"}, 50.0) != 0.0;
  }
}

// transformers 5.12.1 models/gemma3/configuration_gemma3.py: Gemma3TextConfig. Google's own files leave the heads and
// the vocabulary to the class, so here their absence is no error.
void read_gemma3_text_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.intermediate_size = fields.required({"intermediate_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = fields.count({"num_attention_heads"}, 8);
  architecture.vocab_size = fields.count({"vocab_size"}, 262208);
  architecture.max_positions = fields.count({"max_position_embeddings"}, 131072);
  for (const std::string_view key : {"num_attention_heads", "vocab_size"}) {
    if (!fields.has({key})) {
      fields.note("ASSUMED_DEFAULT", key, "\"" + std::string(key) + "\" is absent; the class's default is used.");
    }
  }
  read_gemma_like(fields, architecture, 4);
  architecture.activation = read_activation(fields, {"hidden_activation"}, "gelu_pytorch_tanh");
  fields.accept({"hidden_act"});
  architecture.qk_norm = true;
  const Count pattern = fields.count({"sliding_window_pattern", "_sliding_window_pattern"}, 6);
  architecture.sliding_window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  // Gemma3TextConfig.__post_init__: half of the window lies on either side.
  if (architecture.bidirectional) architecture.sliding_window = architecture.sliding_window / 2 + 1;
  const auto types = read_layer_types(fields, architecture);
  architecture.sliding_layers = types ? *types : sliding_but_every(pattern, architecture.num_layers);
  architecture.logit_softcap = fields.number({"final_logit_softcapping"}, 0.0) != 0.0;
  architecture.attention_softcap = fields.number({"attn_logit_softcapping"}, 0.0) != 0.0;
}

namespace {

constexpr const char* kModel = "transformers 5.12 models/gemma/modeling_gemma.py: GemmaModel.forward";
constexpr const char* kEmbedding =
    "transformers 5.12 models/gemma/modeling_gemma.py: GemmaTextScaledWordEmbedding.forward";
constexpr const char* kLayer = "transformers 5.12 models/gemma/modeling_gemma.py: GemmaDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/gemma/modeling_gemma.py: GemmaAttention.forward";
constexpr const char* kHead = "transformers 5.12 models/gemma/modeling_gemma.py: GemmaForCausalLM.forward";
constexpr const char* kModel3 = "transformers 5.12 models/gemma3/modeling_gemma3.py: Gemma3TextModel.forward";
constexpr const char* kLayer2 = "transformers 5.12 models/gemma2/modeling_gemma2.py: Gemma2DecoderLayer.forward";
constexpr const char* kAttention2 = "transformers 5.12 models/gemma2/modeling_gemma2.py: Gemma2Attention.forward";
constexpr const char* kHead2 = "transformers 5.12 models/gemma2/modeling_gemma2.py: Gemma2ForCausalLM.forward";
constexpr const char* kVaultLayer =
    "transformers 5.12 models/vaultgemma/modeling_vaultgemma.py: VaultGemmaDecoderLayer.forward";
constexpr const char* kLayer3 = "transformers 5.12 models/gemma3/modeling_gemma3.py: Gemma3DecoderLayer.forward";
constexpr const char* kAttention3 = "transformers 5.12 models/gemma3/modeling_gemma3.py: Gemma3Attention.forward";

Tensor scaled(Net& net, Tensor embeds) {
  net.tape.buffer("model.embed_tokens.embed_scale", 4);
  // embed_scale.to(weight.dtype()), a number on the device
  Tensor scale = net.tape.allocate(Shape{}, embeds.dtype(), "to");
  return mul(std::move(embeds), std::move(scale));
}

Tensor scaled_embedding(Net& net) {
  Scope in(net.tape, "model.embed_tokens", kEmbedding);
  return net.token_embedding("model.embed_tokens", net.H, scaled);
}

// Gemma3Model.forward, PaliGemmaModel.forward: tokens of a picture attend to each other, by masks that are always there
// in training and differ by sample (block_sequence_ids).
MaskOptions masks(const Net& net) {
  const bool pictures = net.merge != nullptr && net.job.images_per_sample > 0;
  return {false, pictures, pictures || net.arch.bidirectional};
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = scaled_embedding(net);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds, net.merge == nullptr ? MaskOptions{} : masks(net));
  rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

Tensor embed3(Net& net) {
  Scope in(net.tape, "model", kModel3);
  Tensor embeds = scaled_embedding(net);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds, masks(net));
  // One pair of tables for sliding layers, another for the rest: all stay until the forward ends.
  rotary_tables_by_kind(net, embeds.dtype());
  return embeds;
}

Tensor self_attention(Net& net, Tensor hidden, const char* source, bool head_norms) {
  Scope in(net.tape, "self_attn", source);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  qkv_at_once(net, x, bias);
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = split_heads(net, std::move(q), net.A, net.hd);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = split_heads(net, std::move(k), net.Kv, net.hd);
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  if (head_norms) {
    q = gemma_norm(net, "self_attn.q_norm", std::move(q));
    k = gemma_norm(net, "self_attn.k_norm", std::move(k));
  }
  rotate_both(net, q, k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  options.softcap = net.arch.attention_softcap;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor plain_layer(Net& net, Tensor hidden, const char* source, const char* second_norm) {
  Scope in(net.tape, "", source);
  Tensor residual = std::move(hidden);
  Tensor h = gemma_norm(net, "input_layernorm", residual, true);
  h = self_attention(net, std::move(h), kAttention, false);
  h = add(residual, std::move(h));
  residual = h;
  h = gemma_norm(net, second_norm, std::move(h), true);
  h = llama_mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor layer(Net& net, Tensor hidden) {
  return plain_layer(net, std::move(hidden), kLayer, "post_attention_layernorm");
}

// VaultGemma: Gemma 2 without the norms behind its branches.
Tensor vault_layer(Net& net, Tensor hidden) {
  return plain_layer(net, std::move(hidden), kVaultLayer, "pre_feedforward_layernorm");
}

Tensor sandwiched_layer(Net& net, Tensor hidden, const char* attention_source, bool head_norms) {
  Tensor residual = std::move(hidden);
  Tensor h = gemma_norm(net, "input_layernorm", residual);
  h = self_attention(net, std::move(h), attention_source, head_norms);
  h = gemma_norm(net, "post_attention_layernorm", std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = gemma_norm(net, "pre_feedforward_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  h = gemma_norm(net, "post_feedforward_layernorm", std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor layer2(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer2);
  return sandwiched_layer(net, std::move(hidden), kAttention2, false);
}

Tensor layer3(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer3);
  return sandwiched_layer(net, std::move(hidden), kAttention3, true);
}

Tensor norm(Net& net, Tensor hidden) {
  return gemma_norm(net, "model.norm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

}  // namespace

Tensor gemma_softcap(const Net& net, Tensor logits_in) {
  Tensor logits = std::move(logits_in);
  if (!net.arch.logit_softcap) return logits;
  logits = mul_scalar(std::move(logits));
  logits = tanh(std::move(logits));
  return mul_scalar(std::move(logits));
}

namespace {

Tensor softcapped_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead2);
  return gemma_softcap(net, net.lm_head("lm_head", std::move(hidden), net.V));
}

}  // namespace

const Program kGemmaProgram = {.forward = one_stack<embed, layer, norm>, .lm_head = head, .has_tp_plan = true};
const Program kGemma2Program = {
    .forward = one_stack<embed, layer2, norm>, .lm_head = softcapped_head, .has_tp_plan = true};
const Program kVaultGemmaProgram = {
    .forward = one_stack<embed, vault_layer, norm>, .lm_head = softcapped_head, .has_tp_plan = true};
const Program kGemma3Program = {
    .forward = one_stack<embed3, layer3, norm>, .lm_head = softcapped_head, .has_tp_plan = true};

const Family kRows[] = {
    {"gemma", "Gemma", "GemmaForCausalLM", kSequenceAndToken, read_gemma_config, &kGemmaProgram},
    {"gemma2", "Gemma2", "Gemma2ForCausalLM", kSequenceAndToken, read_gemma2_config, &kGemma2Program},
    {"vaultgemma", "VaultGemma", "VaultGemmaForCausalLM", kLanguageModelOnly, read_gemma2_config, &kVaultGemmaProgram},
    {"gemma3_text",
     "Gemma3",
     "Gemma3ForCausalLM",
     kGemma3Classes,
     read_gemma3_text_config,
     &kGemma3Program,
     kModelLayers,
     {.no_split = NoSplit::kAbsentToo, .named_anew_since = 15}},
};

extern const FamilyRows gemma_rows;
const FamilyRows gemma_rows = kRows;

}  // namespace tidemark
