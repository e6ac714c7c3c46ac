// ModernBERT: an encoder with norms before its branches, rotation in fp32, one matrix for q, k and v, a gated
// feed-forward, and layers that attend to a window on both sides. Its decoder (Ettin): the same with three matrices,
// and masks that look back alone.
#include <algorithm>

#include "core/families/bert_heads.hpp"
#include "core/families/family.hpp"
#include "core/layers/losses.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/modernbert/configuration_modernbert.py: ModernBertConfig. `local_attention` is the window
// of both sides together.
void read_modernbert_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 8192);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_activation"}, "gelu");
  architecture.head_activation = read_activation(fields, {"classifier_activation"}, "gelu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.norm_bias = fields.flag({"norm_bias"}, false);
  architecture.head_bias = fields.flag({"decoder_bias"}, true);
  architecture.classifier_bias = fields.flag({"classifier_bias"}, false);
  architecture.mean_pooling = fields.text({"classifier_pooling"}, "cls") == "mean";
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.embedding_dropout = fields.probability({"embedding_dropout"}, 0.0);
  architecture.activation_dropout = fields.probability({"mlp_dropout"}, 0.0);
  architecture.classifier_dropout = fields.probability({"classifier_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.sliding_window = fields.count({"local_attention"}, 128) / 2;
  const Count period = std::max<Count>(1, fields.count({"global_attn_every_n_layers"}, 3));
  if (const auto types = read_layer_types(fields, architecture)) {
    architecture.sliding_layers = *types;
  } else {
    for (Count i = 0; i < architecture.num_layers; ++i) architecture.sliding_layers.push_back(i % period != 0);
  }
  for (Count i = 0; i < architecture.num_layers; ++i) architecture.local_layers.push_back(i == 0);
  if (fields.flag({"sparse_prediction"}, false)) {
    fields.error("INVALID_VALUE", "sparse_prediction",
                 "Logits of the masked tokens alone are not modelled: set \"sparse_prediction\" to false.");
  }
  fields.accept({"deterministic_flash_attn", "sparse_pred_ignore_index", "local_rope_theta", "global_rope_theta",
                 "initializer_cutoff_factor", "reference_compile", "repad_logits_with_grad", "embedding_norm"});
}

constexpr const char* kModel = "transformers 5.12 models/modernbert/modeling_modernbert.py: ModernBertModel.forward";
constexpr const char* kEmbeddings =
    "transformers 5.12 models/modernbert/modeling_modernbert.py: ModernBertEmbeddings.forward";
constexpr const char* kMasks = "transformers 5.12 masking_utils.py: create_bidirectional_sliding_window_mask";
constexpr const char* kLayer =
    "transformers 5.12 models/modernbert/modeling_modernbert.py: ModernBertEncoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/modernbert/modeling_modernbert.py: ModernBertAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/modernbert/modeling_modernbert.py: ModernBertMLP.forward";
constexpr const char* kHead =
    "transformers 5.12 models/modernbert/modeling_modernbert.py: ModernBertPredictionHead.forward";
constexpr const char* kDecoder =
    "transformers 5.12 models/modernbert_decoder/modeling_modernbert_decoder.py: ModernBertDecoderModel.forward";
constexpr const char* kDecoderLayer =
    "transformers 5.12 models/modernbert_decoder/modeling_modernbert_decoder.py: ModernBertDecoderLayer.forward";
constexpr const char* kDecoderAttention =
    "transformers 5.12 models/modernbert_decoder/modeling_modernbert_decoder.py: ModernBertDecoderAttention.forward";
constexpr const char* kDecoderLm =
    "transformers 5.12 models/modernbert_decoder/modeling_modernbert_decoder.py: ModernBertDecoderForCausalLM.forward";
constexpr DecoderHeads kDecoderNames = {
    .sequence =
        "transformers 5.12 models/modernbert_decoder/modeling_modernbert_decoder.py: "
        "ModernBertDecoderForSequenceClassification.forward",
    .sequence_module = "classifier"};
constexpr const char* kClassifier =
    "transformers 5.12 models/modernbert/modeling_modernbert.py: ModernBertForSequenceClassification.forward";

}  // namespace

void make_window_mask(Net& net, const Tensor& embeds) {
  Scope in(net.tape, "sliding_mask", kMasks);
  Tape& t = net.tape;
  net.shared.sliding_mask = net.shared.causal_mask;
  const bool fits = !t.above(net.S.n(), net.arch.sliding_window - 1);
  if (wants_flash(net.job) || (fits && !net.job.padding)) return;
  const Shape square{net.B, Dim(1), net.S, net.S};
  Tensor mask = t.allocate(Shape{Dim(1), Dim(1), net.S, net.S}, Dtype::kBool, "window mask (bool)");
  mask = net.job.padding ? t.allocate(square, Dtype::kBool, "window and padding mask (bool)")
                         : expand(std::move(mask), square);
  if (net.job.attention == AttentionKernel::kEager) mask = t.allocate(square, embeds.dtype(), "eager mask");
  net.shared.sliding_mask = std::move(mask);
}

namespace {

Tensor embeddings(Net& net) {
  Scope in(net.tape, "model.embeddings", kEmbeddings);
  Tensor h = net.token_embedding("model.embeddings.tok_embeddings", net.H);
  h = net.layer_norm("model.embeddings.norm", std::move(h), true, net.arch.norm_bias);
  return dropout(std::move(h), net.arch.embedding_dropout);
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  make_position_ids(net);
  Tensor h = embeddings(net);
  net.model_locals = {h};  // in mask_kwargs
  make_bidirectional_mask(net, h);
  make_window_mask(net, h);
  rotary_tables_by_kind(net, h.dtype());
  return h;
}

Tensor embed_causally(Net& net) {
  Scope in(net.tape, "model", kDecoder);
  Tensor h = embeddings(net);
  net.model_locals = {h};  // in mask_kwargs
  make_position_ids(net);
  make_causal_masks(net, h);
  rotary_tables_by_kind(net, h.dtype());
  // Each row has positions of its own, and so have the tables.
  for (Tensor* table : {&net.shared.cos, &net.shared.sin, &net.shared.local_cos, &net.shared.local_sin}) {
    if (!table->defined()) continue;
    *table = net.tape.allocate(Shape{net.B, net.S, Dim(net.arch.rotary_dim)}, table->dtype(), "to");
  }
  return h;
}

// (x.float() * cos) + (rotate_half(x.float()) * sin), back in the dtype of x: each side makes its own fp32 copy.
Tensor turned(Net& net, const Tensor& x) {
  const bool local = net.is_sliding_layer(net.layer_index);
  const Tensor cos = unsqueeze(local ? net.shared.local_cos : net.shared.cos, 1);
  const Tensor sin = unsqueeze(local ? net.shared.local_sin : net.shared.sin, 1);
  Tensor wide = to(x, Dtype::kFp32);
  Tensor straight = mul(std::move(wide), cos);
  wide = to(x, Dtype::kFp32);
  Tensor half = rotate_half(std::move(wide));
  half = mul(std::move(half), sin);
  return add(std::move(straight), std::move(half));
}

// Rotation, attention, projection: q and k are names of the caller's.
Tensor attend(Net& net, Tensor& q, Tensor& k, const Tensor& v, bool causal) {
  {
    const Tensor q_embed = turned(net, q);
    const Tensor k_embed = turned(net, k);
    Tensor q_cast = to(q_embed, q.dtype());
    Tensor k_cast = to(k_embed, q.dtype());
    q = std::move(q_cast);
    k = std::move(k_cast);
  }
  AttentionOptions options;
  options.mask = net.is_sliding_layer(net.layer_index) ? net.shared.sliding_mask : net.shared.causal_mask;
  options.dropout = net.arch.attention_dropout;
  options.causal = causal;
  options.has_groups = false;
  Tensor out = attention(net, q, k, v, options);
  out = net.linear("attn.Wo", std::move(out), net.H, net.arch.attention_bias);
  return dropout(std::move(out), net.arch.attention_dropout);
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor qkv = net.linear("attn.Wqkv", x, Dim(3 * net.Q.n()), bias);
  qkv = view(std::move(qkv), Shape{net.B, net.S, Dim(3), net.A, net.hd});
  Pieces parts = unbind(qkv, 2);
  Tensor q = transpose(std::move(parts.part[0]), 1, 2);
  Tensor k = transpose(std::move(parts.part[1]), 1, 2);
  const Tensor v = transpose(std::move(parts.part[2]), 1, 2);
  return attend(net, q, k, v, false);
}

Tensor decoder_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "attn", kDecoderAttention);
  const Tensor x = std::move(hidden);
  const auto heads = [&](const char* name) {
    return split_heads(net, net.linear(name, x, net.Q, net.arch.attention_bias), net.A, net.hd);
  };
  Tensor q = heads("attn.q_proj"), k = heads("attn.k_proj");
  const Tensor v = heads("attn.v_proj");
  return attend(net, q, k, v, true);
}

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.mlp_bias;
  Tensor both = net.linear("mlp.Wi", x, Dim(2 * net.F.n()), bias);
  const Pieces halves = split(std::move(both), 2, {net.F, net.F});
  Tensor h;
  {
    Scope act(net.tape, "mlp.act", kMlp);
    h = activate(net.arch.activation, halves.part[0]);
  }
  h = mul(std::move(h), halves.part[1]);
  h = dropout(std::move(h), net.arch.activation_dropout);
  return net.linear("mlp.Wo", std::move(h), net.H, bias);
}

