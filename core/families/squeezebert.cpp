// SqueezeBERT: BERT whose linear layers are convolutions of one token with channels in groups, its tokens last.
#include <utility>

#include "core/families/bert_heads.hpp"
#include "core/families/family.hpp"
#include "core/tape/ops/convolution.hpp"

namespace tidemark {

extern const BertNames kSqueezeBertNames = {
    {"transformer.embeddings", "transformer.embeddings.word_embeddings", "transformer.embeddings.token_type_embeddings",
     "transformer.embeddings.position_embeddings", "transformer.embeddings.LayerNorm"},
    "transformer.pooler.dense",
    kBertHead};

namespace {

struct Convolution {
  const char *name, *groups;
  std::size_t place;  // among Architecture::conv_strides, which holds the groups here
};
constexpr Convolution kQuery = {"attention.query", "q_groups", 0}, kKey = {"attention.key", "k_groups", 1},
                      kValue = {"attention.value", "v_groups", 2},
                      kPost = {"post_attention.conv1d", "post_attention_groups", 3},
                      kWide = {"intermediate.conv1d", "intermediate_groups", 4},
                      kNarrow = {"output.conv1d", "output_groups", 5};

// transformers 5.24 models/squeezebert/configuration_squeezebert.py: SqueezeBertConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_bert_config(fields, architecture);
  architecture.classifier_dropout = architecture.residual_dropout;
  const Count embedding = fields.count({"embedding_size"}, 768);
  if (architecture.hidden_size > 0 && embedding != architecture.hidden_size) {
    fields.error("INVALID_VALUE", "embedding_size", "This class wants embeddings as wide as its layers.");
  }
  for (const Convolution& conv : {kQuery, kKey, kValue, kPost, kWide, kNarrow}) {
    const Count groups = fields.count({conv.groups}, conv.place == kPost.place ? 1 : 4);
    architecture.conv_strides.push_back(groups);
    const bool wide = conv.place == kWide.place || conv.place == kNarrow.place;
    if (architecture.hidden_size % groups != 0 || (wide && architecture.intermediate_size % groups != 0)) {
      fields.error("INVALID_VALUE", conv.groups, "The groups of channels do not divide a layer's columns.");
    }
  }
}

constexpr const char* kEmbeddings =
    "transformers 5.24 models/squeezebert/modeling_squeezebert.py: SqueezeBertEmbeddings.forward";
constexpr const char* kModel = "transformers 5.24 models/squeezebert/modeling_squeezebert.py: SqueezeBertModel.forward";
constexpr const char* kModule =
    "transformers 5.24 models/squeezebert/modeling_squeezebert.py: SqueezeBertModule.forward";
constexpr const char* kAttention =
    "transformers 5.24 models/squeezebert/modeling_squeezebert.py: SqueezeBertSelfAttention.forward";
constexpr const char* kJoin =
    "transformers 5.24 models/squeezebert/modeling_squeezebert.py: ConvDropoutLayerNorm.forward";

// nn.Conv1d of one token: x [B, in, S].
Tensor convolve(Net& net, const Convolution& conv, const Tensor& x, Dim out) {
  const Dim in(x.size(1) / net.arch.conv_strides[conv.place]);
  const Tensor weight = net.parameter(conv.name, "weight", Shape{out, in, Dim(1)});
  const Tensor bias = net.parameter(conv.name, "bias", Shape{out});
  return convolution(x, weight, bias, {net.S});
}

Tensor embed(Net& net) {
  Scope model(net.tape, "transformer", kModel);
  Tape& t = net.tape;
  const EmbeddingNames& names = kSqueezeBertNames.embeddings;
  const Shape rows{net.B, net.S};
  Tensor ones;
  if (!net.attention_mask.defined()) ones = t.allocate(rows, Dtype::kFp32, "ones");
  const Tensor types = t.allocate(rows, Dtype::kInt64, "zeros");
  Tensor h;
  {
    Scope in(t, names.module, kEmbeddings);
    t.buffer("embeddings.position_ids", size_of(Dtype::kInt64) * net.arch.max_positions);
    const Tensor ids = t.part_of_buffer(Shape{Dim(1), net.S}, Dtype::kInt64);
    const Tensor words = net.token_embedding(names.words, net.H);
    const Tensor positions = net.embedding(names.positions, ids, Dim(net.arch.max_positions), net.H);
    const Tensor of_types = net.embedding(names.types, types, Dim(net.arch.type_vocab_size), net.H);
    h = add(words, positions);
    h = add(std::move(h), of_types);
    h = net.layer_norm(names.norm, std::move(h));
    h = dropout(std::move(h), net.arch.embedding_dropout);
  }
  net.shared.causal_mask = bidirectional_mask(net, h, true, net.S, net.S);
  net.model_locals = {h, ones, types};
  return transpose(std::move(h), 1, 2);
}

Tensor attention_of(Net& net, const Tensor& x) {
  Scope in(net.tape, "attention", kAttention);
  net.attention_kernel = "eager";
  const auto heads = [&](Tensor h) { return view(std::move(h), Shape{net.B, net.A, net.hd, net.S}); };
  const Tensor query = convolve(net, kQuery, x, net.Q);
  const Tensor key = convolve(net, kKey, x, net.Q);
  const Tensor value = convolve(net, kValue, x, net.Q);
  const Tensor q = transpose(heads(query), 2, 3);
  const Tensor k = heads(key);
  const Tensor v = transpose(heads(value), 2, 3);
  Tensor score = matmul(q, k);
  score = mul_scalar(std::move(score));
  if (net.shared.causal_mask.defined()) score = add(std::move(score), net.shared.causal_mask);
  Tensor probabilities = softmax(score);
  probabilities = dropout(std::move(probabilities), net.arch.attention_dropout);
  Tensor context = matmul(probabilities, v);
  context = contiguous(transpose(std::move(context), 2, 3));
  return view(std::move(context), Shape{net.B, net.Q, net.S});
}

Tensor join(Net& net, const Convolution& conv, const char* norm, const Tensor& hidden, const Tensor& input) {
  Scope in(net.tape, "", kJoin);
  Tensor x = convolve(net, conv, hidden, net.H);
  x = dropout(std::move(x), net.arch.residual_dropout);
  x = add(std::move(x), input);
  x = transpose(std::move(x), 1, 2);
  x = net.layer_norm(norm, std::move(x));
  return transpose(std::move(x), 1, 2);
}

Tensor module_of(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModule);
  const Tensor x = std::move(hidden);
  const Tensor attended = attention_of(net, x);
  const Tensor post = join(net, kPost, "post_attention.layernorm", attended, x);
  Tensor wide = convolve(net, kWide, post, net.F);
  wide = activate(net.arch.activation, wide);
  return join(net, kNarrow, "output.layernorm", wide, post);
}

