// BERT, RoBERTa, XLM-RoBERTa-XL, data2vec, ERNIE and DistilBERT: encoders with all heads of transformers, most of which
// norm after each branch.
#include "core/families/bert_heads.hpp"
#include "core/families/family.hpp"
#include "core/layers/losses.hpp"

namespace tidemark {
namespace {

// The families here put a bias on everything.
void set_all_biases(Architecture& architecture) {
  architecture.attention_bias = true;
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.norm_bias = true;
  architecture.head_bias = true;
}

}  // namespace

// transformers 5.12.1 models/bert/configuration_bert.py: BertConfig; models/roberta/configuration_roberta.py:
// RobertaConfig, XLMRobertaConfig and CamembertConfig have the same keys. RoBERTa's position table counts from the
// padding id: its files say 514 for 512.
void read_bert_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 512);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  // GTE alone may have no table of types.
  architecture.type_vocab_size = fields.count({"type_vocab_size"}, 2, architecture.model_type == "gte" ? 0 : 1);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  set_all_biases(architecture);
  architecture.norm_before = false;
  architecture.final_norm = false;
  const double dropout = fields.probability({"hidden_dropout_prob"}, 0.1);
  architecture.residual_dropout = dropout;
  architecture.embedding_dropout = dropout;
  architecture.attention_dropout = fields.probability({"attention_probs_dropout_prob"}, 0.1);
  architecture.classifier_dropout = fields.probability({"classifier_dropout"}, dropout);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  for (const std::string_view key : {"is_decoder", "add_cross_attention"}) {
    if (fields.flag({key}, false)) {
      fields.error("INVALID_VALUE", key, "This family is modelled as an encoder only.");
    }
  }
  // The pooler's sizes in some published files are those of its other libraries.
  fields.accept({"directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
                 "pooler_size_per_head", "pooler_type"});
}

namespace {

// RobertaEmbeddings counts positions from padding_idx + 1: the first two rows of the table belong to none.
void read_roberta_config(ConfigFields& fields, Architecture& architecture) {
  read_bert_config(fields, architecture);
  architecture.position_offset = 2;
}

// transformers 5.12.1 models/xlm_roberta_xl/configuration_xlm_roberta_xl.py: XLMRobertaXLConfig. Norms stand before the
// branches, and one behind the last layer.
void read_xl_config(ConfigFields& fields, Architecture& architecture) {
  read_roberta_config(fields, architecture);
  architecture.max_positions = fields.count({"max_position_embeddings"}, 514);
  architecture.type_vocab_size = fields.count({"type_vocab_size"}, 1);
  architecture.norm_before = true;
  architecture.final_norm = true;
}

// transformers 5.12.1 models/roberta_prelayernorm/configuration_roberta_prelayernorm.py: RobertaPreLayerNormConfig.
void read_prelayernorm_config(ConfigFields& fields, Architecture& architecture) {
  read_roberta_config(fields, architecture);
  architecture.norm_before = true;
  architecture.final_norm = true;
}

// transformers 5.12.1 models/ernie/configuration_ernie.py: ErnieConfig.
void read_ernie_config(ConfigFields& fields, Architecture& architecture) {
  read_bert_config(fields, architecture);
  const Count tasks = fields.count({"task_type_vocab_size"}, 3);
  if (fields.flag({"use_task_id"}, false)) architecture.task_type_vocab_size = tasks;
}

// transformers 5.12.1 models/distilbert/configuration_distilbert.py: DistilBertConfig.
void read_distilbert_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"dim", "hidden_size"});
  architecture.intermediate_size = fields.required({"hidden_dim"});
  architecture.num_layers = fields.required({"n_layers", "num_hidden_layers"});
  architecture.num_heads = fields.required({"n_heads", "num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, 512);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.activation = read_activation(fields, {"activation"}, "gelu");
  set_all_biases(architecture);
  architecture.norm_before = false;
  architecture.final_norm = false;
  const double dropout = fields.probability({"dropout"}, 0.1);
  architecture.residual_dropout = dropout;
  architecture.embedding_dropout = dropout;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.1);
  architecture.classifier_dropout = fields.probability({"seq_classif_dropout"}, 0.2);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.qa_dropout = fields.probability({"qa_dropout"}, 0.1);
  fields.accept({"sinusoidal_pos_embds", "tie_weights_"});
}

