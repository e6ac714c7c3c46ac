// MobileBERT: BERT whose layers work in a narrow stream beside the wide one, with four feed-forwards each, and whose
// norms are a product and a sum.
#include <algorithm>

#include "core/families/bert_heads.hpp"
#include "core/families/family.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {

extern const BertNames kMobileBertNames = {
    {"mobilebert.embeddings", "mobilebert.embeddings.word_embeddings", "mobilebert.embeddings.token_type_embeddings",
     "mobilebert.embeddings.position_embeddings", "mobilebert.embeddings.LayerNorm"},
    "mobilebert.pooler.dense",
    kBertHead};
// Without `classifier_activation` the pooled vector is the first token's.
extern const BertNames kMobileBertPlainNames = {kMobileBertNames.embeddings, nullptr, kBertHead};

namespace {

struct FeedForwardNames {
  const char *module, *up, *down, *norm;
};
constexpr FeedForwardNames kFeedForwards[] = {
    {"ffn.0", "ffn.0.intermediate.dense", "ffn.0.output.dense", "ffn.0.output.LayerNorm"},
    {"ffn.1", "ffn.1.intermediate.dense", "ffn.1.output.dense", "ffn.1.output.LayerNorm"},
    {"ffn.2", "ffn.2.intermediate.dense", "ffn.2.output.dense", "ffn.2.output.LayerNorm"}};

void usual(ConfigFields& fields, const char* key, bool value) {
  if (fields.flag({key}, value) != value) fields.error("INVALID_VALUE", key, "Only the class's default is modelled.");
}

// transformers 5.24 models/mobilebert/configuration_mobilebert.py: MobileBertConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_bert_config(fields, architecture);
  architecture.activation = read_activation(fields, {"hidden_act"}, "relu");
  const double dropout = fields.probability({"hidden_dropout_prob"}, 0.0);
  architecture.residual_dropout = architecture.embedding_dropout = dropout;
  architecture.classifier_dropout = fields.probability({"classifier_dropout"}, dropout);
  architecture.embedding_dim = fields.count({"embedding_size"}, 128);
  if (architecture.hidden_size > 0 && architecture.embedding_dim >= architecture.hidden_size) {
    fields.error("INVALID_VALUE", "embedding_size", "Embeddings as wide as the layers are not modelled.");
  }
  const Count narrow = fields.count({"intra_bottleneck_size"}, 128);
  if (architecture.num_heads > 0) {
    if (narrow % architecture.num_heads != 0) {
      fields.error("INVALID_VALUE", "intra_bottleneck_size", "The attention's heads do not divide it.");
    }
    architecture.head_dim = std::max<Count>(1, narrow / architecture.num_heads);
  }
  architecture.pooler_size = fields.flag({"classifier_activation"}, true) ? architecture.hidden_size : 0;
  usual(fields, "trigram_input", true);
  usual(fields, "use_bottleneck", true);
  usual(fields, "use_bottleneck_attention", false);
  usual(fields, "key_query_shared_bottleneck", true);
  if (fields.count({"num_feedforward_networks"}, 4) != 4) {
    fields.error("INVALID_VALUE", "num_feedforward_networks", "Only the class's default is modelled.");
  }
  if (fields.text({"normalization_type"}, "no_norm") != "no_norm") {
    fields.error("INVALID_VALUE", "normalization_type", "Only the class's default is modelled.");
  }
}

constexpr const char* kEmbeddings =
    "transformers 5.24 models/mobilebert/modeling_mobilebert.py: MobileBertEmbeddings.forward";
constexpr const char* kNoNorm = "transformers 5.24 models/mobilebert/modeling_mobilebert.py: NoNorm.forward";
constexpr const char* kLayer = "transformers 5.24 models/mobilebert/modeling_mobilebert.py: MobileBertLayer.forward";
constexpr const char* kBottleneck = "transformers 5.24 models/mobilebert/modeling_mobilebert.py: Bottleneck.forward";
constexpr const char* kAttention =
    "transformers 5.24 models/mobilebert/modeling_mobilebert.py: MobileBertSelfAttention.forward";
