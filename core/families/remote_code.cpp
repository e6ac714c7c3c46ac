// InternLM2, InternLM3 and Baichuan: their modelling files live beside the weights on the Hugging Face Hub, not in
// transformers. Read from public copies of internlm/internlm2-7b modeling_internlm2.py, known of
// internlm/internlm3-8b-instruct modeling_internlm3.py (Llama's, with two switches for biases), and read of
// baichuan-inc/Baichuan2-7B-Base modeling_baichuan.py; no oracle record covers them.
#include <optional>

#include "core/families/family.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

// internlm/internlm2-7b configuration_internlm2.py: InternLM2Config; modeling_internlm2.py: one fused `wqkv`, one
// switch `bias` for the attention projections only.
void read_internlm2_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  derive_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

// internlm/internlm3-8b-instruct configuration_internlm3.py: InternLM3Config. `qkv_bias` is for q, k and v, `bias` for
// the rest.
void read_internlm3_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 32768);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"qkv_bias"}, false);
  architecture.attention_out_bias = fields.flag({"bias"}, false);
  architecture.mlp_bias = architecture.attention_out_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

// baichuan-inc/Baichuan2-7B-Base and -13B-Base configuration_baichuan.py, modeling_baichuan.py: one fused `W_pack`. The
// 13B models have the same `model_type` and code of their own, with alibi instead of rotation; they are recognised by
// their width. The second generation normalises the head's weight (NormHead); it has the larger vocabulary.
void read_baichuan_config(ConfigFields& fields, Architecture& architecture) {
  constexpr Count kWidthWithAlibi = 5120;
  constexpr Count kFirstVocabulary = 64000;
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.intermediate_size = fields.required({"intermediate_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = fields.required({"num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings", "model_max_length"}, 4096);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.alibi = architecture.hidden_size == kWidthWithAlibi;
  architecture.rotary_dim = architecture.alibi ? 0 : architecture.head_dim;
  architecture.norm_head = architecture.vocab_size != kFirstVocabulary;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  fields.accept({"_from_model_config"});
}

constexpr const char* kInternLayer = "internlm2-7b modeling_internlm2.py: InternLM2DecoderLayer.forward";
constexpr const char* kInternAttention = "internlm2-7b modeling_internlm2.py: InternLM2Attention.forward";
constexpr const char* kInternModel = "internlm2-7b modeling_internlm2.py: InternLM2Model.forward";
constexpr const char* kInternMlp = "internlm2-7b modeling_internlm2.py: InternLM2MLP.forward";
constexpr const char* kInternHead = "internlm2-7b modeling_internlm2.py: InternLM2ForCausalLM.forward";
constexpr const char* kIntern3Layer = "internlm3-8b-instruct modeling_internlm3.py: InternLM3DecoderLayer.forward";
constexpr const char* kBaichuanLayer = "Baichuan2-7B-Base modeling_baichuan.py: DecoderLayer.forward";
constexpr const char* kBaichuanAttention = "Baichuan2-7B-Base modeling_baichuan.py: Attention.forward";
constexpr const char* kBaichuanHead = "Baichuan2-7B-Base modeling_baichuan.py: NormHead.forward";

Tensor intern_embed(Net& net) {
  Scope in(net.tape, "model", kInternModel);
  Tensor embeds = net.token_embedding("model.tok_embeddings", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

// One matrix for q, k, v, ordered by groups: each group's queries, then its key, then its value.
Tensor intern_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "attention", kInternAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  const Count times = net.A.n() / net.Kv.n();
  Tensor qkv = net.linear("attention.wqkv", x, Dim(net.Q.n() + 2 * net.K.n()), bias);
  qkv = view(std::move(qkv), Shape{net.B, net.S, net.Kv, Dim(times + 2), net.hd});
  Tensor q = narrow(qkv, 3, 0, Dim(times));
  q = reshape(std::move(q), Shape{net.B, net.S, net.A, net.hd});
  q = transpose(std::move(q), 1, 2);
  Tensor k = select(qkv, 3);
  k = transpose(std::move(k), 1, 2);
  Tensor v = select(qkv, 3);
  v = transpose(std::move(v), 1, 2);
  Tensor q_embed = rotate(net, q);
  Tensor k_embed = rotate(net, k);
  q = std::move(q_embed);
  k = std::move(k_embed);
  k = repeat_kv(std::move(k), times);
  v = repeat_kv(std::move(v), times);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.has_groups = false;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("attention.wo", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor intern_mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "feed_forward", kInternMlp);
  const Tensor x = std::move(hidden);
  Tensor gate = net.linear("feed_forward.w1", x, net.F);
  gate = activate(net.arch.activation, std::move(gate));
  Tensor up = net.linear("feed_forward.w3", x, net.F);
  gate = mul(std::move(gate), std::move(up));
  return net.linear("feed_forward.w2", std::move(gate), net.H);
}

Tensor intern_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kInternLayer);
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "attention_norm", residual);
  h = intern_attention(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = rms_norm(net, "ffn_norm", std::move(h));
  h = intern_mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor intern3_layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kIntern3Layer, llama_attention, llama_mlp);
}

