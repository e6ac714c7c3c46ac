// MegatronBERT, RemBERT, RoFormer and LayoutLM: BERT's near relations, whose attention is code of their own.
#include "core/families/bert_heads.hpp"
#include "core/families/family.hpp"
#include "core/layers/losses.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

constexpr const char* kMegatronLayer =
    "transformers 5.12 models/megatron_bert/modeling_megatron_bert.py: MegatronBertLayer.forward";
constexpr const char* kMegatronAttention =
    "transformers 5.12 models/megatron_bert/modeling_megatron_bert.py: MegatronBertSelfAttention.forward";
constexpr const char* kMegatronEmbeddings =
    "transformers 5.12 models/megatron_bert/modeling_megatron_bert.py: MegatronBertEmbeddings.forward";
constexpr const char* kMegatronEncoder =
    "transformers 5.12 models/megatron_bert/modeling_megatron_bert.py: MegatronBertEncoder.forward";
constexpr const char* kRemBertLayer = "transformers 5.12 models/rembert/modeling_rembert.py: RemBertLayer.forward";
constexpr const char* kRemBertEncoder = "transformers 5.12 models/rembert/modeling_rembert.py: RemBertEncoder.forward";
constexpr const char* kRemBertHead =
    "transformers 5.12 models/rembert/modeling_rembert.py: RemBertLMPredictionHead.forward";
constexpr const char* kRoFormerModel = "transformers 5.12 models/roformer/modeling_roformer.py: RoFormerModel.forward";
constexpr const char* kRoFormerAttention =
    "transformers 5.12 models/roformer/modeling_roformer.py: RoFormerSelfAttention.forward";
constexpr const char* kRoFormerHead =
    "transformers 5.12 models/roformer/modeling_roformer.py: RoFormerLMPredictionHead.forward";
constexpr const char* kRoFormerClassifier =
    "transformers 5.12 models/roformer/modeling_roformer.py: RoFormerClassificationHead.forward";
constexpr const char* kLayoutEmbeddings =
    "transformers 5.12 models/layoutlm/modeling_layoutlm.py: LayoutLMEmbeddings.forward";
constexpr const char* kLayoutModel = "transformers 5.12 models/layoutlm/modeling_layoutlm.py: LayoutLMModel.forward";
constexpr const char* kLayoutLayer = "transformers 5.12 models/layoutlm/modeling_layoutlm.py: LayoutLMLayer.forward";

}  // namespace

extern const BertNames kMegatronBertNames = {
    {"bert.embeddings", "bert.embeddings.word_embeddings", "bert.embeddings.token_type_embeddings",
     "bert.embeddings.position_embeddings", nullptr},
    "bert.pooler.dense",
    kBertHead};
extern const BertNames kRemBertNames = {
    {"rembert.embeddings", "rembert.embeddings.word_embeddings", "rembert.embeddings.token_type_embeddings",
     "rembert.embeddings.position_embeddings", "rembert.embeddings.LayerNorm"},
    "rembert.pooler.dense",
    {"cls.predictions", "cls.predictions.dense", "cls.predictions.LayerNorm", "cls.predictions.decoder"}};
extern const BertNames kLayoutLmNames = {
    {"layoutlm.embeddings", "layoutlm.embeddings.word_embeddings", "layoutlm.embeddings.token_type_embeddings",
     "layoutlm.embeddings.position_embeddings", "layoutlm.embeddings.LayerNorm"},
    "layoutlm.pooler.dense",
    kBertHead};

