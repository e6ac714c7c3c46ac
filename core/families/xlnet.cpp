// XLNet: tokens before rows, attention to contents and to relative positions, written with einsum over parameters that
// are no linear layers.
#include <utility>

#include "core/families/bert_heads.hpp"
#include "core/families/family.hpp"
#include "core/layers/losses.hpp"

namespace tidemark {
namespace {

void usual(ConfigFields& fields, const char* key, bool value) {
  if (fields.flag({key}, value) != value) fields.error("INVALID_VALUE", key, "Only the class's default is modelled.");
}
void usual(ConfigFields& fields, const char* key, const char* value) {
  if (fields.text({key}, value) != value) fields.error("INVALID_VALUE", key, "Only the class's default is modelled.");
}

// transformers 5.24 models/xlnet/configuration_xlnet.py: XLNetConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  architecture.body_prefix = "transformer.";
  architecture.positions_by_token = false;
  architecture.hidden_size = fields.required({"d_model", "hidden_size"});
  architecture.num_layers = fields.required({"n_layer", "num_hidden_layers"});
  architecture.num_heads = fields.required({"n_head", "num_attention_heads"});
  architecture.intermediate_size = fields.required({"d_inner"});
  architecture.vocab_size = fields.required({"vocab_size", "n_token"});
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  if (fields.has({"d_head"}) && fields.count({"d_head"}, architecture.head_dim) != architecture.head_dim) {
    fields.error("INVALID_VALUE", "d_head", "This class wants heads that share its width among them.");
  }
  if (architecture.hidden_size % 2 != 0) {
    fields.error("INVALID_VALUE", "d_model", "Its sines and cosines are halves of a row: the width has to be even.");
  }
  architecture.activation = read_activation(fields, {"ff_activation"}, "gelu");
  architecture.final_norm = false;
  architecture.head_bias = true;
  const double dropout = fields.probability({"dropout"}, 0.1);
  architecture.residual_dropout = architecture.embedding_dropout = dropout;
  architecture.attention_dropout = architecture.activation_dropout = dropout;
  architecture.classifier_dropout = fields.probability({"summary_last_dropout"}, 0.1);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  usual(fields, "attn_type", "bi");
  usual(fields, "summary_type", "last");
  usual(fields, "summary_activation", "tanh");
  usual(fields, "summary_use_proj", true);
  usual(fields, "use_mems_train", false);
  usual(fields, "bi_data", false);
  fields.accept({"clamp_len", "end_n_top", "mem_len", "reuse_len", "same_length", "start_n_top", "untie_r",
                 "use_mems_eval", "dropatt", "init", "init_range", "init_std", "max_position_embeddings"});
}

constexpr const char* kModel = "transformers 5.24 models/xlnet/modeling_xlnet.py: XLNetModel.forward";
constexpr const char* kLayer = "transformers 5.24 models/xlnet/modeling_xlnet.py: XLNetLayer.forward";
constexpr const char* kAttention = "transformers 5.24 models/xlnet/modeling_xlnet.py: XLNetRelativeAttention.forward";
constexpr const char* kFeedForward = "transformers 5.24 models/xlnet/modeling_xlnet.py: XLNetFeedForward.forward";
constexpr const char* kSummary = "transformers 5.24 models/xlnet/modeling_xlnet.py: XLNetSequenceSummary.forward";
constexpr const char* kHead = "transformers 5.24 models/xlnet/modeling_xlnet.py: XLNetLMHeadModel.forward";

// relative_positional_encoding: [2·S, B, H] in fp32, dropped out as a whole.
Tensor positions(Net& net) {
  Tape& t = net.tape;
  const Dim both(2 * net.S.n()), half(net.H.n() / 2);
  Tensor rows;
  {
    const Tensor angles = t.allocate(Shape{both, half}, Dtype::kFp32, "mul");
    const Tensor sines = t.allocate(Shape{both, half}, Dtype::kFp32, "sin");
    const Tensor cosines = t.allocate(Shape{both, half}, Dtype::kFp32, "cos");
    rows = t.allocate(Shape{both, Dim(1), net.H}, Dtype::kFp32, "cat");
  }
  rows = expand(std::move(rows), Shape{both, net.B, net.H});
  if (net.arch.embedding_dropout <= 0.0) return rows;
  const Tensor out = t.allocate(Shape{both, net.B, net.H}, Dtype::kFp32, "dropout");
  t.allocate(Shape{both, net.B, net.H}, Dtype::kBool, "dropout mask");
  return out;
}

// What a padded row's tokens are kept from, [S, S, B, 1]; a token sees itself whatever it is.
Tensor padding_mask(Net& net) {
  Tape& t = net.tape;
  const Dtype dtype = net.job.recipe.weights;
  const Shape whole{net.S, net.S, net.B, Dim(1)};
  const Tensor own = t.allocate(Shape{net.S, net.S}, dtype, "neg");
  const Tensor sum = t.allocate(whole, dtype, "add");
  const Tensor above = t.allocate(whole, Dtype::kBool, "gt");
  return t.allocate(whole, dtype, "to");
}

Tensor embed(Net& net) {
  Scope in(net.tape, "transformer", kModel);
  Tape& t = net.tape;
  const Shape turned{net.S, net.B};
  const Tensor given = net.input_ids;
  net.input_ids = t.allocate(turned, Dtype::kInt64, "clone");
  Tensor attention_mask, input_mask;
  if (net.attention_mask.defined()) {
    attention_mask = t.allocate(turned, Dtype::kInt64, "clone");
    input_mask = t.allocate(turned, Dtype::kFp32, "rsub");
    net.shared.causal_mask = padding_mask(net);
  }
  const Tensor words = net.token_embedding("transformer.word_embedding", net.H);
  const Tensor unread = net.parameter("transformer", "mask_emb", Shape{Dim(1), Dim(1), net.H});
  Tensor h = dropout(words, net.arch.embedding_dropout);
  net.shared.bias = positions(net);
  net.model_locals = {words, net.shared.bias, net.input_ids, attention_mask, input_mask, net.shared.causal_mask};
  net.input_ids = given;
  return h;
}

// torch.einsum of [rows, B, H] and a parameter [H, heads, hd]: one product, whose casts autocast does not keep.
Tensor project(const Tensor& x, const Tensor& weight) {
  const Dim heads = weight.dim(1), width = weight.dim(2);
  Tensor rows = view(x, Shape{Dim(1), Dim(x.size(0) * x.size(1)), x.dim(2)});
  Tensor columns = view(weight, Shape{Dim(1), weight.dim(0), Dim(heads.n() * width.n())});
  Tensor y = matmul(std::move(rows), std::move(columns));
  return view(std::move(y), Shape{x.dim(0), x.dim(1), heads, width});
}

// torch.einsum("ibnd,jbnd->bnij"): [B, heads, i, j].
Tensor scores_of(const Tensor& q, const Tensor& k) {
  const Dim outer(q.size(1) * q.size(2));
  Tensor left = reshape(permute(q, {1, 2, 0, 3}), Shape{outer, q.dim(0), q.dim(3)});
  Tensor right = reshape(permute(k, {1, 2, 3, 0}), Shape{outer, k.dim(3), k.dim(0)});
  Tensor y = matmul(std::move(left), std::move(right));
  return view(std::move(y), Shape{q.dim(1), q.dim(2), q.dim(0), k.dim(0)});
}

// rel_shift_bnij: [B, heads, S, 2·S] to [B, heads, S, S].
Tensor shifted(Tensor x_in, Dim keys) {
  Tensor x = std::move(x_in);
  const Dim rows = x.dim(0), heads = x.dim(1), queries = x.dim(2), more(x.size(3) - 1);
  x = view(std::move(x), Shape{rows, heads, Dim(more.n() + 1), queries});
  x = narrow(std::move(x), 2, 1, more);
  x = view(std::move(x), Shape{rows, heads, queries, more});
  return take(std::move(x), 3, keys);
}

struct Parameters {
  Tensor q, k, v, o, r, r_r_bias, r_w_bias;
};

// rel_attn_core: [S, B, heads, hd].
Tensor core(Net& net, const Parameters& of, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& places) {
  const Tensor contents = scores_of(add(q, of.r_w_bias), k);
  Tensor distances = scores_of(add(q, of.r_r_bias), places);
  distances = shifted(std::move(distances), net.S);
  Tensor score = add(contents, distances);
  score = add_scalar(std::move(score));
  score = mul_scalar(std::move(score));
  if (net.shared.causal_mask.defined()) {
    const Tensor mask = mul_scalar(permute(net.shared.causal_mask, {2, 3, 0, 1}));
    score = sub(std::move(score), mask);
  }
  Tensor probabilities = softmax(score);
  probabilities = dropout(std::move(probabilities), net.arch.attention_dropout);
  const Dim outer(net.B.n() * net.A.n());
  Tensor left = view(probabilities, Shape{outer, net.S, net.S});
  Tensor right = reshape(permute(v, {1, 2, 0, 3}), Shape{outer, net.S, net.hd});
  Tensor y = matmul(std::move(left), std::move(right));
  y = view(std::move(y), Shape{net.B, net.A, net.S, net.hd});
  return permute(std::move(y), {2, 0, 1, 3});
}

Tensor attention_of(Net& net, const Tensor& h) {
  Scope in(net.tape, "rel_attn", kAttention);
  net.attention_kernel = "eager";
  const Shape matrix{net.H, net.A, net.hd}, row{net.A, net.hd};
  Parameters of;
  of.q = net.parameter("rel_attn", "q", matrix);
  of.k = net.parameter("rel_attn", "k", matrix);
  of.v = net.parameter("rel_attn", "v", matrix);
  of.o = net.parameter("rel_attn", "o", matrix);
  of.r = net.parameter("rel_attn", "r", matrix);
  of.r_r_bias = net.parameter("rel_attn", "r_r_bias", row);
  const Tensor of_segments = net.parameter("rel_attn", "r_s_bias", row);
  of.r_w_bias = net.parameter("rel_attn", "r_w_bias", row);
  const Tensor segments = net.parameter("rel_attn", "seg_embed", Shape{Dim(2), net.A, net.hd});
  const Tensor q = project(h, of.q);
  const Tensor k = project(h, of.k);
  const Tensor v = project(h, of.v);
  Tensor places;
  {
    const Tensor r = to(net.shared.bias, of.r.dtype());
    places = project(r, of.r);
  }
  const Tensor attended = core(net, of, q, k, v, places);
  const Dim outer(net.S.n() * net.B.n());
  Tensor rows = reshape(attended, Shape{Dim(1), outer, net.Q});
  // einsum sums over labels in the order of the alphabet: d before n.
  Tensor columns = reshape(permute(of.o, {2, 1, 0}), Shape{Dim(1), net.Q, net.H});
  Tensor out = matmul(std::move(rows), std::move(columns));
  out = view(std::move(out), Shape{net.S, net.B, net.H});
  out = dropout(std::move(out), net.arch.residual_dropout);
  out = add(std::move(out), h);
  return net.layer_norm("rel_attn.layer_norm", out);
}

Tensor feed_forward(Net& net, const Tensor& x) {
  Scope in(net.tape, "ff", kFeedForward);
  Tensor h = net.linear("ff.layer_1", x, net.F, true);
  h = activate(net.arch.activation, std::move(h));
  h = dropout(std::move(h), net.arch.activation_dropout);
  h = net.linear("ff.layer_2", std::move(h), net.H, true);
  h = dropout(std::move(h), net.arch.residual_dropout);
  const Tensor sum = add(h, x);
  return net.layer_norm("ff.layer_norm", sum);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor x = std::move(hidden);
  const Tensor attended = attention_of(net, x);
  return feed_forward(net, attended);
}

// What the model's forward does behind its loop: rows before tokens again.
Tensor turn_back(Net& net, Tensor hidden) {
  Scope in(net.tape, "transformer", kModel);
  const Tensor h = std::move(hidden);
  Tensor out = dropout(h, net.arch.embedding_dropout);
  return contiguous(transpose(std::move(out), 0, 1));
}

Tensor lm_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_loss", std::move(hidden), net.V, true);
}

