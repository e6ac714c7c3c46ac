// Nomic's, Jina's and Alibaba's (GTE) embedding models: BERT's embeddings, heads and norms behind the branches, with
// rotation in place of a table of positions.
#include "core/families/bert_heads.hpp"
#include "core/families/family.hpp"

namespace tidemark {
namespace {

// One probability for the embeddings and for both branches, whose dropouts are the layer's: those of Llama's attention
// and feed-forward stay 0.
void finish(Architecture& architecture) {
  architecture.rotary_dim = architecture.head_dim;
  architecture.residual_dropout = 0.0;
}

// transformers 5.12.1 models/nomic_bert/configuration_nomic_bert.py: NomicBertConfig. The file that its classes convert
// has GPT-2's words for the same.
void read_nomic_config(ConfigFields& fields, Architecture& architecture) {
  read_bert_config(fields, architecture);
  architecture.max_positions = fields.count({"max_position_embeddings"}, 2048);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  const double dropout = fields.probability({"hidden_dropout_prob"}, 0.0);
  architecture.embedding_dropout = dropout;
  architecture.attention_dropout = fields.probability({"attention_probs_dropout_prob"}, 0.0);
  architecture.classifier_dropout = fields.probability({"classifier_dropout"}, dropout);
  architecture.attention_bias = false;
  architecture.attention_out_bias = false;
  architecture.mlp_bias = false;
  finish(architecture);
}

// transformers 5.12.1 models/jina_embeddings_v3/configuration_jina_embeddings_v3.py: JinaEmbeddingsV3Config.
void read_jina_config(ConfigFields& fields, Architecture& architecture) {
  read_bert_config(fields, architecture);
  architecture.max_positions = fields.count({"max_position_embeddings"}, 8194);
  architecture.type_vocab_size = fields.count({"type_vocab_size"}, 1);
  finish(architecture);
}

// transformers 5.24 models/gte/configuration_gte.py: GteConfig. Without kinds of tokens gte-base-en has no table of
// them.
void read_gte_config(ConfigFields& fields, Architecture& architecture) {
  read_bert_config(fields, architecture);
  architecture.max_positions = fields.count({"max_position_embeddings"}, 8192);
  architecture.type_vocab_size = fields.count({"type_vocab_size"}, 1, 0);
  architecture.attention_dropout = fields.probability({"attention_probs_dropout_prob"}, 0.0);
  finish(architecture);
}

constexpr const char* kModel =
    "transformers 5.12 models/jina_embeddings_v3/modeling_jina_embeddings_v3.py: JinaEmbeddingsV3Model.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/jina_embeddings_v3/modeling_jina_embeddings_v3.py: JinaEmbeddingsV3Attention.forward";
constexpr const char* kMlp =
    "transformers 5.12 models/jina_embeddings_v3/modeling_jina_embeddings_v3.py: JinaEmbeddingsV3MLP.forward";
constexpr const char* kLayer =
    "transformers 5.12 models/jina_embeddings_v3/modeling_jina_embeddings_v3.py: JinaEmbeddingsV3Layer.forward";

constexpr const char* kGteEmbeddings = "transformers 5.24 models/gte/modeling_gte.py: GteEmbeddings.forward";
constexpr const char* kGteMlp = "transformers 5.24 models/gte/modeling_gte.py: GteMLP.forward";
constexpr const char* kGteHead = "transformers 5.24 models/gte/modeling_gte.py: GteLMHead.forward";

constexpr ClassSuffix kNomicClasses[] = {{"ForMaskedLM", Head::kMaskedLm},
                                         {"ForSequenceClassification", Head::kSequenceClassification},
                                         {"ForTokenClassification", Head::kTokenClassification},
                                         {"Model", Head::kNone}};
constexpr ClassSuffix kJinaClasses[] = {{"ForMaskedLM", Head::kMaskedLm},
                                        {"ForSequenceClassification", Head::kSequenceClassification},
                                        {"ForTokenClassification", Head::kTokenClassification},
                                        {"ForQuestionAnswering", Head::kQuestionAnswering},
                                        {"Model", Head::kNone}};

template <const BertNames& kNames>
Tensor embed(Net& net) {
  Scope in(net.tape, "", kModel);
  make_position_ids(net);
  Tensor h = bert_embeddings(net, kNames.embeddings, net.H, false);
  make_bidirectional_mask(net, h);
  rotary_tables(net, h.dtype(), net.arch.rotary_dim);
  net.model_locals = {h};
  return h;
}

Tensor self_attention(Net& net, Tensor x) {
  return qkv_attention(net, std::move(x), kAttention, rotate_both, encoder_attention(net));
}

Tensor plain_mlp(Net& net, Tensor x) {
  Scope in(net.tape, "mlp", kMlp);
  Tensor h = net.linear("mlp.fc1", std::move(x), net.F, true);
  h = activate(net.arch.activation, std::move(h));
  return net.linear("mlp.fc2", std::move(h), net.H, true);
}

Tensor gte_embed(Net& net) {
  make_position_ids(net);
  Tensor h;
  {
    Scope in(net.tape, "gte.embeddings", kGteEmbeddings);
    h = net.token_embedding("gte.embeddings.word_embeddings", net.H);
    if (net.arch.type_vocab_size > 0) {
      const Tensor types = net.tape.allocate(Shape{net.B, net.S}, Dtype::kInt64, "zeros");
      Tensor rows = net.embedding("gte.embeddings.token_type_embeddings", types, Dim(net.arch.type_vocab_size), net.H);
      h = add(std::move(h), std::move(rows));
    }
    h = net.layer_norm("gte.embeddings.LayerNorm", std::move(h));
    h = dropout(std::move(h), net.arch.embedding_dropout);
  }
  Scope in(net.tape, "", kModel);
  make_bidirectional_mask(net, h);
  rotary_tables(net, h.dtype(), net.arch.rotary_dim);
  net.model_locals = {h};
  return h;
}

Tensor gte_mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kGteMlp);
  const Tensor x = std::move(hidden);
  Tensor h = net.linear("mlp.gate_proj", x, net.F);
  h = activate(net.arch.activation, std::move(h));
  Tensor up = net.linear("mlp.up_proj", x, net.F);
  h = mul(std::move(h), std::move(up));
  h = dropout(std::move(h), net.arch.embedding_dropout);
  return net.linear("mlp.down_proj", h, net.H, true);
}