constexpr const char* kEmbeddings = "transformers 5.12 models/bert/modeling_bert.py: BertEmbeddings.forward";
constexpr const char* kSelf = "transformers 5.12 models/bert/modeling_bert.py: BertSelfAttention.forward";
constexpr const char* kSelfOutput = "transformers 5.12 models/bert/modeling_bert.py: BertSelfOutput.forward";
constexpr const char* kIntermediate = "transformers 5.12 models/bert/modeling_bert.py: BertIntermediate.forward";
constexpr const char* kOutput = "transformers 5.12 models/bert/modeling_bert.py: BertOutput.forward";
constexpr const char* kLayer = "transformers 5.12 models/bert/modeling_bert.py: BertLayer.forward";
constexpr const char* kMaskedLm = "transformers 5.12 models/bert/modeling_bert.py: BertForMaskedLM.forward";
constexpr const char* kClassifier =
    "transformers 5.12 models/bert/modeling_bert.py: BertForSequenceClassification.forward";
constexpr const char* kPooler = "transformers 5.12 models/bert/modeling_bert.py: BertPooler.forward";
constexpr const char* kPreTraining = "transformers 5.12 models/bert/modeling_bert.py: BertForPreTraining.forward";
constexpr const char* kNextSentence =
    "transformers 5.12 models/bert/modeling_bert.py: BertForNextSentencePrediction.forward";
constexpr const char* kTokens = "transformers 5.12 models/bert/modeling_bert.py: BertForTokenClassification.forward";
constexpr const char* kSpan = "transformers 5.12 models/bert/modeling_bert.py: BertForQuestionAnswering.forward";
constexpr const char* kChoice = "transformers 5.12 models/bert/modeling_bert.py: BertForMultipleChoice.forward";
constexpr const char* kRobertaIds =
    "transformers 5.12 models/roberta/modeling_roberta.py: RobertaEmbeddings.create_position_ids_from_input_ids";
constexpr const char* kRobertaMaskedLm = "transformers 5.12 models/roberta/modeling_roberta.py: RobertaLMHead.forward";
constexpr const char* kRobertaClassifier =
    "transformers 5.12 models/roberta/modeling_roberta.py: RobertaClassificationHead.forward";
constexpr const char* kXlAttention =
    "transformers 5.12 models/xlm_roberta_xl/modeling_xlm_roberta_xl.py: XLMRobertaXLAttention.forward";
constexpr const char* kXlOutput =
    "transformers 5.12 models/xlm_roberta_xl/modeling_xlm_roberta_xl.py: XLMRobertaXLSelfOutput, XLMRobertaXLOutput";
constexpr const char* kXlEncoder =
    "transformers 5.12 models/xlm_roberta_xl/modeling_xlm_roberta_xl.py: XLMRobertaXLEncoder.forward";
constexpr const char* kPreLayerNorm =
    "transformers 5.12 models/roberta_prelayernorm/modeling_roberta_prelayernorm.py: RobertaPreLayerNormModel.forward";
constexpr const char* kDistilEmbeddings =
    "transformers 5.12 models/distilbert/modeling_distilbert.py: Embeddings.forward";
constexpr const char* kDistilAttention =
    "transformers 5.12 models/distilbert/modeling_distilbert.py: DistilBertSelfAttention.forward";
constexpr const char* kDistilFfn = "transformers 5.12 models/distilbert/modeling_distilbert.py: FFN.ff_chunk";
constexpr const char* kDistilLayer =
    "transformers 5.12 models/distilbert/modeling_distilbert.py: TransformerBlock.forward";
constexpr const char* kDistilMaskedLm =
    "transformers 5.12 models/distilbert/modeling_distilbert.py: DistilBertForMaskedLM.forward";
constexpr const char* kDistilClassifier =
    "transformers 5.12 models/distilbert/modeling_distilbert.py: DistilBertForSequenceClassification.forward";