Tensor to_tokens(Net&, Tensor hidden) {
  return transpose(std::move(hidden), 1, 2);
}

// Their weights are no nn.Linear's: adapters by these names and quantisers leave them alone.
void check(const Architecture&, const TrainingJob& job, Issues& issues) {
  if (job.method == Method::kFull) return;
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/method",
                    "The layers of squeezebert are convolutions, which adapters of linear layers do not reach: only "
                    "training all parameters is modelled.",
                    "full"});
}

// The body has a pooler in every class; what it makes stays among the outputs.
template <Outputs (*head)(Net&, const Program&, Tensor)>
Outputs pooled_beside(Net& net, const Program& program, Tensor hidden) {
  const Tensor pooled = bert_pool(net, hidden);
  Outputs out = head(net, program, std::move(hidden));
  out.rest.push_back(pooled);
  return out;
}

constexpr ClassSuffix kClasses[] = {{"ForMaskedLM", Head::kMaskedLm},
                                    {"ForSequenceClassification", Head::kSequenceClassification},
                                    {"ForTokenClassification", Head::kTokenClassification},
                                    {"ForQuestionAnswering", Head::kQuestionAnswering},
                                    {"Model", Head::kNone}};

constexpr HeadForward kHeads[] = {{Head::kMaskedLm, pooled_beside<masked_lm>},
                                  {Head::kSequenceClassification, bert_sequence},
                                  {Head::kTokenClassification, pooled_beside<encoder_tokens>},
                                  {Head::kQuestionAnswering, pooled_beside<encoder_span>},
                                  {Head::kNone, bert_body}};

}  // namespace

const Program kSqueezeBertProgram = {.forward = one_stack<embed, module_of, to_tokens>,
                                     .lm_head = bert_lm_head,
                                     .heads = kHeads,
                                     .attention = kEagerAlone,
                                     .checkpoints = false,
                                     .check = check};

const Family kRows[] = {
    {"squeezebert",
     "SqueezeBert",
     "SqueezeBertForMaskedLM",
     kClasses,
     read_config,
     &kSqueezeBertProgram,
     "transformer.encoder.layers",
     {.flex_attention = false, .no_split = NoSplit::kNone}},
};

extern const FamilyRows squeezebert_rows;
const FamilyRows squeezebert_rows = kRows;

}  // namespace tidemark