namespace {

constexpr EmbeddingNames kRoFormerNames = {"roformer.embeddings", "roformer.embeddings.word_embeddings",
                                           "roformer.embeddings.token_type_embeddings", nullptr,
                                           "roformer.embeddings.LayerNorm"};

// transformers 5.12.1 models/rembert/configuration_rembert.py: RemBertConfig.
void read_rembert_config(ConfigFields& fields, Architecture& architecture) {
  read_bert_config(fields, architecture);
  architecture.embedding_dim = fields.count({"input_embedding_size"}, 256);
  architecture.pooler_size = fields.count({"output_embedding_size"}, 1664);
  const double dropout = fields.probability({"hidden_dropout_prob"}, 0.0);
  architecture.residual_dropout = architecture.embedding_dropout = dropout;
  architecture.attention_dropout = fields.probability({"attention_probs_dropout_prob"}, 0.0);
  architecture.classifier_dropout = fields.probability({"classifier_dropout_prob"}, 0.1);
  architecture.tie_word_embeddings = false;
}

// transformers 5.12.1 models/roformer/configuration_roformer.py: RoFormerConfig.
void read_roformer_config(ConfigFields& fields, Architecture& architecture) {
  read_bert_config(fields, architecture);
  architecture.max_positions = fields.count({"max_position_embeddings"}, 1536);
  architecture.embedding_dim = fields.nullable({"embedding_size"}, std::nullopt).value_or(architecture.hidden_size);
  architecture.rotary_dim = architecture.head_dim;
  architecture.query_scale = fields.flag({"rotary_value"}, false);  // values turn, too
}

// transformers 5.12.1 models/layoutlm/configuration_layoutlm.py: LayoutLMConfig.
void read_layoutlm_config(ConfigFields& fields, Architecture& architecture) {
  read_bert_config(fields, architecture);
  architecture.num_buckets = fields.count({"max_2d_position_embeddings"}, 1024);
}

// -- what they share --------------------------------------------------------------------------------------------------

// Words, types and positions, one added into the sum of the others; `width`: of the tables.
Tensor embeddings(Net& net, const EmbeddingNames& names, const char* source, Dim width) {
  Scope in(net.tape, names.module, source);
  Tape& t = net.tape;
  const Tensor ids = t.part_of_buffer(Shape{Dim(1), net.S}, Dtype::kInt64);
  if (names.positions != nullptr) t.buffer("embeddings.position_ids", 8 * net.arch.max_positions);
  const Tensor types = t.allocate(Shape{net.B, net.S}, Dtype::kInt64, "zeros");
  const Tensor words = net.token_embedding(names.words, width);
  const Tensor of_types = net.embedding(names.types, types, Dim(net.arch.type_vocab_size), width);
  Tensor h = add(words, of_types);
  Tensor positions;
  if (names.positions != nullptr) {
    positions = net.embedding(names.positions, ids, Dim(net.arch.max_positions), width);
    h = add_in_place(std::move(h), positions);
  }
  if (names.norm != nullptr) h = net.layer_norm(names.norm, std::move(h));
  return dropout(std::move(h), net.arch.embedding_dropout);
}

// Scores as they stand; `wide`: LayoutLM's softmax, in fp32 and cast back, or its kernels.
Tensor attend(Net& net, const char* source, const Tensor& x, void (*turn)(Net&, Tensor&, Tensor&, Tensor&),
              bool wide = false) {
  Scope in(net.tape, "attention.self", source);
  net.attention_kernel = "eager";
  Tensor q = split_heads(net, net.linear("attention.self.query", x, net.Q, true), net.A, net.hd);
  Tensor k = split_heads(net, net.linear("attention.self.key", x, net.Q, true), net.A, net.hd);
  Tensor v = split_heads(net, net.linear("attention.self.value", x, net.Q, true), net.A, net.hd);
  if (turn != nullptr) turn(net, q, k, v);
  if (!runs_eagerly(net)) return attention(net, std::move(q), std::move(k), std::move(v), encoder_attention(net));
  Tensor scores = matmul(q, transpose(k, 2, 3));
  scores = mul_scalar(std::move(scores));
  if (net.shared.causal_mask.defined()) scores = add(std::move(scores), net.shared.causal_mask);
  Tensor weights = wide ? softmax(scores, Dtype::kFp32) : softmax(scores);
  if (wide) scores.reset();  // the others' names last until the function returns
  if (wide) weights = to(std::move(weights), q.dtype());
  weights = dropout(std::move(weights), net.arch.attention_dropout);
  Tensor out = matmul(weights, v);
  if (!wide) net.attn_weights = std::move(weights);
  out = contiguous(transpose(std::move(out), 1, 2));
  return view(std::move(out), Shape{net.B, net.S, net.Q});
}

// Dense and activation.
Tensor feed_forward(Net& net, const char* source, Tensor x) {
  Scope in(net.tape, "intermediate", source);
  Tensor h = net.linear("intermediate.dense", std::move(x), net.F, true);
  return activate(net.arch.activation, std::move(h));
}

// A layer that norms behind each branch, and returns its weights beside its states where it is not LayoutLM's.
Tensor post_norm_layer(Net& net, const char* source, Tensor hidden, void (*turn)(Net&, Tensor&, Tensor&, Tensor&),
                       bool wide) {
  Scope in(net.tape, "", source);
  const Tensor x = std::move(hidden);
  Tensor attended = attend(net, source, x, turn, wide);
  attended = bert_join(net, "attention.output", "attention.output.dense", "attention.output.LayerNorm", source,
                       std::move(attended), x);
  Tensor h = feed_forward(net, source, attended);
  h = bert_join(net, "output", "output.dense", "output.LayerNorm", source, std::move(h), attended);
  net.return_weights();
  return h;
}

// The model makes a mask of ones where it gets none, and asks whether it hides anything.
void make_mask(Net& net, const Tensor& embeds) {
  net.shared.causal_mask = bidirectional_mask(net, embeds, true, net.S, net.S);
}

// -- MegatronBERT -----------------------------------------------------------------------------------------------------

Tensor megatron_embed(Net& net) {
  Tensor h = embeddings(net, kMegatronBertNames.embeddings, kMegatronEmbeddings, net.H);
  make_mask(net, h);
  net.model_locals = {h};
  return h;
}

// Dense, dropout, the sum; the caller has a name for x.
Tensor megatron_join(Net& net, const char* module, const char* dense, const Tensor& x, const Tensor& input) {
  Scope in(net.tape, module, kMegatronLayer);
  Tensor h = net.linear(dense, x, net.H, true);
  h = dropout(std::move(h), net.arch.residual_dropout);
  return add(input, std::move(h));
}

Tensor megatron_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kMegatronLayer);
  const Tensor x = std::move(hidden);
  Tensor attended;
  {
    const Tensor normed = net.layer_norm("attention.ln", x);
    attended = megatron_join(net, "attention.output", "attention.output.dense",
                             attend(net, kMegatronAttention, normed, nullptr), x);
  }
  const Tensor normed = net.layer_norm("ln", attended);
  Tensor h = feed_forward(net, kMegatronLayer, normed);
  h = megatron_join(net, "output", "output.dense", h, attended);
  net.return_weights();
  return h;
}

