// ALBERT: BERT's layer with other names, whose weights all layers of a group share.
#include <string_view>

#include "core/families/family.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/albert/configuration_albert.py: AlbertConfig. Its PreTrainedModel supports no
// checkpointing.
void read_albert_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 512);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.type_vocab_size = fields.count({"type_vocab_size"}, 2);
  architecture.embedding_dim = fields.count({"embedding_size"}, 128);
  architecture.weight_groups = fields.count({"num_hidden_groups"}, 1);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu_new");
  architecture.norm_before = false;
  architecture.final_norm = false;
  const double dropout = fields.probability({"hidden_dropout_prob"}, 0.0);
  architecture.residual_dropout = dropout;
  architecture.embedding_dropout = dropout;
  architecture.attention_dropout = fields.probability({"attention_probs_dropout_prob"}, 0.0);
  architecture.classifier_dropout = fields.probability({"classifier_dropout_prob"}, 0.1);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  for (const std::string_view key : {"inner_group_num", "num_hidden_groups"}) {
    const Count value = fields.count({key}, 1);
    const bool groups = key == "num_hidden_groups";
    if (groups ? architecture.num_layers > 0 && value > architecture.num_layers : value != 1) {
      fields.error("INVALID_VALUE", key,
                   "ALBERT is modelled with one layer in each group, and no more groups than "
                   "layers.");
    }
  }
  fields.accept({"net_structure_type", "down_scale_factor", "gap_size", "num_memory_blocks"});
}

constexpr const char* kModel = "transformers 5.12 models/albert/modeling_albert.py: AlbertTransformer.forward";
constexpr const char* kAttention = "transformers 5.12 models/albert/modeling_albert.py: AlbertAttention.forward";
constexpr const char* kLayer = "transformers 5.12 models/albert/modeling_albert.py: AlbertLayer.forward";
constexpr const char* kPooler = "transformers 5.12 models/albert/modeling_albert.py: AlbertModel.forward";
constexpr const char* kHead = "transformers 5.12 models/albert/modeling_albert.py: AlbertMLMHead.forward";

constexpr ClassSuffix kClasses[] = {{"ForMaskedLM", Head::kMaskedLm},
                                    {"ForPreTraining", Head::kPreTraining},
                                    {"ForSequenceClassification", Head::kSequenceClassification},
                                    {"ForTokenClassification", Head::kTokenClassification},
                                    {"ForQuestionAnswering", Head::kQuestionAnswering},
                                    {"ForMultipleChoice", Head::kMultipleChoice},
                                    {"Model", Head::kNone}};

constexpr EmbeddingNames kNames = {"albert.embeddings", "albert.embeddings.word_embeddings",
                                   "albert.embeddings.token_type_embeddings", "albert.embeddings.position_embeddings",
                                   "albert.embeddings.LayerNorm"};

Tensor embed(Net& net) {
  const Tensor embeds = bert_embeddings(net, kNames, Dim(net.arch.embedding_dim), false);
  make_bidirectional_mask(net, embeds);
  net.model_locals = {embeds};
  Scope in(net.tape, "albert.encoder", kModel);
  return net.linear("albert.encoder.embedding_hidden_mapping_in", embeds, net.H, true);
}

Tensor attend(Net& net, const Tensor& x) {
  Scope in(net.tape, "albert_layers.0.attention", kAttention);
  const auto heads = [&](const char* name) {
    return split_heads(net, net.linear(name, x, net.Q, true), net.A, net.hd);
  };
  const Tensor q = heads("albert_layers.0.attention.query");
  const Tensor k = heads("albert_layers.0.attention.key");
  const Tensor v = heads("albert_layers.0.attention.value");
  Tensor out = attention(net, q, k, v, encoder_attention(net));
  out = net.linear("albert_layers.0.attention.dense", std::move(out), net.H, true);
  out = dropout(std::move(out), net.arch.residual_dropout);
  Tensor sum = add(x, out);
  return net.layer_norm("albert_layers.0.attention.LayerNorm", std::move(sum));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor x = std::move(hidden);
  const Tensor attended = attend(net, x);
  Tensor h = net.linear("albert_layers.0.ffn", attended, net.F, true);
  h = activate(net.arch.activation, std::move(h));
  h = net.linear("albert_layers.0.ffn_output", std::move(h), net.H, true);
  Tensor sum = add(h, attended);
  return net.layer_norm("albert_layers.0.full_layer_layer_norm", std::move(sum));
}