constexpr const char* kDistilTokens =
    "transformers 5.12 models/distilbert/modeling_distilbert.py: DistilBertForTokenClassification.forward";
constexpr const char* kDistilSpan =
    "transformers 5.12 models/distilbert/modeling_distilbert.py: DistilBertForQuestionAnswering.forward";
constexpr const char* kDistilChoice =
    "transformers 5.12 models/distilbert/modeling_distilbert.py: DistilBertForMultipleChoice.forward";

// -- BERT and RoBERTa
// ---------------------------------------------------------------------------------------------------

constexpr BertHeadNames kRobertaHead = {"lm_head", "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder"};
constexpr BertNames kBertNames = {
    {"bert.embeddings", "bert.embeddings.word_embeddings", "bert.embeddings.token_type_embeddings",
     "bert.embeddings.position_embeddings", "bert.embeddings.LayerNorm"},
    "bert.pooler.dense",
    kBertHead};
constexpr BertNames kErnieNames = {
    {"ernie.embeddings", "ernie.embeddings.word_embeddings", "ernie.embeddings.token_type_embeddings",
     "ernie.embeddings.position_embeddings", "ernie.embeddings.LayerNorm", "ernie.embeddings.task_type_embeddings"},
    "ernie.pooler.dense",
    kBertHead};
constexpr BertNames kRobertaNames = {
    {"roberta.embeddings", "roberta.embeddings.word_embeddings", "roberta.embeddings.token_type_embeddings",
     "roberta.embeddings.position_embeddings", "roberta.embeddings.LayerNorm"},
    "roberta.pooler.dense",
    kRobertaHead,
    true};
constexpr BertNames kXlNames = {
    {"roberta.embeddings", "roberta.embeddings.word_embeddings", "roberta.embeddings.token_type_embeddings",
     "roberta.embeddings.position_embeddings", nullptr},
    "roberta.pooler.dense",
    kRobertaHead,
    true};

constexpr BertNames kDataNames = {
    {"data2vec_text.embeddings", "data2vec_text.embeddings.word_embeddings",
     "data2vec_text.embeddings.token_type_embeddings", "data2vec_text.embeddings.position_embeddings",
     "data2vec_text.embeddings.LayerNorm"},
    "data2vec_text.pooler.dense",
    kRobertaHead,
    true};
constexpr BertNames kPreLayerNormNames = {
    {"roberta_prelayernorm.embeddings", "roberta_prelayernorm.embeddings.word_embeddings",
     "roberta_prelayernorm.embeddings.token_type_embeddings", "roberta_prelayernorm.embeddings.position_embeddings",
     "roberta_prelayernorm.embeddings.LayerNorm"},
    "roberta_prelayernorm.pooler.dense",
    kRobertaHead,
    true};

const BertNames& names_of(const Net& net) {
  const std::string& type = net.arch.model_type;
  if (type == "data2vec-text") return kDataNames;
  if (type == "roberta-prelayernorm") return kPreLayerNormNames;
  if (type == "megatron-bert") return kMegatronBertNames;
  if (type == "rembert") return kRemBertNames;
  if (type == "layoutlm") return kLayoutLmNames;
  if (type == "nomic_bert") return kNomicBertNames;
  if (type == "jina_embeddings_v3") return kJinaNames;
  if (type == "gte") return kGteNames;
  if (type == "lilt") return kLiltNames;
  if (type == "longformer") return kLongformerNames;
  if (type == "squeezebert") return kSqueezeBertNames;
  if (type == "mobilebert") return net.arch.pooler_size > 0 ? kMobileBertNames : kMobileBertPlainNames;
  if (type == "ernie") return kErnieNames;
  if (net.arch.position_offset == 0) return kBertNames;
  return net.arch.norm_before ? kXlNames : kRobertaNames;
}

}  // namespace

// The position of each token, counted from the padding id: int32 steps, then int64.
Tensor position_ids_from_padding(Net& net) {
  Scope in(net.tape, "roberta.embeddings", kRobertaIds);
  Tape& t = net.tape;
  const Shape rows = net.input_ids.shape();
  Tensor mask = t.allocate(rows, Dtype::kInt32, "ne");
  Tensor steps = t.allocate(rows, Dtype::kInt64, "cumsum");
  steps = t.allocate(rows, Dtype::kInt32, "mul");
  Tensor ids = t.allocate(rows, Dtype::kInt64, "to");
  return t.allocate(rows, Dtype::kInt64, "add");
}

