// ELECTRA: BERT's layers behind embeddings of a width of their own, with heads that take gelu where BERT takes tanh.
#include <string_view>

#include "core/families/family.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/electra/configuration_electra.py: ElectraConfig. A generator's or a small model's
// embeddings are narrower than its layers.
void read_electra_config(ConfigFields& fields, Architecture& architecture) {
  read_bert_config(fields, architecture);
  const Count width = fields.count({"embedding_size"}, 128);
  if (width != architecture.hidden_size) architecture.embedding_dim = width;
  architecture.summary_dropout = fields.probability({"summary_last_dropout"}, 0.1);
  for (const std::string_view key : {"summary_type", "summary_activation"}) {
    const std::string_view usual = key == "summary_type" ? "first" : "gelu";
    if (fields.text({key}, usual) != usual) fields.error("INVALID_VALUE", key, "Only the class's default is modelled.");
  }
  if (!fields.flag({"summary_use_proj"}, true)) {
    fields.error("INVALID_VALUE", "summary_use_proj", "Only the class's default is modelled.");
  }
}

constexpr const char* kModel = "transformers 5.12 models/electra/modeling_electra.py: ElectraModel.forward";
constexpr const char* kGenerator =
    "transformers 5.12 models/electra/modeling_electra.py: ElectraGeneratorPredictions.forward";
constexpr const char* kDiscriminator =
    "transformers 5.12 models/electra/modeling_electra.py: ElectraDiscriminatorPredictions.forward";
constexpr const char* kClassifier =
    "transformers 5.12 models/electra/modeling_electra.py: ElectraClassificationHead.forward";
constexpr const char* kSummary = "transformers 5.12 models/electra/modeling_electra.py: ElectraSequenceSummary.forward";

constexpr ClassSuffix kClasses[] = {{"ForMaskedLM", Head::kMaskedLm},
                                    {"ForPreTraining", Head::kReplacedTokens},
                                    {"ForSequenceClassification", Head::kSequenceClassification},
                                    {"ForTokenClassification", Head::kTokenClassification},
                                    {"ForQuestionAnswering", Head::kQuestionAnswering},
                                    {"ForMultipleChoice", Head::kMultipleChoice},
                                    {"Model", Head::kNone}};

constexpr EmbeddingNames kNames = {"electra.embeddings", "electra.embeddings.word_embeddings",
                                   "electra.embeddings.token_type_embeddings", "electra.embeddings.position_embeddings",
                                   "electra.embeddings.LayerNorm"};

Dim width_of(const Net& net) {
  return net.arch.embedding_dim > 0 ? Dim(net.arch.embedding_dim) : net.H;
}

Tensor embed(Net& net) {
  Tensor h = bert_embeddings(net, kNames, width_of(net), false);
  if (net.arch.embedding_dim > 0) {
    Scope in(net.tape, "", kModel);
    h = net.linear("electra.embeddings_project", std::move(h), net.H, true);
  }
  make_bidirectional_mask(net, h);
  net.model_locals = {h};
  return h;
}

Tensor lm_head(Net& net, Tensor hidden) {
  Tensor h;
  {
    Scope in(net.tape, "generator_predictions", kGenerator);
    h = net.linear("generator_predictions.dense", std::move(hidden), width_of(net), true);
    h = gelu(std::move(h));
    h = net.layer_norm("generator_predictions.LayerNorm", std::move(h));
  }
  return net.lm_head("generator_lm_head", std::move(h), net.V, true);
}

// Was each token replaced? With a mask only the logits of real tokens count: a copy of them, and of their labels.
Outputs replaced_tokens(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "discriminator_predictions", kDiscriminator);
  Tape& t = net.tape;
  Tensor h = net.linear("discriminator_predictions.dense", std::move(hidden), net.H, true);
  h = activate(net.arch.activation, std::move(h));
  Tensor logits = net.linear("discriminator_predictions.dense_prediction", std::move(h), Dim(1), true);
  logits = view(std::move(logits), Shape{net.B, net.S});
  Tensor active = logits, labels = net.labels;
  if (net.attention_mask.defined()) {
    const Tensor chosen = t.allocate(Shape{net.T}, Dtype::kInt64, "nonzero");
    active = view(logits, Shape{net.T});
    active = index_rows(std::move(active), chosen);
    labels = t.allocate(Shape{net.T}, Dtype::kInt64, "index");
  }
  labels = to(std::move(labels), Dtype::kFp32);
  Outputs out;
  out.loss = binary_cross_entropy_with_logits(std::move(active), std::move(labels));
  out.rest = {std::move(logits)};
  return out;
}

Outputs sequence(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "classifier", kClassifier);
  const double p = net.arch.classifier_dropout;
  Tensor x = select(std::move(hidden), 1);
  x = dropout(std::move(x), p);
  x = net.classifier("classifier.dense", std::move(x), net.H, true);
  x = gelu(std::move(x));
  x = dropout(std::move(x), p);
  return classified(net, net.classifier("classifier.out_proj", std::move(x), Dim(net.arch.num_labels), true));
}

Outputs tokens(Net& net, const Program&, Tensor hidden) {
  const Tensor x = dropout(std::move(hidden), net.arch.classifier_dropout);
  return labelled(net, net.classifier("classifier", x, Dim(net.arch.num_labels), true));
}

Outputs span(Net& net, const Program&, Tensor hidden) {
  return spans(net, net.classifier("qa_outputs", std::move(hidden), Dim(2), true));
}

Outputs choice(Net& net, const Program&, Tensor hidden) {
  Tensor x = select(std::move(hidden), 1);
  {
    Scope in(net.tape, "sequence_summary", kSummary);
    x = net.linear("sequence_summary.summary", std::move(x), net.H, true);
    x = gelu(std::move(x));
    x = dropout(std::move(x), net.arch.summary_dropout);
  }
  return choose(net, std::move(x));
}

constexpr HeadForward kHeads[] = {{Head::kMaskedLm, masked_lm},
                                  {Head::kReplacedTokens, replaced_tokens},
                                  {Head::kSequenceClassification, sequence},
                                  {Head::kTokenClassification, tokens},
                                  {Head::kQuestionAnswering, span},
                                  {Head::kMultipleChoice, choice},
                                  {Head::kNone, body_alone}};

}  // namespace

const Program kElectraProgram = {one_stack<embed, bert_layer, no_norm>, lm_head, kHeads};

const Family kRows[] = {
    {"electra", "Electra", "ElectraForMaskedLM", kClasses, read_electra_config, &kElectraProgram,
     "electra.encoder.layer", kNamesNone},
};

extern const FamilyRows electra_rows;
const FamilyRows electra_rows = kRows;

}  // namespace tidemark