// A group of layers: what the tape calls a layer is all of them, each with the weights of the first.
Tensor group(Net& net, Tensor hidden) {
  const std::size_t weights = net.tape.parameter_place();
  const Count layers = net.arch.num_layers, groups = net.arch.weight_groups;
  for (Count i = 0; i < layers; ++i) {
    if (i * groups / layers != net.layer_index) continue;
    net.tape.set_parameter_place(weights);
    hidden = layer(net, std::move(hidden));
  }
  return hidden;
}

Tensor forward(Net& net) {
  Stack stack{net.arch.layers_path, net.arch.weight_groups, group};
  stack.checkpoints = false;
  stack.then = Phase::kLoss;
  return net.layers(stack, embed(net));
}

Tensor pool(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "pooler", kPooler);
  return tanh(net.linear("albert.pooler", select(hidden, 1), net.H, true));
}

Tensor lm_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "predictions", kHead);
  // As in BERT: untied, a second bias stays that nothing reads.
  if (!net.arch.tie_word_embeddings) const Tensor unread = net.parameter("predictions", "bias", Shape{net.V});
  Tensor h = net.linear("predictions.dense", std::move(hidden), Dim(net.arch.embedding_dim), true);
  h = activate(net.arch.activation, std::move(h));
  h = net.layer_norm("predictions.LayerNorm", std::move(h));
  return net.lm_head("predictions.decoder", std::move(h), net.V, true);
}

Tensor pooled(Net& net, const Tensor& hidden) {
  return dropout(pool(net, hidden), net.arch.classifier_dropout);
}

// AlbertForPreTraining: both heads, both losses.
Outputs pre_training(Net& net, const Program& program, Tensor hidden) {
  const Tensor summary = pool(net, hidden);
  Tensor words = program.lm_head(net, std::move(hidden));
  Tensor order = dropout(summary, net.arch.classifier_dropout);
  order = net.classifier("sop_classifier.classifier", std::move(order), Dim(net.arch.num_labels), true);
  Outputs out;
  out.loss = plain_cross_entropy(net, words);
  Tensor order_loss = cross_entropy(order, net.more_labels);
  out.loss = add(std::move(out.loss), std::move(order_loss));
  out.rest = {std::move(words), std::move(order)};
  return out;
}

Outputs sequence(Net& net, const Program&, Tensor hidden) {
  return classified(net, net.classifier("classifier", pooled(net, hidden), Dim(net.arch.num_labels), true));
}

Outputs tokens(Net& net, const Program&, Tensor hidden) {
  const Tensor x = dropout(std::move(hidden), net.arch.classifier_dropout);
  return labelled(net, net.classifier("classifier", x, Dim(net.arch.num_labels), true));
}

Outputs choice(Net& net, const Program&, Tensor hidden) {
  return choose(net, pooled(net, hidden));
}

Outputs body(Net& net, const Program& program, Tensor hidden) {
  return body_with_pooler(net, program, std::move(hidden), pool);
}

constexpr HeadForward kHeads[] = {{Head::kMaskedLm, masked_lm},
                                  {Head::kPreTraining, pre_training},
                                  {Head::kSequenceClassification, sequence},
                                  {Head::kTokenClassification, tokens},
                                  {Head::kQuestionAnswering, question_answering},
                                  {Head::kMultipleChoice, choice},
                                  {Head::kNone, body}};

const Program kProgram = {.forward = forward, .lm_head = lm_head, .heads = kHeads, .checkpoints = false};

constexpr ClassFacts kFacts = {.no_split = NoSplit::kNoneButSaid};

}  // namespace

const Family kRows[] = {
    {"albert", "Albert", "AlbertForMaskedLM", kClasses, read_albert_config, &kProgram,
     "albert.encoder.albert_layer_groups", kFacts},
};

extern const FamilyRows albert_rows;
const FamilyRows albert_rows = kRows;

}  // namespace tidemark