Tensor bert_embeddings(Net& net, const EmbeddingNames& names, Dim width, bool from_padding) {
  Scope in(net.tape, names.module, kEmbeddings);
  Tape& t = net.tape;
  t.buffer("embeddings.position_ids", 8 * net.arch.max_positions);
  t.buffer("embeddings.token_type_ids", 8 * net.arch.max_positions);
  Tensor position_ids;
  if (from_padding) {
    position_ids = position_ids_from_padding(net);
  } else if (names.positions != nullptr) {
    position_ids = t.part_of_buffer(Shape{Dim(1), net.S}, Dtype::kInt64);
  } else {
    position_ids = net.shared.position_ids;
  }
  Tensor types = t.allocate(position_ids.shape(), Dtype::kInt64, "gather");
  types = expand(std::move(types), Shape{net.B, net.S});
  const Tensor embeds = net.token_embedding(names.words, width);
  const Tensor type_embeds = net.embedding(names.types, std::move(types), Dim(net.arch.type_vocab_size), width);
  Tensor h = add(embeds, type_embeds);
  Tensor positions;
  if (names.positions != nullptr) {
    positions = net.embedding(names.positions, position_ids, Dim(net.arch.max_positions), width);
    h = add(std::move(h), positions);
  }
  if (net.arch.task_type_vocab_size > 0) {  // `+=`: into the sum
    Tensor tasks = t.allocate(Shape{net.B, net.S}, Dtype::kInt64, "zeros");
    h = add_in_place(std::move(h),
                     net.embedding(names.tasks, std::move(tasks), Dim(net.arch.task_type_vocab_size), width));
  }
  if (names.norm != nullptr) h = net.layer_norm(names.norm, std::move(h));
  return dropout(std::move(h), net.arch.embedding_dropout);
}

namespace {

Tensor bert_embed(Net& net) {
  const BertNames& names = names_of(net);
  Tensor h = bert_embeddings(net, names.embeddings, net.H, names.is_roberta);
  make_bidirectional_mask(net, h);
  net.model_locals = {h};
  return h;
}

}  // namespace

// BertSelfOutput and BertOutput: dense, dropout, norm of the sum.
Tensor bert_join(Net& net, const char* module, const char* dense, const char* norm, const char* source, Tensor x_in,
                 const Tensor& input) {
  Scope in(net.tape, module, source);
  const Tensor x = std::move(x_in);
  Tensor h = net.linear(dense, x, net.H, true);
  h = dropout(std::move(h), net.arch.residual_dropout);
  Tensor sum = add(h, input);
  return net.layer_norm(norm, std::move(sum));
}