Tensor megatron_norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kMegatronEncoder);
  return net.layer_norm("bert.encoder.ln", std::move(hidden));
}

// -- RemBERT ----------------------------------------------------------------------------------------------------------

Tensor rembert_embed(Net& net) {
  const Tensor embeds = embeddings(net, kRemBertNames.embeddings,
                                   "transformers 5.12 models/rembert/modeling_rembert.py: RemBertEmbeddings",
                                   Dim(net.arch.embedding_dim));
  make_mask(net, embeds);
  net.model_locals = {embeds};
  Scope in(net.tape, "rembert.encoder", kRemBertEncoder);
  return net.linear("rembert.encoder.embedding_hidden_mapping_in", embeds, net.H, true);
}

Tensor rembert_layer(Net& net, Tensor hidden) {
  return post_norm_layer(net, kRemBertLayer, std::move(hidden), nullptr, false);
}

// The decoder's weight is its own: of another width.
Tensor rembert_lm_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kRemBertHead);
  return bert_predictions(net, kRemBertNames.head, std::move(hidden), Dim(net.arch.pooler_size), net.arch.activation);
}

Outputs rembert_choice(Net& net, const Program&, Tensor hidden) {
  Tensor pooled = bert_pool(net, hidden);
  return choose(net, dropout(std::move(pooled), net.arch.classifier_dropout));
}

// -- RoFormer ---------------------------------------------------------------------------------------------------------

// The table's rows, sines before cosines, of a frozen nn.Embedding.
Tensor roformer_embed(Net& net) {
  Scope in(net.tape, "", kRoFormerModel);
  Tensor h = embeddings(net, kRoFormerNames, kRoFormerModel, Dim(net.arch.embedding_dim));
  if (net.arch.embedding_dim != net.arch.hidden_size) {
    h = net.linear("roformer.embeddings_project", std::move(h), net.H, true);
  }
  make_mask(net, h);
  net.model_locals = {h};
  Parameter positions;
  positions.module = "roformer.encoder.embed_positions";
  positions.leaf = "weight";
  positions.shape = Shape{Dim(net.arch.max_positions), net.hd};
  positions.dtype = net.weight_dtype(2);
  positions.is_embedding = true;
  const Tensor table = net.tape.parameter(positions);
  const Tensor ids = net.tape.allocate(Shape{net.S}, Dtype::kInt64, "arange");
  net.shared.cos = embedding(ids, table);
  return h;
}

// apply_rotary_position_embeddings: neighbouring columns are pairs, and both tables are made in each layer.
void roformer_turn(Net& net, Tensor& q, Tensor& k, Tensor& v) {
  const Shape rows{Dim(1), Dim(1), net.S, net.hd};
  const Tensor sin = net.tape.allocate(rows, net.shared.cos.dtype(), "stack");
  const Tensor cos = net.tape.allocate(rows, net.shared.cos.dtype(), "stack");
  const auto turned = [&](Tensor& x) {
    // Three products' factors: x, and its pairs turned, a stack of a negated copy and a view.
    Tensor half = stack_last(neg(every_other(x, 1)), every_other(x, 0));
    half = reshape(std::move(half), x.shape());
    Tensor first = mul(x, cos);
    x = add(std::move(first), mul(std::move(half), sin));
  };
  turned(q);
  turned(k);
  if (net.arch.query_scale) turned(v);
}

