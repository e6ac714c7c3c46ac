// BERT, RoBERTa and DistilBERT: encoders that norm after each branch, with a masked-language or a classification head.
#include "core/blocks/losses.hpp"
#include "core/blocks/program.hpp"

namespace tidemark {
namespace {

constexpr const char* kEmbeddings = "transformers 5.12 models/bert/modeling_bert.py: BertEmbeddings.forward";
constexpr const char* kSelf = "transformers 5.12 models/bert/modeling_bert.py: BertSelfAttention.forward";
constexpr const char* kSelfOutput = "transformers 5.12 models/bert/modeling_bert.py: BertSelfOutput.forward";
constexpr const char* kIntermediate = "transformers 5.12 models/bert/modeling_bert.py: BertIntermediate.forward";
constexpr const char* kOutput = "transformers 5.12 models/bert/modeling_bert.py: BertOutput.forward";
constexpr const char* kLayer = "transformers 5.12 models/bert/modeling_bert.py: BertLayer.forward";
constexpr const char* kMaskedLm = "transformers 5.12 models/bert/modeling_bert.py: BertForMaskedLM.forward";
constexpr const char* kClassifier =
    "transformers 5.12 models/bert/modeling_bert.py: BertForSequenceClassification.forward";
constexpr const char* kRobertaIds =
    "transformers 5.12 models/roberta/modeling_roberta.py: RobertaEmbeddings.create_position_ids_from_input_ids";
constexpr const char* kRobertaMaskedLm = "transformers 5.12 models/roberta/modeling_roberta.py: RobertaLMHead.forward";
constexpr const char* kRobertaClassifier =
    "transformers 5.12 models/roberta/modeling_roberta.py: RobertaClassificationHead.forward";
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

// -- BERT and RoBERTa
// ---------------------------------------------------------------------------------------------------

// The position of each token, counted from the padding id: int32 steps, then int64.
Tensor roberta_position_ids(Net& net) {
  Scope in(net.tape, "roberta.embeddings", kRobertaIds);
  Tape& t = net.tape;
  const Shape rows{net.B, net.S};
  Tensor mask = t.allocate(rows, Dtype::kInt32, "ne");
  Tensor steps = t.allocate(rows, Dtype::kInt64, "cumsum");
  steps = t.allocate(rows, Dtype::kInt32, "mul");
  Tensor ids = t.allocate(rows, Dtype::kInt64, "to");
  return t.allocate(rows, Dtype::kInt64, "add");
}

Tensor bert_embed(Net& net) {
  const bool roberta = net.arch.model_type == "roberta";
  Tensor h;
  {
    Scope in(net.tape, roberta ? "roberta.embeddings" : "bert.embeddings", kEmbeddings);
    Tape& t = net.tape;
    t.buffer("embeddings.position_ids", 8 * net.arch.max_positions);
    t.buffer("embeddings.token_type_ids", 8 * net.arch.max_positions);
    Tensor position_ids;
    if (roberta) {
      position_ids = roberta_position_ids(net);
    } else {
      position_ids = t.part_of_buffer(Shape{Dim(1), net.S}, Dtype::kInt64);
    }
    Tensor types = t.allocate(position_ids.shape(), Dtype::kInt64, "gather");
    types = expand(std::move(types), Shape{net.B, net.S});
    const Tensor embeds =
        net.embedding(roberta ? "roberta.embeddings.word_embeddings" : "bert.embeddings.word_embeddings", net.input_ids,
                      net.V, net.H);
    net.tied_embedding = t.last_parameter();
    const Tensor type_embeds =
        net.embedding(roberta ? "roberta.embeddings.token_type_embeddings" : "bert.embeddings.token_type_embeddings",
                      std::move(types), Dim(net.arch.type_vocab_size), net.H);
    h = add(embeds, type_embeds);
    const Tensor positions =
        net.embedding(roberta ? "roberta.embeddings.position_embeddings" : "bert.embeddings.position_embeddings",
                      position_ids, Dim(net.arch.max_positions), net.H);
    h = add(std::move(h), positions);
    h = net.layer_norm(roberta ? "roberta.embeddings.LayerNorm" : "bert.embeddings.LayerNorm", std::move(h));
    h = dropout(std::move(h), net.arch.embedding_dropout);
  }
  make_bidirectional_mask(net, h);
  net.model_locals = {h};
  return h;
}

// BertSelfOutput and BertOutput: dense, dropout, norm of the sum.
Tensor join(Net& net, const char* module, const char* dense, const char* norm, const char* source, Tensor x_in,
            const Tensor& input) {
  Scope in(net.tape, module, source);
  const Tensor x = std::move(x_in);
  Tensor h = net.linear(dense, x, net.H, true);
  h = dropout(std::move(h), net.arch.residual_dropout);
  Tensor sum = add(h, input);
  return net.layer_norm(norm, std::move(sum));
}

Tensor bert_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor x = std::move(hidden);
  Tensor attention_output;
  {
    Scope self(net.tape, "attention.self", kSelf);
    Tensor q = net.linear("attention.self.query", x, net.Q, true);
    q = split_heads(net, std::move(q), net.A, net.hd);
    Tensor k = net.linear("attention.self.key", x, net.Q, true);
    k = split_heads(net, std::move(k), net.A, net.hd);
    Tensor v = net.linear("attention.self.value", x, net.Q, true);
    v = split_heads(net, std::move(v), net.A, net.hd);
    attention_output = attention(net, q, k, v, encoder_attention(net));
  }
  attention_output = join(net, "attention.output", "attention.output.dense", "attention.output.LayerNorm", kSelfOutput,
                          std::move(attention_output), x);
  Tensor h;
  {
    Scope intermediate(net.tape, "intermediate", kIntermediate);
    h = net.linear("intermediate.dense", attention_output, net.F, true);
    Scope act(net.tape, "intermediate.intermediate_act_fn", kIntermediate);
    h = activate(net.arch.activation, std::move(h));
  }
  return join(net, "output", "output.dense", "output.LayerNorm", kOutput, std::move(h), attention_output);
}

Tensor bert_head(Net& net, Tensor hidden) {
  const bool roberta = net.arch.model_type == "roberta";
  const Dim labels(net.arch.num_labels);
  const double p = net.arch.classifier_dropout;
  net.model_locals = {hidden};
  Tensor h = std::move(hidden);
  if (net.arch.head == Head::kNone) {
    // The body pools its first token whether anybody asks or not.
    Scope in(net.tape, "", kClassifier);
    Tensor pooled = net.linear("pooler.dense", select(h, 1), net.H, true);
    pooled = tanh(std::move(pooled));
    return h;
  }
  if (net.arch.head == Head::kSequenceClassification) {
    h = select(std::move(h), 1);
    if (roberta) {
      Scope in(net.tape, "classifier", kRobertaClassifier);
      h = dropout(std::move(h), p);
      h = net.linear("classifier.dense", std::move(h), net.H, true);
      h = tanh(std::move(h));
      h = dropout(std::move(h), p);
      return net.linear("classifier.out_proj", std::move(h), labels, true);
    }
    Scope in(net.tape, "", kClassifier);
    h = net.linear("bert.pooler.dense", std::move(h), net.H, true);
    h = tanh(std::move(h));
    h = dropout(std::move(h), p);
    return net.linear("classifier", std::move(h), labels, true);
  }
  Scope in(net.tape, "", roberta ? kRobertaMaskedLm : kMaskedLm);
  h = net.linear(roberta ? "lm_head.dense" : "cls.predictions.transform.dense", std::move(h), net.H, true);
  h = roberta ? gelu(std::move(h)) : activate(net.arch.activation, std::move(h));
  h = net.layer_norm(roberta ? "lm_head.layer_norm" : "cls.predictions.transform.LayerNorm", std::move(h));
  return net.lm_head(roberta ? "lm_head.decoder" : "cls.predictions.decoder", std::move(h), net.V, true);
}

// -- DistilBERT
// ---------------------------------------------------------------------------------------------------------

Tensor distilbert_embed(Net& net) {
  Tensor h;
  {
    Scope in(net.tape, "distilbert.embeddings", kDistilEmbeddings);
    net.tape.buffer("embeddings.position_ids", 8 * net.arch.max_positions);
    const Tensor embeds = net.embedding("distilbert.embeddings.word_embeddings", net.input_ids, net.V, net.H);
    net.tied_embedding = net.tape.last_parameter();
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

Tensor distilbert_head(Net& net, Tensor hidden) {
  net.model_locals = {hidden};
  Tensor h = std::move(hidden);
  if (net.arch.head == Head::kNone) return h;
  if (net.arch.head == Head::kSequenceClassification) {
    Scope in(net.tape, "", kDistilClassifier);
    h = select(std::move(h), 1);
    h = net.linear("pre_classifier", std::move(h), net.H, true);
    h = relu(std::move(h));
    h = dropout(std::move(h), net.arch.classifier_dropout);
    return net.linear("classifier", std::move(h), Dim(net.arch.num_labels), true);
  }
  Scope in(net.tape, "", kDistilMaskedLm);
  h = net.linear("vocab_transform", std::move(h), net.H, true);
  h = activate(net.arch.activation, std::move(h));
  h = net.layer_norm("vocab_layer_norm", std::move(h));
  return net.lm_head("vocab_projector", std::move(h), net.V, true);
}

}  // namespace

const Program kBertProgram = {bert_embed, bert_layer, bert_head, text_inputs, plain_cross_entropy};
const Program kDistilBertProgram = {distilbert_embed, distilbert_layer, distilbert_head, text_inputs,
                                    plain_cross_entropy};

}  // namespace tidemark