constexpr const char* kHead =
    "transformers 5.24 models/mobilebert/modeling_mobilebert.py: MobileBertLMPredictionHead.forward";

constexpr ClassSuffix kClasses[] = {{"ForMaskedLM", Head::kMaskedLm},
                                    {"ForPreTraining", Head::kPreTraining},
                                    {"ForNextSentencePrediction", Head::kNextSentence},
                                    {"ForSequenceClassification", Head::kSequenceClassification},
                                    {"ForTokenClassification", Head::kTokenClassification},
                                    {"ForQuestionAnswering", Head::kQuestionAnswering},
                                    {"ForMultipleChoice", Head::kMultipleChoice},
                                    {"Model", Head::kNone}};

Tensor no_norm_of(Net& net, const char* name, Tensor x_in) {
  Scope in(net.tape, name, kNoNorm);
  const Tensor x = std::move(x_in);
  const Tensor bias = net.parameter(name, "bias", Shape{x.dim(-1)});
  const Tensor weight = net.parameter(name, "weight", Shape{x.dim(-1)});
  Tensor h = mul(x, weight);
  return add(std::move(h), bias);
}

// Each word beside its neighbours.
Tensor trigrams(Net& net, Tensor words_in) {
  const Tensor words = std::move(words_in);
  const Dim most(net.S.n() - 1);
  const Tensor next = pad(narrow(words, 1, 1, most), 1, 1);
  const Tensor last = pad(narrow(words, 1, 0, most), 1, 1);
  return cat({&next, &words, &last}, 2);
}

Tensor embed(Net& net) {
  Tensor h;
  {
    Scope in(net.tape, "mobilebert.embeddings", kEmbeddings);
    const EmbeddingNames& names = kMobileBertNames.embeddings;
    net.tape.buffer("embeddings.position_ids", 8 * net.arch.max_positions);
    const Tensor ids = net.tape.part_of_buffer(Shape{Dim(1), net.S}, Dtype::kInt64);
    const Tensor types = net.tape.allocate(Shape{net.B, net.S}, Dtype::kInt64, "zeros");
    Tensor embeds = net.token_embedding(names.words, Dim(net.arch.embedding_dim));
    embeds = trigrams(net, std::move(embeds));
    embeds = net.linear("mobilebert.embeddings.embedding_transformation", std::move(embeds), net.H, true);
    const Tensor positions = net.embedding(names.positions, ids, Dim(net.arch.max_positions), net.H);
    const Tensor of_types = net.embedding(names.types, types, Dim(net.arch.type_vocab_size), net.H);
    h = add(embeds, positions);
    h = add(std::move(h), of_types);
    h = no_norm_of(net, names.norm, std::move(h));
    h = dropout(std::move(h), net.arch.embedding_dropout);
  }
  make_bidirectional_mask(net, h);
  net.model_locals = {h};
  return h;
}

// Dense and norm.
Tensor bottleneck(Net& net, const char* module, const char* dense, const char* norm, const Tensor& x) {
  Scope in(net.tape, module, kBottleneck);
  Tensor h = net.linear(dense, x, net.Q, true);
  return no_norm_of(net, norm, std::move(h));
}

// Dense, the sum with what came in, and its norm.
Tensor join(Net& net, const char* module, const char* dense, const char* norm, const Tensor& x, const Tensor& input,
            double p = 0.0) {
  Scope in(net.tape, module, kLayer);
  Tensor h = net.linear(dense, x, input.dim(-1), true);
  h = dropout(std::move(h), p);
  Tensor sum = add(h, input);
  return no_norm_of(net, norm, std::move(sum));
}

Tensor intermediate(Net& net, const char* module, const char* dense, const Tensor& x) {
  Scope in(net.tape, module, kLayer);
  Tensor h = net.linear(dense, x, net.F, true);
  return activate(net.arch.activation, std::move(h));
}