Tensor roformer_layer(Net& net, Tensor hidden) {
  return post_norm_layer(net, kRoFormerAttention, std::move(hidden), roformer_turn, false);
}

Tensor roformer_lm_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kRoFormerHead);
  if (!net.arch.tie_word_embeddings) {
    const Tensor unread = net.parameter(kBertHead.module, "bias", Shape{net.V});
  }
  return bert_predictions(net, kBertHead, std::move(hidden), Dim(net.arch.embedding_dim), net.arch.activation);
}

Outputs roformer_sequence(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "classifier", kRoFormerClassifier);
  Tensor x = dropout(select(std::move(hidden), 1), net.arch.residual_dropout);
  x = net.classifier("classifier.dense", std::move(x), net.H, true);
  x = activate(net.arch.activation, std::move(x));
  x = dropout(std::move(x), net.arch.residual_dropout);
  return classified(net, net.classifier("classifier.out_proj", std::move(x), Dim(net.arch.num_labels), true));
}

// RoFormerSequenceSummary: the last token's vector, and nothing on it unless the file says so.
Outputs roformer_choice(Net& net, const Program&, Tensor hidden) {
  return choose(net, select(std::move(hidden), 1));
}

// -- LayoutLM ---------------------------------------------------------------------------------------------------------

// A box for each token beside the batch of a text.
void layout_inputs(Net& net) {
  text_inputs(net);
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B, net.S, Dim(4)}, Dtype::kInt64, "bbox"));
}

/// Tables of a box's sides, its height and its width.
constexpr const char *kX = "layoutlm.embeddings.x_position_embeddings",
                     *kY = "layoutlm.embeddings.y_position_embeddings",
                     *kH = "layoutlm.embeddings.h_position_embeddings",
                     *kW = "layoutlm.embeddings.w_position_embeddings";

Tensor layout_embeddings(Net& net) {
  const EmbeddingNames& names = kLayoutLmNames.embeddings;
  Scope in(net.tape, names.module, kLayoutEmbeddings);
  Tape& t = net.tape;
  t.buffer("embeddings.position_ids", 8 * net.arch.max_positions);
  const Tensor types = t.allocate(Shape{net.B, net.S}, Dtype::kInt64, "zeros");
  const Tensor ids = t.part_of_buffer(Shape{Dim(1), net.S}, Dtype::kInt64);
  const Tensor words = net.token_embedding(names.words, net.H);
  const Tensor positions = net.embedding(names.positions, ids, Dim(net.arch.max_positions), net.H);
  const Tensor box = net.more_inputs.front();
  const Dim rows(net.arch.num_buckets);
  // Both sides of a pair come from one table.
  std::vector<Tensor> sides;
  const std::size_t tables = t.parameter_place();
  std::size_t behind = tables;
  for (int pass = 0; pass < 2; ++pass) {
    t.set_parameter_place(tables);
    for (const char* table : {kX, kY}) sides.push_back(net.embedding(table, select(box, 2), rows, net.H));
    behind = t.parameter_place();
  }
  t.set_parameter_place(behind);
  for (const char* table : {kH, kW}) {
    const Tensor difference = t.allocate(Shape{net.B, net.S}, Dtype::kInt64, "sub");
    sides.push_back(net.embedding(table, difference, rows, net.H));
  }
  const Tensor of_types = net.embedding(names.types, types, Dim(net.arch.type_vocab_size), net.H);
  Tensor h = add(words, positions);
  for (const Tensor& side : sides) h = add(std::move(h), side);
  h = add(std::move(h), of_types);
  h = net.layer_norm(names.norm, std::move(h));
  return dropout(std::move(h), net.arch.embedding_dropout);
}

// (1.0 - attention_mask.to(dtype)) * finfo.min, padded or not.
Tensor layout_embed(Net& net) {
  Scope in(net.tape, "", kLayoutModel);
  const Shape row{net.B, Dim(1), Dim(1), net.S};
  Tensor mask;
  {
    const Tensor ones = net.tape.allocate(row, Dtype::kFp32, "ones");
    mask = net.tape.allocate(row, net.weight_dtype(2), "rsub");
    mask = net.tape.allocate(row, net.weight_dtype(2), "mul");
  }
  Tensor h = layout_embeddings(net);
  net.shared.causal_mask = std::move(mask);
  net.model_locals = {h};
  return h;
}