namespace {

Tensor self_attention(Net& net, const Tensor& x) {
  Scope self(net.tape, "attention.self", kSelf);
  Tensor q = net.linear("attention.self.query", x, net.Q, true);
  q = split_heads(net, std::move(q), net.A, net.hd);
  Tensor k = net.linear("attention.self.key", x, net.Q, true);
  k = split_heads(net, std::move(k), net.A, net.hd);
  Tensor v = net.linear("attention.self.value", x, net.Q, true);
  v = split_heads(net, std::move(v), net.A, net.hd);
  return attention(net, q, k, v, encoder_attention(net));
}

// BertIntermediate.forward
Tensor intermediate(Net& net, Tensor x) {
  Scope in(net.tape, "intermediate", kIntermediate);
  Tensor h = net.linear("intermediate.dense", std::move(x), net.F, true);
  Scope act(net.tape, "intermediate.intermediate_act_fn", kIntermediate);
  return activate(net.arch.activation, std::move(h));
}

// Dense, dropout, the sum; the second branch has no dropout.
Tensor xl_join(Net& net, const char* module, const char* dense, const Tensor& x, const Tensor& input, double p) {
  Scope in(net.tape, module, kXlOutput);
  Tensor h = net.linear(dense, x, net.H, true);
  h = dropout(std::move(h), p);
  return add(std::move(h), input);
}

Tensor pre_norm(Net& net, Tensor hidden, const char* before_attention, const char* before_ffn, double second_dropout) {
  Scope in(net.tape, "", kLayer);
  const Tensor x = std::move(hidden);
  Tensor attended;
  {
    Scope attention(net.tape, "attention", kXlAttention);
    const Tensor normed = net.layer_norm(before_attention, x);
    attended = xl_join(net, "attention.output", "attention.output.dense", self_attention(net, normed), x,
                       net.arch.residual_dropout);
  }
  Tensor h = net.layer_norm(before_ffn, attended);
  h = intermediate(net, std::move(h));
  return xl_join(net, "output", "output.dense", h, attended, second_dropout);
}

Tensor xl_layer(Net& net, Tensor hidden) {
  return pre_norm(net, std::move(hidden), "attention.self_attn_layer_norm", "LayerNorm", 0.0);
}

Tensor prelayernorm_layer(Net& net, Tensor hidden) {
  return pre_norm(net, std::move(hidden), "attention.LayerNorm", "intermediate.LayerNorm", net.arch.residual_dropout);
}

// RobertaPreLayerNormModel.LayerNorm
Tensor prelayernorm_norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kPreLayerNorm);
  return net.layer_norm("roberta_prelayernorm.LayerNorm", std::move(hidden));
}

// XLMRobertaXLEncoder.LayerNorm
Tensor xl_norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kXlEncoder);
  return net.layer_norm("roberta.encoder.LayerNorm", std::move(hidden));
}

}  // namespace

Tensor bert_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor x = std::move(hidden);
  Tensor attention_output = self_attention(net, x);
  attention_output = bert_join(net, "attention.output", "attention.output.dense", "attention.output.LayerNorm",
                               kSelfOutput, std::move(attention_output), x);
  return bert_feed_forward(net, attention_output);
}

Tensor bert_feed_forward(Net& net, const Tensor& attended) {
  Tensor h = intermediate(net, attended);
  return bert_join(net, "output", "output.dense", "output.LayerNorm", kOutput, std::move(h), attended);
}

// BertPooler.forward: the first token's vector, through a layer of its own (MobileBERT: if it has one).
Tensor bert_pool(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "pooler", kPooler);
  if (names_of(net).pooler == nullptr) return select(hidden, 1);
  Tensor pooled = net.linear(names_of(net).pooler, select(hidden, 1), net.H, true);
  return tanh(std::move(pooled));
}

Tensor bert_lm_head(Net& net, Tensor hidden) {
  const BertNames& names = names_of(net);
  Scope in(net.tape, "", names.is_roberta ? kRobertaMaskedLm : kMaskedLm);
  // Tied, the decoder's bias is this one; untied, it stays beside the decoder's and nothing reads it.
  if (!net.arch.tie_word_embeddings) {
    const Tensor unread = net.parameter(names.head.module, "bias", Shape{net.V});
  }
  const Activation activation = names.is_roberta ? Activation::kGelu : net.arch.activation;
  return bert_predictions(net, names.head, std::move(hidden), net.H, activation);
}

Tensor bert_predictions(Net& net, const BertHeadNames& names, Tensor hidden, Dim width, Activation activation) {
  // trl 1.9 models/activation_offloading.py: nothing that a model's `lm_head` saves is moved, all of that module here.
  const bool stays = std::string_view{names.module} == "lm_head" && net.tape.set_offloading(false);
  Tensor h = net.linear(names.dense, std::move(hidden), width, true);
  h = activate(activation, std::move(h));
  h = net.layer_norm(names.norm, std::move(h));
  Tensor logits = net.lm_head(names.decoder, std::move(h), net.V, true);
  if (stays) net.tape.set_offloading(true);
  return logits;
}

Outputs wide_masked_lm(Net& net, const Program& program, Tensor hidden) {
  Outputs out;
  Tensor logits = program.lm_head(net, std::move(hidden));
  const Tensor wide = to(logits, Dtype::kFp32);
  out.loss = plain_cross_entropy(net, wide);
  out.rest = {std::move(logits)};
  return out;
}

