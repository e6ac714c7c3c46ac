// MPNet: BERT's layer with attention of its own, whose bias by distance one table gives to all layers.
#include "core/families/family.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/mpnet/configuration_mpnet.py: MPNetConfig has BERT's keys. Positions count from the
// padding id. Its PreTrainedModel supports no checkpointing.
void read_mpnet_config(ConfigFields& fields, Architecture& architecture) {
  read_bert_config(fields, architecture);
  architecture.position_offset = 2;
  architecture.num_buckets = fields.count({"relative_attention_num_buckets"}, 32);
}

constexpr const char* kEmbeddings = "transformers 5.12 models/mpnet/modeling_mpnet.py: MPNetEmbeddings.forward";
constexpr const char* kBias = "transformers 5.12 models/mpnet/modeling_mpnet.py: MPNetEncoder.compute_position_bias";
constexpr const char* kSelf = "transformers 5.12 models/mpnet/modeling_mpnet.py: MPNetSelfAttention.forward";
constexpr const char* kAttention = "transformers 5.12 models/mpnet/modeling_mpnet.py: MPNetAttention.forward";
constexpr const char* kLayer = "transformers 5.12 models/mpnet/modeling_mpnet.py: MPNetLayer.forward";
constexpr const char* kPooler = "transformers 5.12 models/mpnet/modeling_mpnet.py: MPNetPooler.forward";
constexpr const char* kHead = "transformers 5.12 models/mpnet/modeling_mpnet.py: MPNetLMHead.forward";
constexpr const char* kClassifier = "transformers 5.12 models/mpnet/modeling_mpnet.py: MPNetClassificationHead.forward";

Tensor embeddings(Net& net) {
  Scope in(net.tape, "mpnet.embeddings", kEmbeddings);
  net.tape.buffer("embeddings.position_ids", 8 * net.arch.max_positions);
  const Tensor ids = position_ids_from_padding(net);
  const Tensor embeds = net.token_embedding("mpnet.embeddings.word_embeddings", net.H);
  const Tensor positions =
      net.embedding("mpnet.embeddings.position_embeddings", ids, Dim(net.arch.max_positions), net.H);
  Tensor h = add(embeds, positions);
  h = net.layer_norm("mpnet.embeddings.LayerNorm", std::move(h));
  return dropout(std::move(h), net.arch.embedding_dropout);
}

// The buckets are found on the host; every row of the batch gets a copy of the bias.
Tensor position_bias(Net& net) {
  constexpr const char* kTable = "mpnet.encoder.relative_attention_bias";
  Scope in(net.tape, kTable, kBias);
  Tensor ids = net.tape.allocate(Shape{net.S, net.S}, Dtype::kInt64, "rp_bucket");
  const Tensor bias = net.embedding(kTable, ids, Dim(net.arch.num_buckets), net.A);
  Tensor values = unsqueeze(permute(bias, {2, 0, 1}), 0);
  return contiguous(expand(std::move(values), Shape{net.B, net.A, net.S, net.S}));
}

Tensor embed(Net& net) {
  Tensor h = embeddings(net);
  net.shared.causal_mask = bidirectional_mask(net, h, true, net.S, net.S);
  net.shared.bias = position_bias(net);
  net.model_locals = {h};
  return h;
}

Tensor self_attention(Net& net, const Tensor& x) {
  Scope in(net.tape, "attention.attn", kSelf);
  net.attention_kernel = "eager";
  const auto heads = [&](const char* name) {
    return split_heads(net, net.linear(name, x, net.Q, true), net.A, net.hd);
  };
  const Tensor q = heads("attention.attn.q");
  const Tensor k = heads("attention.attn.k");
  const Tensor v = heads("attention.attn.v");
  Tensor scores = matmul(q, transpose(k, 2, 3));
  scores = mul_scalar(std::move(scores));
  scores = add_in_place(std::move(scores), net.shared.bias);
  if (net.shared.causal_mask.defined()) scores = add(std::move(scores), net.shared.causal_mask);
  Tensor probabilities = softmax(scores);
  probabilities = dropout(std::move(probabilities), net.arch.attention_dropout);
  Tensor c = matmul(probabilities, v);
  c = contiguous(permute(std::move(c), {0, 2, 1, 3}));
  c = view(std::move(c), Shape{net.B, net.S, net.Q});
  return net.linear("attention.attn.o", c, net.H, true);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor x = std::move(hidden);
  Tensor attended;
  {
    Scope attention(net.tape, "attention", kAttention);
    const Tensor outputs = self_attention(net, x);
    Tensor h = dropout(outputs, net.arch.residual_dropout);
    h = add(std::move(h), x);
    attended = net.layer_norm("attention.LayerNorm", std::move(h));
  }
  Tensor h = net.linear("intermediate.dense", attended, net.F, true);
  h = activate(net.arch.activation, std::move(h));
  return bert_join(net, "output", "output.dense", "output.LayerNorm", kLayer, std::move(h), attended);
}

Tensor pool(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "pooler", kPooler);
  return tanh(net.linear("mpnet.pooler.dense", select(hidden, 1), net.H, true));
}

Tensor lm_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "lm_head", kHead);
  const Tensor x = std::move(hidden);
  // As in BERT: untied, a second bias stays that nothing reads.
  if (!net.arch.tie_word_embeddings) const Tensor unread = net.parameter("lm_head", "bias", Shape{net.V});
  Tensor h = net.linear("lm_head.dense", x, net.H, true);
  h = gelu(std::move(h));
  h = net.layer_norm("lm_head.layer_norm", std::move(h));
  return net.lm_head("lm_head.decoder", std::move(h), net.V, true);
}

Outputs sequence(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "classifier", kClassifier);
  const double p = net.arch.residual_dropout;
  Tensor x = dropout(select(std::move(hidden), 1), p);
  x = net.classifier("classifier.dense", std::move(x), net.H, true);
  x = tanh(std::move(x));
  x = dropout(std::move(x), p);
  return classified(net, net.classifier("classifier.out_proj", std::move(x), Dim(net.arch.num_labels), true));
}

Outputs tokens(Net& net, const Program&, Tensor hidden) {
  const Tensor x = dropout(std::move(hidden), net.arch.residual_dropout);
  return labelled(net, net.classifier("classifier", x, Dim(net.arch.num_labels), true));
}

Outputs choice(Net& net, const Program&, Tensor hidden) {
  return choose(net, dropout(pool(net, hidden), net.arch.residual_dropout));
}

Outputs body(Net& net, const Program& program, Tensor hidden) {
  return body_with_pooler(net, program, std::move(hidden), pool);
}

constexpr HeadForward kHeads[] = {{Head::kMaskedLm, masked_lm},         {Head::kSequenceClassification, sequence},
                                  {Head::kTokenClassification, tokens}, {Head::kQuestionAnswering, question_answering},
                                  {Head::kMultipleChoice, choice},      {Head::kNone, body}};

const Program kProgram = {.forward = one_stack<embed, layer, no_norm>,
                          .lm_head = lm_head,
                          .heads = kHeads,
                          .attention = kEagerAlone,
                          .checkpoints = false};

constexpr ClassFacts kFacts = {.flex_attention = false, .no_split = NoSplit::kNone};

}  // namespace

const Family kRows[] = {
    {"mpnet", "MPNet", "MPNetForMaskedLM", kDistilBertClasses, read_mpnet_config, &kProgram, "mpnet.encoder.layer",
     kFacts},
};

extern const FamilyRows mpnet_rows;
const FamilyRows mpnet_rows = kRows;

}  // namespace tidemark