constexpr BertHeadNames kGteHeadNames = {"lm_head", "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder"};

Tensor gte_lm_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kGteHead);
  return bert_predictions(net, kGteHeadNames, std::move(hidden), net.H, Activation::kGelu);
}

// `attention_output` has its name until the layer returns, while the dropouts' results go.
template <Branch kMlpOf>
Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  const Tensor attention_output = self_attention(net, residual);
  Tensor h = add(residual, dropout(attention_output, net.arch.embedding_dropout));
  h = net.layer_norm("post_attention_layernorm", std::move(h));
  residual = h;
  h = kMlpOf(net, std::move(h));
  h = add(residual, dropout(std::move(h), net.arch.embedding_dropout));
  return net.layer_norm("post_mlp_layernorm", std::move(h));
}

constexpr HeadForward kNomicHeads[] = {{Head::kMaskedLm, masked_lm},
                                       {Head::kSequenceClassification, bert_sequence},
                                       {Head::kTokenClassification, encoder_tokens},
                                       {Head::kNone, body_alone}};
constexpr HeadForward kJinaHeads[] = {{Head::kMaskedLm, masked_lm},
                                      {Head::kSequenceClassification, roberta_sequence},
                                      {Head::kTokenClassification, encoder_tokens},
                                      {Head::kQuestionAnswering, encoder_span},
                                      {Head::kNone, bert_body}};

}  // namespace

const BertNames kNomicBertNames = {
    {"nomic_bert.embeddings", "nomic_bert.embeddings.word_embeddings", "nomic_bert.embeddings.token_type_embeddings",
     nullptr, "nomic_bert.embeddings.LayerNorm"},
    "nomic_bert.pooler.dense",
    {"cls.predictions", "cls.predictions.transform.dense", "cls.predictions.transform.layer_norm",
     "cls.predictions.decoder"}};
const BertNames kJinaNames = {{"roberta.embeddings", "roberta.embeddings.word_embeddings",
                               "roberta.embeddings.token_type_embeddings", nullptr, "roberta.embeddings.LayerNorm"},
                              "roberta.pooler.dense",
                              {"lm_head", "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder"},
                              true};

const BertNames kGteNames = {{"gte.embeddings", "gte.embeddings.word_embeddings",
                              "gte.embeddings.token_type_embeddings", nullptr, "gte.embeddings.LayerNorm"},
                             "gte.pooler.dense",
                             kGteHeadNames};

const Program kNomicBertProgram = {one_stack<embed<kNomicBertNames>, layer<llama_mlp>, no_norm>, bert_lm_head,
                                   kNomicHeads};
const Program kJinaProgram = {one_stack<embed<kJinaNames>, layer<plain_mlp>, no_norm>, bert_lm_head, kJinaHeads};
const Program kGteProgram = {one_stack<gte_embed, layer<gte_mlp>, no_norm>, gte_lm_head, kNomicHeads};

constexpr ClassFacts kFacts = {.no_split = NoSplit::kEmbeddings, .layer_first = "mlp"};
constexpr ClassFacts kHeadFirst = {.head_first = true, .no_split = NoSplit::kEmbeddings, .layer_first = "mlp"};

const Family kRows[] = {
    {"nomic_bert", "NomicBert", "NomicBertForMaskedLM", kNomicClasses, read_nomic_config, &kNomicBertProgram,
     "nomic_bert.layers", kFacts},
    {"jina_embeddings_v3", "JinaEmbeddingsV3", "JinaEmbeddingsV3ForMaskedLM", kJinaClasses, read_jina_config,
     &kJinaProgram, "roberta.layers", kHeadFirst},
    {"gte", "Gte", "GteForMaskedLM", kNomicClasses, read_gte_config, &kGteProgram, "gte.layers", kFacts},
};

extern const FamilyRows rotary_bert_rows;
const FamilyRows rotary_bert_rows = kRows;

}  // namespace tidemark