Outputs bert_body(Net& net, const Program& program, Tensor hidden) {
  return body_with_pooler(net, program, std::move(hidden), bert_pool);
}

// BertForPreTraining: both heads, both losses.
Outputs bert_pre_training(Net& net, const Program& program, Tensor hidden) {
  Scope in(net.tape, "", kPreTraining);
  const Tensor pooled = bert_pool(net, hidden);
  Tensor words = program.lm_head(net, std::move(hidden));
  Tensor relation = net.classifier("cls.seq_relationship", pooled, Dim(2), true);
  Tensor next_loss = cross_entropy(relation, net.more_labels);
  Outputs out;
  out.loss = plain_cross_entropy(net, words);
  out.loss = add(std::move(out.loss), std::move(next_loss));
  out.rest = {std::move(words), std::move(relation)};
  return out;
}

Outputs bert_next_sentence(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kNextSentence);
  const Tensor pooled = bert_pool(net, hidden);
  Tensor logits = net.classifier("cls.seq_relationship", pooled, Dim(2), true);
  Outputs out;
  out.loss = plain_cross_entropy(net, logits);
  out.rest = {std::move(logits)};
  return out;
}

Outputs bert_sequence(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kClassifier);
  Tensor pooled = bert_pool(net, hidden);
  pooled = dropout(std::move(pooled), net.arch.classifier_dropout);
  Tensor logits = net.classifier("classifier", std::move(pooled), Dim(net.arch.num_labels), true);
  return classified(net, std::move(logits));
}

// RobertaClassificationHead.forward: a layer of its own in the pooler's place.
Outputs roberta_sequence(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "classifier", kRobertaClassifier);
  const double p = net.arch.classifier_dropout;
  Tensor x = select(std::move(hidden), 1);
  x = dropout(std::move(x), p);
  x = net.classifier("classifier.dense", std::move(x), net.H, true);
  x = tanh(std::move(x));
  x = dropout(std::move(x), p);
  Tensor logits = net.classifier("classifier.out_proj", std::move(x), Dim(net.arch.num_labels), true);
  return classified(net, std::move(logits));
}

// BertForTokenClassification and its like: CrossEntropyLoss in the logits' own dtype. DistilBERT's dropout is the
// model's.
Outputs encoder_tokens(Net& net, const Program&, Tensor hidden) {
  const bool distil = net.arch.model_type == "distilbert";
  Scope in(net.tape, "", distil ? kDistilTokens : kTokens);
  const Tensor x = dropout(std::move(hidden), distil ? net.arch.residual_dropout : net.arch.classifier_dropout);
  return labelled(net, net.classifier("classifier", x, Dim(net.arch.num_labels), true));
}

Outputs encoder_span(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", net.arch.model_type == "distilbert" ? kDistilSpan : kSpan);
  const Tensor x = dropout(std::move(hidden), net.arch.qa_dropout);
  Tensor logits = net.classifier("qa_outputs", x, Dim(2), true);
  return spans(net, std::move(logits));
}

// RobertaForMultipleChoice takes the model's dropout, BertForMultipleChoice the classifier's.
Outputs bert_choice(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kChoice);
  Tensor pooled = bert_pool(net, hidden);
  pooled =
      dropout(std::move(pooled), names_of(net).is_roberta ? net.arch.residual_dropout : net.arch.classifier_dropout);
  return choose(net, std::move(pooled));
}