Outputs sequence(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "sequence_summary", kSummary);
  Tensor x = net.classifier("sequence_summary.summary", select(std::move(hidden), 1), net.H, true);
  x = tanh(std::move(x));
  x = dropout(std::move(x), net.arch.classifier_dropout);
  return classified(net, net.classifier("logits_proj", std::move(x), Dim(net.arch.num_labels), true));
}

Outputs tokens(Net& net, const Program&, Tensor hidden) {
  return labelled(net, net.classifier("classifier", std::move(hidden), Dim(net.arch.num_labels), true));
}

// Its language model predicts each token at its own place.
constexpr ClassSuffix kClasses[] = {{"LMHeadModel", Head::kMaskedLm},
                                    {"ForSequenceClassification", Head::kSequenceClassification},
                                    {"ForTokenClassification", Head::kTokenClassification},
                                    {"ForQuestionAnsweringSimple", Head::kQuestionAnswering},
                                    {"Model", Head::kNone}};
constexpr HeadForward kHeads[] = {{Head::kMaskedLm, masked_lm},
                                  {Head::kSequenceClassification, sequence},
                                  {Head::kTokenClassification, tokens},
                                  {Head::kQuestionAnswering, encoder_span},
                                  {Head::kNone, body_alone}};

}  // namespace

const Program kXlnetProgram = {.forward = one_stack<embed, layer, turn_back>,
                               .lm_head = lm_head,
                               .heads = kHeads,
                               .attention = kEagerAlone,
                               .checkpoints = false};

const Family kRows[] = {
    {"xlnet",
     "XLNet",
     "XLNetLMHeadModel",
     kClasses,
     read_config,
     &kXlnetProgram,
     "transformer.layer",
     {.flex_attention = false, .no_split = NoSplit::kNone}},
};

extern const FamilyRows xlnet_rows;
const FamilyRows xlnet_rows = kRows;

}  // namespace tidemark