Tensor layout_layer(Net& net, Tensor hidden) {
  return post_norm_layer(net, kLayoutLayer, std::move(hidden), nullptr, true);
}

// LayoutLMModel.forward pools whatever the class makes of it; the outputs are gone before backward.
template <Outputs (*head)(Net&, const Program&, Tensor)>
Outputs pooled_beside(Net& net, const Program& program, Tensor hidden) {
  const Tensor pooled = bert_pool(net, hidden);
  return head(net, program, std::move(hidden));
}

// -- rows -------------------------------------------------------------------------------------------------------------

constexpr HeadForward kRemBertHeads[] = {{Head::kMaskedLm, masked_lm},
                                         {Head::kCausalLm, causal_lm},
                                         {Head::kSequenceClassification, bert_sequence},
                                         {Head::kTokenClassification, encoder_tokens},
                                         {Head::kQuestionAnswering, encoder_span},
                                         {Head::kMultipleChoice, rembert_choice},
                                         {Head::kNone, bert_body}};
constexpr HeadForward kRoFormerHeads[] = {{Head::kMaskedLm, masked_lm},
                                          {Head::kCausalLm, causal_lm},
                                          {Head::kSequenceClassification, roformer_sequence},
                                          {Head::kTokenClassification, encoder_tokens},
                                          {Head::kQuestionAnswering, encoder_span},
                                          {Head::kMultipleChoice, roformer_choice},
                                          {Head::kNone, body_alone}};
constexpr HeadForward kLayoutHeads[] = {{Head::kMaskedLm, pooled_beside<masked_lm>},
                                        {Head::kSequenceClassification, bert_sequence},
                                        {Head::kTokenClassification, pooled_beside<encoder_tokens>},
                                        {Head::kQuestionAnswering, pooled_beside<encoder_span>},
                                        {Head::kNone, bert_body}};
constexpr ClassSuffix kLayoutClasses[] = {{"ForMaskedLM", Head::kMaskedLm},
                                          {"ForSequenceClassification", Head::kSequenceClassification},
                                          {"ForTokenClassification", Head::kTokenClassification},
                                          {"ForQuestionAnswering", Head::kQuestionAnswering},
                                          {"Model", Head::kNone}};

const Program kMegatronProgram = {.forward = one_stack<megatron_embed, megatron_layer, megatron_norm>,
                                  .lm_head = bert_lm_head,
                                  .heads = kBertHeads,
                                  .attention = kEagerAlone};
const Program kRemBertProgram = {.forward = one_stack<rembert_embed, rembert_layer, no_norm>,
                                 .lm_head = rembert_lm_head,
                                 .heads = kRemBertHeads,
                                 .attention = kEagerAlone};
const Program kRoFormerProgram = {.forward = one_stack<roformer_embed, roformer_layer, no_norm>,
                                  .lm_head = roformer_lm_head,
                                  .heads = kRoFormerHeads,
                                  .attention = kEagerAlone};
// transformers 5.20 models/layoutlm/modeling_layoutlm.py: LayoutLMPreTrainedModel._supports_sdpa.
const Program kLayoutProgram = {.forward = one_stack<layout_embed, layout_layer, no_norm>,
                                .lm_head = bert_lm_head,
                                .heads = kLayoutHeads,
                                .inputs = layout_inputs,
                                .attention = sdpa_alone_since(20)};

constexpr ClassFacts kFacts = {.flex_attention = false, .no_split = NoSplit::kNone};

}  // namespace

const Family kRows[] = {
    {"megatron-bert", "MegatronBert", "MegatronBertForMaskedLM", kErnieClasses, read_bert_config, &kMegatronProgram,
     "bert.encoder.layer", kFacts},
    {"rembert", "RemBert", "RemBertForMaskedLM", kRobertaClasses, read_rembert_config, &kRemBertProgram,
     "rembert.encoder.layer", kFacts},
    {"roformer", "RoFormer", "RoFormerForMaskedLM", kRobertaClasses, read_roformer_config, &kRoFormerProgram,
     "roformer.encoder.layer", kFacts},
    {"layoutlm", "LayoutLM", "LayoutLMForMaskedLM", kLayoutClasses, read_layoutlm_config, &kLayoutProgram,
     "layoutlm.encoder.layer", kFacts},
};

extern const FamilyRows bert_relations_rows;
const FamilyRows bert_relations_rows = kRows;

}  // namespace tidemark