namespace {

constexpr HeadForward kRobertaHeads[] = {{Head::kMaskedLm, masked_lm},
                                         {Head::kCausalLm, causal_lm},
                                         {Head::kSequenceClassification, roberta_sequence},
                                         {Head::kTokenClassification, encoder_tokens},
                                         {Head::kQuestionAnswering, encoder_span},
                                         {Head::kMultipleChoice, bert_choice},
                                         {Head::kNone, bert_body}};

// -- DistilBERT
// ---------------------------------------------------------------------------------------------------------

Tensor distilbert_embed(Net& net) {
  Tensor h;
  {
    Scope in(net.tape, "distilbert.embeddings", kDistilEmbeddings);
    net.tape.buffer("embeddings.position_ids", 8 * net.arch.max_positions);
    const Tensor embeds = net.token_embedding("distilbert.embeddings.word_embeddings", net.H);
    const Tensor ids = net.tape.part_of_buffer(Shape{Dim(1), net.S}, Dtype::kInt64);
    const Tensor positions =
        net.embedding("distilbert.embeddings.position_embeddings", ids, Dim(net.arch.max_positions), net.H);
    h = add(embeds, positions);
    h = net.layer_norm("distilbert.embeddings.LayerNorm", std::move(h));
    h = dropout(std::move(h), net.arch.embedding_dropout);
  }
  make_bidirectional_mask(net, h);
  net.model_locals = {h};
  return h;
}

Tensor distilbert_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kDistilLayer);
  const Tensor x = std::move(hidden);
  Tensor attention_output;
  {
    Scope self(net.tape, "attention", kDistilAttention);
    Tensor q = net.linear("attention.q_lin", x, net.H, true);
    q = split_heads(net, std::move(q), net.A, net.hd);
    Tensor k = net.linear("attention.k_lin", x, net.H, true);
    k = split_heads(net, std::move(k), net.A, net.hd);
    Tensor v = net.linear("attention.v_lin", x, net.H, true);
    v = split_heads(net, std::move(v), net.A, net.hd);
    Tensor out = attention(net, q, k, v, encoder_attention(net));
    attention_output = net.linear("attention.out_lin", std::move(out), net.H, true);
  }
  Tensor sum = add(attention_output, x);
  attention_output = net.layer_norm("sa_layer_norm", std::move(sum));
  Tensor ffn_output;
  {
    Scope ffn(net.tape, "ffn", kDistilFfn);
    Tensor h = net.linear("ffn.lin1", attention_output, net.F, true);
    h = activate(net.arch.activation, std::move(h));
    h = net.linear("ffn.lin2", std::move(h), net.H, true);
    ffn_output = dropout(std::move(h), net.arch.residual_dropout);
  }
  sum = add(ffn_output, attention_output);
  return net.layer_norm("output_layer_norm", std::move(sum));
}

Tensor distilbert_lm_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kDistilMaskedLm);
  Tensor h = net.linear("vocab_transform", std::move(hidden), net.H, true);
  h = activate(net.arch.activation, std::move(h));
  h = net.layer_norm("vocab_layer_norm", std::move(h));
  return net.lm_head("vocab_projector", std::move(h), net.V, true);
}

// The first token's vector through pre_classifier.
Tensor distilbert_pool(Net& net, const Tensor& hidden) {
  Tensor pooled = net.classifier("pre_classifier", select(hidden, 1), net.H, true);
  pooled = relu(std::move(pooled));
  return dropout(std::move(pooled), net.arch.classifier_dropout);
}

Outputs distilbert_sequence(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kDistilClassifier);
  Tensor pooled = distilbert_pool(net, hidden);
  Tensor logits = net.classifier("classifier", std::move(pooled), Dim(net.arch.num_labels), true);
  return classified(net, std::move(logits));
}

Outputs distilbert_choice(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kDistilChoice);
  Tensor pooled = distilbert_pool(net, hidden);
  return choose(net, std::move(pooled));
}

constexpr HeadForward kDistilBertHeads[] = {{Head::kMaskedLm, masked_lm},
                                            {Head::kSequenceClassification, distilbert_sequence},
                                            {Head::kTokenClassification, encoder_tokens},
                                            {Head::kQuestionAnswering, encoder_span},
                                            {Head::kMultipleChoice, distilbert_choice},
                                            {Head::kNone, body_alone}};

// modeling_xlm_roberta.py, modeling_camembert.py: …ForMaskedLM and …ForCausalLM.
constexpr ClassFacts kDataFacts = {
    .no_split = NoSplit::kAbsentToo, .named_anew_since = 15, .named_anew = NoSplit::kEmbeddings};