Tensor layer_around(Net& net, Tensor hidden, Branch attention) {
  Tensor h = std::move(hidden);
  Tensor normed = h;
  if (net.layer_index > 0) normed = net.layer_norm("attn_norm", h, true, net.arch.norm_bias);
  const Tensor attn_output = attention(net, std::move(normed));
  h = add(h, attn_output);
  normed = net.layer_norm("mlp_norm", h, true, net.arch.norm_bias);
  Tensor fed = mlp(net, std::move(normed));
  return add(h, std::move(fed));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  return layer_around(net, std::move(hidden), self_attention);
}

Tensor decoder_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kDecoderLayer);
  return layer_around(net, std::move(hidden), decoder_attention);
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("model.final_norm", std::move(hidden), true, net.arch.norm_bias);
}

/// Where the prediction head is: the decoder's has another name beside its language model.
struct PredictionNames {
  const char *module, *dense, *norm;
};
constexpr PredictionNames kNames = {"head", "head.dense", "head.norm"};
constexpr PredictionNames kLmNames = {"lm_head", "lm_head.dense", "lm_head.norm"};

Tensor predict(Net& net, Tensor hidden, const PredictionNames& names = kNames) {
  Scope in(net.tape, names.module, kHead);
  const Tensor x = std::move(hidden);
  Tensor h = net.linear(names.dense, x, net.H, net.arch.classifier_bias);
  h = activate(net.arch.head_activation, std::move(h));
  return net.layer_norm(names.norm, std::move(h), true, net.arch.norm_bias);
}

