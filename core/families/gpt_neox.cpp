// GPT-NeoX (Pythia): one fused projection, a part of each head rotates, attention and feed-forward side by side.
#include "core/families/family.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/gpt_neox/configuration_gpt_neox.py: GPTNeoXConfig (Pythia, NeoX-20B). A quarter of each
// head rotates.
void read_gpt_neox_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  const double rotary_share = fields.number({"rotary_pct"}, 0.25);
  read_rotary_factor(fields, architecture, rotary_share);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  architecture.attention_bias = fields.flag({"attention_bias"}, true);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.mlp_bias = true;
  architecture.norm_bias = true;
  architecture.parallel_residual = fields.flag({"use_parallel_residual"}, true);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  // One probability for the embeddings and for what both branches add (modeling_gpt_neox.py).
  architecture.residual_dropout = fields.probability({"hidden_dropout"}, 0.0);
  architecture.embedding_dropout = architecture.residual_dropout;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

constexpr const char* kModel = "transformers 5.12 models/gpt_neox/modeling_gpt_neox.py: GPTNeoXModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/gpt_neox/modeling_gpt_neox.py: GPTNeoXLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/gpt_neox/modeling_gpt_neox.py: GPTNeoXAttention.forward";
constexpr const char* kRotate = "transformers 5.12 models/gpt_neox/modeling_gpt_neox.py: apply_rotary_pos_emb";
constexpr const char* kMlp = "transformers 5.12 models/gpt_neox/modeling_gpt_neox.py: GPTNeoXMLP.forward";
constexpr const char* kHead = "transformers 5.12 models/gpt_neox/modeling_gpt_neox.py: GPTNeoXForCausalLM.forward";

constexpr DecoderHeads kClasses = {
    .sequence = "transformers 5.12 models/gpt_neox/modeling_gpt_neox.py: GPTNeoXForSequenceClassification.forward",
    .token = "transformers 5.12 models/gpt_neox/modeling_gpt_neox.py: GPTNeoXForTokenClassification.forward",
    .span = "transformers 5.12 models/gpt_neox/modeling_gpt_neox.py: GPTNeoXForQuestionAnswering.forward",
    .token_module = "classifier"};

Tensor attention_block(Net& net, Tensor hidden) {
  Scope in(net.tape, "attention", kAttention);
  const Tensor x = std::move(hidden);
  Tensor qkv = net.linear("attention.query_key_value", x, Dim(3 * net.H.n()), net.arch.attention_bias);
  qkv = view(std::move(qkv), Shape{net.B, net.S, net.A, Dim(3 * net.hd.n())});
  qkv = transpose(std::move(qkv), 1, 2);
  Pieces pieces = split(qkv, 3, {net.hd, net.hd, net.hd});
  Tensor q = std::move(pieces.part[0]);
  Tensor k = std::move(pieces.part[1]);
  const Tensor v = std::move(pieces.part[2]);
  {
    Scope rotating(net.tape, "attention", kRotate);
    const Dim rotating_dims(net.arch.rotary_dim), rest(net.hd.n() - net.arch.rotary_dim);
    const Tensor q_rot = narrow(q, -1, 0, rotating_dims);
    const Tensor q_pass = narrow(q, -1, rotating_dims.n(), rest);
    const Tensor k_rot = narrow(k, -1, 0, rotating_dims);
    const Tensor k_pass = narrow(k, -1, rotating_dims.n(), rest);
    Tensor q_embed = rotate(net, q_rot);
    Tensor k_embed = rotate(net, k_rot);
    q_embed = cat({&q_embed, &q_pass}, -1);
    k_embed = cat({&k_embed, &k_pass}, -1);
    q = std::move(q_embed);
    k = std::move(k_embed);
  }
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  options.has_groups = false;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("attention.dense", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  Tensor h = net.linear("mlp.dense_h_to_4h", x, net.F, true);
  {
    Scope act(net.tape, "mlp.act", kMlp);
    h = activate(net.arch.activation, std::move(h));
  }
  return net.linear("mlp.dense_4h_to_h", std::move(h), net.H, true);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor h = std::move(hidden);
  const double p = net.arch.residual_dropout;
  Tensor normed = net.layer_norm("input_layernorm", h);
  Tensor attn_output = attention_block(net, std::move(normed));
  attn_output = dropout(std::move(attn_output), p);
  if (!net.arch.parallel_residual) attn_output = add(std::move(attn_output), h);
  normed = net.layer_norm("post_attention_layernorm", net.arch.parallel_residual ? h : attn_output);
  Tensor mlp_output = mlp(net, std::move(normed));
  mlp_output = dropout(std::move(mlp_output), p);
  Tensor sum = add(mlp_output, attn_output);
  if (!net.arch.parallel_residual) return sum;
  return add(std::move(sum), h);
}

Tensor embed(Net& net) {
  Scope in(net.tape, "gpt_neox", kModel);
  Tensor embeds = net.token_embedding("gpt_neox.embed_in", net.H);
  make_position_ids(net);
  make_causal_masks(net, embeds);
  net.model_locals = {embeds};
  Tensor h = dropout(std::move(embeds), net.arch.embedding_dropout);
  rotary_tables(net, h.dtype(), net.arch.rotary_dim);
  return h;
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("gpt_neox.final_layer_norm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("embed_out", std::move(hidden), net.V);
}

}  // namespace

const Program kGptNeoXProgram = {one_stack<embed, layer, norm>, head, kDecoderForwards, OwnLoss::kModelDtype, kClasses};

constexpr ClassFacts kFacts = {.norms_first = true};

const Family kRows[] = {
    {"gpt_neox", "GPTNeoX", "GPTNeoXForCausalLM", kFourHeads, read_gpt_neox_config, &kGptNeoXProgram, "gpt_neox.layers",
     kFacts},
};

extern const FamilyRows gpt_neox_rows;
const FamilyRows gpt_neox_rows = kRows;

}  // namespace tidemark