constexpr ClassFacts kHeadFirst = {.head_first = true, .no_split = NoSplit::kEmbeddings};
constexpr ClassFacts kFacts = {.no_split = NoSplit::kNoneButSaid};

}  // namespace

AttentionOptions encoder_attention(Net& net) {
  AttentionOptions options;
  options.mask = net.shared.causal_mask;
  options.dropout = net.arch.attention_dropout;
  options.causal = false;
  options.has_groups = false;
  options.softmax_fp32 = false;
  options.cast_back = false;
  return options;
}

// The encoders end with their last layer's norm.
Tensor no_norm(Net&, Tensor hidden) {
  return hidden;
}

const Program kBertProgram = {one_stack<bert_embed, bert_layer, no_norm>, bert_lm_head, kBertHeads};
const Program kRobertaProgram = {one_stack<bert_embed, bert_layer, no_norm>, bert_lm_head, kRobertaHeads};

// transformers 5.12.1 modeling_xlm_roberta.py, modeling_camembert.py: …ForMultipleChoice builds its body without a
// pooler and reads outputs[1].
void check_pooler(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (a.head != Head::kMultipleChoice || !job.framework.at_least(5, 0)) return;
  issues.push_back(
      {"INVALID_VALUE", Severity::kError, "/config/architectures",
       "transformers 5.12.1 cannot run this class: its body has no pooler, which its forward reads (IndexError). Use "
       "RobertaForMultipleChoice.",
       ""});
}

const Program kXlmRobertaProgram = {.forward = one_stack<bert_embed, bert_layer, no_norm>,
                                    .lm_head = bert_lm_head,
                                    .heads = kRobertaHeads,
                                    .check = check_pooler};
const Program kXlProgram = {one_stack<bert_embed, xl_layer, xl_norm>, bert_lm_head, kRobertaHeads};
const Program kPreLayerNormProgram = {one_stack<bert_embed, prelayernorm_layer, prelayernorm_norm>, bert_lm_head,
                                      kRobertaHeads};
const Program kDistilBertProgram = {one_stack<distilbert_embed, distilbert_layer, no_norm>, distilbert_lm_head,
                                    kDistilBertHeads};

const Family kRows[] = {
    {"bert", "Bert", "BertForMaskedLM", kBertClasses, read_bert_config, &kBertProgram, "bert.encoder.layer",
     kNamesEmbeddings},
    {"roberta", "Roberta", "RobertaForMaskedLM", kRobertaClasses, read_roberta_config, &kRobertaProgram,
     "roberta.encoder.layer", kNamesEmbeddings},
    {"xlm-roberta", "XLMRoberta", "XLMRobertaForMaskedLM", kRobertaClasses, read_roberta_config, &kXlmRobertaProgram,
     "roberta.encoder.layer", kHeadFirst},
    {"camembert", "Camembert", "CamembertForMaskedLM", kRobertaClasses, read_roberta_config, &kXlmRobertaProgram,
     "roberta.encoder.layer", kHeadFirst},
    {"xlm-roberta-xl", "XLMRobertaXL", "XLMRobertaXLForMaskedLM", kRobertaClasses, read_xl_config, &kXlProgram,
     "roberta.encoder.layer", kNamesEmbeddings},
    {"data2vec-text", "Data2VecText", "Data2VecTextForMaskedLM", kRobertaClasses, read_roberta_config, &kRobertaProgram,
     "data2vec_text.encoder.layer", kDataFacts},
    {"roberta-prelayernorm", "RobertaPreLayerNorm", "RobertaPreLayerNormForMaskedLM", kRobertaClasses,
     read_prelayernorm_config, &kPreLayerNormProgram, "roberta_prelayernorm.encoder.layer", kNamesAbsentToo},
    {"ernie", "Ernie", "ErnieForMaskedLM", kErnieClasses, read_ernie_config, &kBertProgram, "ernie.encoder.layer"},
    {"distilbert", "DistilBert", "DistilBertForMaskedLM", kDistilBertClasses, read_distilbert_config,
     &kDistilBertProgram, "distilbert.transformer.layer", kFacts},
};

extern const FamilyRows bert_rows;
const FamilyRows bert_rows = kRows;

}  // namespace tidemark