Tensor lm_head(Net& net, Tensor hidden) {
  return net.lm_head("decoder", predict(net, std::move(hidden)), net.V, net.arch.head_bias);
}

Tensor decoder_head(Net& net, Tensor hidden) {
  return net.lm_head("decoder", predict(net, std::move(hidden), kLmNames), net.V, net.arch.head_bias);
}

// Until transformers 5.16 a shifted copy in the logits' dtype for CrossEntropyLoss; none without labels.
Outputs decoder_lm(Net& net, const Program& program, Tensor hidden) {
  if (net.job.framework.at_least(5, 17) || net.job.loss != Loss::kDefault || net.job.has_outer_loss())
    return causal_lm(net, program, std::move(hidden));
  Tensor logits = program.lm_head(net, std::move(hidden));
  Scope in(net.tape, "", kDecoderLm);
  Outputs out;
  out.loss = shifted_cross_entropy(net, logits);
  out.rest = {std::move(logits)};
  return out;
}

// Scores of all tokens, of which the last one's are taken.
Outputs decoder_sequence(Net& net, const Program& program, Tensor hidden) {
  Tensor h = predict(net, std::move(hidden));
  return sequence_classification(net, program, dropout(std::move(h), net.arch.classifier_dropout));
}

// The first token's vector, or the mean over those that are no padding.
Tensor pooled(Net& net, Tensor hidden) {
  if (!net.arch.mean_pooling) return select(std::move(hidden), 1);
  Tape& t = net.tape;
  Tensor mask = net.attention_mask;
  if (!mask.defined()) mask = t.allocate(Shape{net.B, net.S}, Dtype::kBool, "ones");
  Tensor sum = mul(std::move(hidden), unsqueeze(std::move(mask), 2));
  sum = sum_rows(std::move(sum));
  Tensor count = t.allocate(Shape{net.B, Dim(1)}, Dtype::kInt64, "sum");
  return div(std::move(sum), std::move(count));
}

