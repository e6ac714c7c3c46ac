// MPT: alibi added to the scores, one fused projection, no biases. Its attention is always its own.
#include "core/families/family.hpp"
#include "core/layers/kv_cache.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/mpt/configuration_mpt.py: MptConfig, MptAttentionConfig. modeling_mpt.py has no bias
// anywhere, a feed-forward of four times the width and always alibi, whatever the file says; its one dropout is
// `attn_config.attn_pdrop`.
void read_mpt_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"d_model", "hidden_size"});
  architecture.num_layers = fields.required({"n_layers", "num_hidden_layers"});
  architecture.num_heads = fields.required({"n_heads", "num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_seq_len"}, 2048);
  architecture.intermediate_size = 4 * architecture.hidden_size;
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.activation = Activation::kGelu;
  architecture.alibi = true;
  architecture.norm_bias = false;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);

  if (fields.number({"expansion_ratio"}, 4.0) != 4.0) {
    fields.warning("INVALID_VALUE", "expansion_ratio", "transformers' MPT ignores \"expansion_ratio\" and uses 4.");
  }
  if (!fields.flag({"no_bias"}, true)) {
    fields.warning("INVALID_VALUE", "no_bias", "transformers' MPT has no biases whatever \"no_bias\" says.");
  }
  fields.accept({"attn_impl", "emb_pdrop", "embedding_fraction", "init_config", "init_device", "learned_pos_emb",
                 "logit_scale", "norm_type", "resid_pdrop", "tokenizer_name", "verbose", "fc_type", "ffn_config",
                 "use_pad_tok_in_ffn"});

  const Value* attention = fields.find({"attn_config"});
  if (attention == nullptr || attention->is_null()) return;
  if (!attention->is_object()) {
    fields.error("WRONG_TYPE", "attn_config", "\"attn_config\" must be an object.");
    return;
  }
  ConfigFields inner(*attention, fields.path() + "/attn_config", fields.issues());
  const double dropout = inner.probability({"attn_pdrop"}, 0.0);
  architecture.attention_dropout = dropout;
  architecture.residual_dropout = dropout;
  architecture.clip_qkv = inner.number({"clip_qkv"}, 0.0) != 0.0;
  if (inner.text({"attn_type"}, "multihead_attention") != "multihead_attention") {
    inner.error("INVALID_VALUE", "attn_type", "transformers' MPT has multi-head attention only.",
                "multihead_attention");
  }
}

constexpr const char* kModel = "transformers 5.12 models/mpt/modeling_mpt.py: MptModel.forward";
constexpr const char* kBlock = "transformers 5.12 models/mpt/modeling_mpt.py: MptBlock.forward";
constexpr const char* kAttention = "transformers 5.12 models/mpt/modeling_mpt.py: MptAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/mpt/modeling_mpt.py: MptMLP.forward";
constexpr const char* kHead = "transformers 5.12 models/mpt/modeling_mpt.py: MptForCausalLM.forward";

constexpr DecoderHeads kClasses = {
    .sequence = "transformers 5.12 models/mpt/modeling_mpt.py: MptForSequenceClassification.forward",
    .token = "transformers 5.12 models/mpt/modeling_mpt.py: MptForTokenClassification.forward",
    .span = "transformers 5.12 models/mpt/modeling_mpt.py: MptForQuestionAnswering.forward",
    .token_module = "classifier",
    .token_loss_fp32 = false};

Tensor attn(Net& net, Tensor hidden) {
  Scope in(net.tape, "attn", kAttention);
  net.attention_kernel = "eager";
  const Tensor x = std::move(hidden);
  Tensor mixed_qkv = net.linear("attn.Wqkv", x, Dim(3 * net.H.n()));
  if (net.arch.clip_qkv) mixed_qkv = clamp(std::move(mixed_qkv));
  Pieces qkv = split(mixed_qkv, 2, {net.H, net.H, net.H});
  const Tensor q = split_heads(net, std::move(qkv.part[0]), net.A, net.hd);
  Tensor k = split_heads(net, std::move(qkv.part[1]), net.A, net.hd);
  Tensor v = split_heads(net, std::move(qkv.part[2]), net.A, net.hd);
  keep_keys(net, k, v, true);
  Tensor kt = transpose(k, -1, -2);
  Tensor scores = matmul(q, std::move(kt));
  scores = mul_scalar(std::move(scores));
  Tensor bias = narrow(net.shared.bias, 2, net.shared.bias.size(2) - net.S.n(), net.S);
  scores = add(std::move(scores), std::move(bias));
  scores = masked_fill(std::move(scores), net.shared.causal_mask);
  Tensor weights;
  {
    Tensor wide = to(scores, Dtype::kFp32);
    weights = softmax(std::move(wide));
  }
  weights = to(std::move(weights), v.dtype());
  weights = dropout(std::move(weights), net.arch.attention_dropout);
  Tensor context = matmul(weights, v);
  net.attn_weights = weights;
  context = transpose(std::move(context), 1, 2);
  context = contiguous(std::move(context));
  context = view(std::move(context), Shape{net.B, net.S, net.H});
  return net.linear("attn.out_proj", context, net.H);
}

Tensor ffn(Net& net, Tensor hidden, const Tensor& residual) {
  Scope in(net.tape, "ffn", kMlp);
  const Tensor x = std::move(hidden);
  Tensor h = net.linear("ffn.up_proj", x, net.F);
  h = gelu(std::move(h));
  Tensor out = net.linear("ffn.down_proj", h, net.H);
  out = dropout(std::move(out), net.arch.residual_dropout);
  return add(std::move(out), residual);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBlock);
  Tensor h = std::move(hidden);
  Tensor normed = net.layer_norm("norm_1", h, true, false);
  const Tensor attn_outputs = attn(net, normed);
  Tensor dropped = dropout(attn_outputs, net.arch.residual_dropout);
  h = add(std::move(dropped), std::move(h));
  normed = net.layer_norm("norm_2", h, true, false);
  Tensor out = ffn(net, normed, h);
  net.return_weights();
  return out;
}

Tensor embed(Net& net) {
  Scope in(net.tape, "transformer", kModel);
  Tensor embeds = net.token_embedding("transformer.wte", net.H);
  net.shared.bias = net.tape.allocate(Shape{net.A, Dim(1), Dim(net.arch.max_positions)}, Dtype::kFp32, "alibi");
  make_causal_masks(net, embeds, {true, false, false});
  Shape shape = net.shared.causal_mask.shape();
  net.shared.causal_mask = net.tape.allocate(shape, Dtype::kBool, "causal mask (bool)");
  net.model_locals = {embeds};
  return embeds;
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("transformer.norm_f", std::move(hidden), true, false);
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

}  // namespace

const Program kMptProgram = {.forward = one_stack<embed, layer, norm>,
                             .lm_head = head,
                             .own_loss = OwnLoss::kModelDtype,
                             .decoder_heads = kClasses,
                             .attention = kEagerAlone};

const Family kRows[] = {
    {"mpt", "Mpt", "MptForCausalLM", kFourHeads, read_mpt_config, &kMptProgram, "transformer.blocks", kNoFlex},
};

extern const FamilyRows mpt_rows;
const FamilyRows mpt_rows = kRows;

}  // namespace tidemark