Tensor self_attention(Net& net, const Tensor& shared, const Tensor& value_states) {
  Scope in(net.tape, "attention.self", kAttention);
  const Tensor q = split_heads(net, net.linear("attention.self.query", shared, net.Q, true), net.A, net.hd);
  const Tensor k = split_heads(net, net.linear("attention.self.key", shared, net.Q, true), net.A, net.hd);
  const Tensor v = split_heads(net, net.linear("attention.self.value", value_states, net.Q, true), net.A, net.hd);
  return attention(net, q, k, v, encoder_attention(net));
}

Tensor mobilebert_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor x = std::move(hidden);
  const Tensor layer_input =
      bottleneck(net, "bottleneck.input", "bottleneck.input.dense", "bottleneck.input.LayerNorm", x);
  const Tensor shared =
      bottleneck(net, "bottleneck.attention", "bottleneck.attention.dense", "bottleneck.attention.LayerNorm", x);
  Tensor self_output;
  {
    const Tensor attended = self_attention(net, shared, x);
    self_output =
        join(net, "attention.output", "attention.output.dense", "attention.output.LayerNorm", attended, layer_input);
  }
  Tensor h = self_output;
  for (const FeedForwardNames& names : kFeedForwards) {
    const Tensor wide = intermediate(net, names.module, names.up, h);
    h = join(net, names.module, names.down, names.norm, wide, h);
  }
  const Tensor attention_output = std::move(h);
  const Tensor wide = intermediate(net, "intermediate", "intermediate.dense", attention_output);
  h = join(net, "output", "output.dense", "output.LayerNorm", wide, attention_output);
  return join(net, "output.bottleneck", "output.bottleneck.dense", "output.bottleneck.LayerNorm", h, x,
              net.arch.residual_dropout);
}

// The table's columns beside those of a matrix of its own, as one matrix.
Tensor lm_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  if (!net.arch.tie_word_embeddings) {
    const Tensor unread = net.parameter(kBertHead.module, "bias", Shape{net.V});
  }
  Tensor h = net.linear(kBertHead.dense, std::move(hidden), net.H, true);
  h = activate(net.arch.activation, std::move(h));
  h = net.layer_norm(kBertHead.norm, std::move(h));
  const Dim width(net.arch.embedding_dim);
  Tensor matrix;
  {
    const Tensor rest = net.linear_weight("cls.predictions.dense", Dim(net.H.n() - width.n()), net.V);
    const Tensor words = transpose(net.head_weight(kBertHead.decoder, Shape{net.V, width}), 0, 1);
    matrix = cat({&words, &rest}, 0);
  }
  h = matmul(std::move(h), std::move(matrix));
  return add_in_place(std::move(h), net.parameter(kBertHead.decoder, "bias", Shape{net.V}));
}

// transformers 5.24 integrations/bitsandbytes.py: replace_with_bnb_linear packs cls.predictions.dense, too.
void check(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (job.method != Method::kQlora || (a.head != Head::kMaskedLm && a.head != Head::kPreTraining)) return;
  issues.push_back({"INVALID_VALUE", Severity::kError, "/method",
                    "transformers cannot run this class with packed weights: its head joins one of them to the token "
                    "table (RuntimeError). Use MobileBertForSequenceClassification or another class.",
                    ""});
}

}  // namespace

const Program kMobileBertProgram = {
    .forward = one_stack<embed, mobilebert_layer, no_norm>, .lm_head = lm_head, .heads = kBertHeads, .check = check};

const Family kRows[] = {
    {"mobilebert", "MobileBert", "MobileBertForMaskedLM", kClasses, read_config, &kMobileBertProgram,
     "mobilebert.encoder.layer", kNamesNone},
};

extern const FamilyRows mobilebert_rows;
const FamilyRows mobilebert_rows = kRows;

}  // namespace tidemark