Tensor intern_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kInternHead);
  return net.lm_head("output", std::move(hidden), net.V);
}

// W_pack's output is taken apart as views; the 13B models add alibi to the scores instead of rotating.
Tensor baichuan_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kBaichuanAttention);
  const Tensor x = std::move(hidden);
  Tensor packed = net.linear("self_attn.W_pack", x, Dim(3 * net.H.n()));
  Tensor q = narrow(packed, -1, 0, net.Q);
  Tensor k = narrow(packed, -1, net.Q.n(), net.K);
  Tensor v = narrow(packed, -1, net.Q.n() + net.K.n(), net.K);
  packed.reset();
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.Kv, net.hd);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.has_groups = false;
  if (!net.arch.alibi) {
    Rotated turned = rotate_in_fp32(net, q, k);
    q = std::move(turned.q);
    k = std::move(turned.k);
  }
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H);
}

Tensor baichuan_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBaichuanLayer);
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "input_layernorm", residual);
  h = baichuan_attention(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = rms_norm(net, "post_attention_layernorm", std::move(h));
  h = llama_mlp(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

// torch.nn.functional.normalize(weight): the weight over its rows' norms, one more [V, H] each step.
Tensor baichuan_head(Net& net, Tensor hidden) {
  if (!net.arch.norm_head) return llama_head(net, std::move(hidden));
  Scope in(net.tape, "lm_head", kBaichuanHead);
  Tensor weight = net.parameter("lm_head", "weight", Shape{net.V, net.H});
  Tensor norms = net.tape.allocate(Shape{net.V, Dim(1)}, weight.dtype(), "linalg_vector_norm");
  Tensor expanded = expand(norms, Shape{net.V, net.H});
  weight = div(std::move(weight), std::move(expanded));
  return net.logits(std::move(hidden), std::move(weight));
}

}  // namespace

// INTERNLM2_ATTENTION_CLASSES: eager, flash_attention_2, sdpa. Baichuan's file calls scaled_dot_product_attention
// alone.
const Program kInternLm2Program = {.forward = one_stack<intern_embed, intern_layer, llama_norm>,
                                   .lm_head = intern_head,
                                   .attention = {.flash_attention_3 = false}};
const Program kInternLm3Program = {one_stack<llama_embed, intern3_layer, llama_norm>, llama_head};
const Program kBaichuanProgram = {.forward = one_stack<llama_embed, baichuan_layer, llama_norm>,
                                  .lm_head = baichuan_head,
                                  .attention = {.flash_attention_2 = false, .flash_attention_3 = false}};

const Family kRows[] = {
    {"internlm2", "InternLM2", "InternLM2ForCausalLM", kLanguageModelOnly, read_internlm2_config, &kInternLm2Program},
    {"internlm3", "InternLM3", "InternLM3ForCausalLM", kLanguageModelOnly, read_internlm3_config, &kInternLm3Program},
    {"baichuan", "Baichuan", "BaichuanForCausalLM", kLanguageModelOnly, read_baichuan_config, &kBaichuanProgram},
};

extern const FamilyRows remote_code_rows;
const FamilyRows remote_code_rows = kRows;

}  // namespace tidemark