Tensor classify(Net& net, Tensor hidden) {
  Tensor h = predict(net, std::move(hidden));
  h = dropout(std::move(h), net.arch.classifier_dropout);
  return net.classifier("classifier", std::move(h), Dim(net.arch.num_labels), true);
}

Outputs sequence(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kClassifier);
  return classified(net, classify(net, pooled(net, std::move(hidden))));
}

Outputs tokens(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kClassifier);
  return labelled(net, classify(net, std::move(hidden)));
}

Outputs span(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kClassifier);
  return spans(net, classify(net, std::move(hidden)));
}

Outputs choice(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kClassifier);
  Tape& t = net.tape;
  Tensor first;
  if (net.arch.mean_pooling) {
    first = pooled(net, std::move(hidden));
  } else {
    Tensor rows = t.allocate(Shape{net.B}, Dtype::kInt64, "arange");
    Tensor at = t.allocate(net.job.padding ? Shape{net.B} : Shape{}, Dtype::kInt64, "argmax");
    first = pick(hidden, std::move(rows), std::move(at));
  }
  first = predict(net, std::move(first));
  first = dropout(std::move(first), net.arch.classifier_dropout);
  return choose(net, std::move(first));
}

constexpr HeadForward kHeads[] = {{Head::kMaskedLm, wide_masked_lm},    {Head::kSequenceClassification, sequence},
                                  {Head::kTokenClassification, tokens}, {Head::kQuestionAnswering, span},
                                  {Head::kMultipleChoice, choice},      {Head::kNone, body_alone}};

constexpr HeadForward kDecodes[] = {
    {Head::kCausalLm, decoder_lm}, {Head::kSequenceClassification, decoder_sequence}, {Head::kNone, body_alone}};

}  // namespace

const Program kModernBertProgram = {one_stack<embed, layer, norm>, lm_head, kHeads};
const Program kModernBertDecoderProgram = {one_stack<embed_causally, decoder_layer, norm>, decoder_head, kDecodes,
                                           OwnLoss::kModelDtype, kDecoderNames};

const Family kRows[] = {
    {"modernbert", "ModernBert", "ModernBertForMaskedLM", kDistilBertClasses, read_modernbert_config,
     &kModernBertProgram, kModelLayers, kNamesEmbeddings},
    {"modernbert-decoder", "ModernBertDecoder", "ModernBertDecoderForCausalLM", kSequenceOnly, read_modernbert_config,
     &kModernBertDecoderProgram},
};

extern const FamilyRows modernbert_rows;
const FamilyRows modernbert_rows = kRows;

}  // namespace tidemark
