// LiLT: a RoBERTa and a narrow stream of the boxes that its tokens stand in, which share their scores.
#include <utility>
#include <vector>

#include "core/families/bert_heads.hpp"
#include "core/families/family.hpp"

namespace tidemark {

extern const BertNames kLiltNames = {
    {"lilt.embeddings", "lilt.embeddings.word_embeddings", "lilt.embeddings.token_type_embeddings",
     "lilt.embeddings.position_embeddings", "lilt.embeddings.LayerNorm"},
    "lilt.pooler.dense",
    kBertHead,
    true};

namespace {

// transformers 5.24 models/lilt/configuration_lilt.py: LiltConfig. Positions count from the padding id.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_bert_config(fields, architecture);
  architecture.position_offset = fields.count({"pad_token_id"}, 0, 0) + 1;
  architecture.num_buckets = fields.count({"max_2d_position_embeddings"}, 1024);
  const Count ratio = fields.count({"channel_shrink_ratio"}, 4);
  architecture.pooler_size = architecture.hidden_size / ratio;  // columns of the boxes' stream
  if (architecture.hidden_size % (6 * ratio) != 0 || architecture.head_dim % ratio != 0 ||
      architecture.intermediate_size % ratio != 0) {
    fields.error("INVALID_VALUE", "channel_shrink_ratio",
                 "The boxes' columns have to be whole parts of a layer's, of its heads' and of its feed-forward's.");
  }
  // What the last layer makes of the boxes nothing reads.
  if (architecture.num_layers > 0) {
    architecture.layer_kinds.assign(static_cast<std::size_t>(architecture.num_layers), 0);
    architecture.layer_kinds.back() = 1;
  }
}

constexpr const char* kText = "transformers 5.24 models/lilt/modeling_lilt.py: LiltTextEmbeddings.forward";
constexpr const char* kLayout = "transformers 5.24 models/lilt/modeling_lilt.py: LiltLayoutEmbeddings.forward";
constexpr const char* kModel = "transformers 5.24 models/lilt/modeling_lilt.py: LiltModel.forward";
constexpr const char* kAttention = "transformers 5.24 models/lilt/modeling_lilt.py: LiltSelfAttention.forward";
constexpr const char* kLayer = "transformers 5.24 models/lilt/modeling_lilt.py: LiltLayer.forward";

void inputs(Net& net) {
  text_inputs(net);
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B, net.S, Dim(4)}, Dtype::kInt64, "bbox"));
}

Tensor text_embeddings(Net& net, const Tensor& types, const Tensor& ids) {
  const EmbeddingNames& names = kLiltNames.embeddings;
  Scope in(net.tape, names.module, kText);
  net.tape.buffer("embeddings.position_ids", 8 * net.arch.max_positions);
  const Tensor words = net.token_embedding(names.words, net.H);
  const Tensor of_types = net.embedding(names.types, types, Dim(net.arch.type_vocab_size), net.H);
  Tensor h = add(words, of_types);
  const Tensor positions = net.embedding(names.positions, ids, Dim(net.arch.max_positions), net.H);
  h = add_in_place(std::move(h), positions);
  h = net.layer_norm(names.norm, std::move(h));
  return dropout(std::move(h), net.arch.embedding_dropout);
}

Tensor layout_embeddings(Net& net, const Tensor& ids) {
  Scope in(net.tape, "lilt.layout_embeddings", kLayout);
  Tape& t = net.tape;
  const Tensor box = net.more_inputs.front();
  const Dim rows(net.arch.num_buckets), width(net.arch.hidden_size / 6), narrow(net.arch.pooler_size);
  std::vector<Tensor> sides;
  const std::size_t tables = t.parameter_place();
  for (int pass = 0; pass < 2; ++pass) {  // both corners come from the same tables
    t.set_parameter_place(tables);
    sides.push_back(net.embedding("lilt.layout_embeddings.x_position_embeddings", select(box, 2), rows, width));
    sides.push_back(net.embedding("lilt.layout_embeddings.y_position_embeddings", select(box, 2), rows, width));
  }
  for (const char* const table :
       {"lilt.layout_embeddings.h_position_embeddings", "lilt.layout_embeddings.w_position_embeddings"}) {
    const Tensor difference = t.allocate(Shape{net.B, net.S}, Dtype::kInt64, "sub");
    sides.push_back(net.embedding(table, difference, rows, width));
  }
  Tensor h = cat(sides, 2);
  h = net.linear("lilt.layout_embeddings.box_linear_embeddings", std::move(h), narrow, true);
  const Tensor boxes =
      net.embedding("lilt.layout_embeddings.box_position_embeddings", ids, Dim(net.arch.max_positions), narrow);
  h = add(std::move(h), boxes);
  h = net.layer_norm("lilt.layout_embeddings.LayerNorm", std::move(h));
  return dropout(std::move(h), net.arch.embedding_dropout);
}

// The boxes go from layer to layer in net.shared.encoder_states.
Tensor embed(Net& net) {
  Scope in(net.tape, "", kModel);
  const Tensor types = net.tape.allocate(Shape{net.B, net.S}, Dtype::kInt64, "zeros");
  const Tensor ids = position_ids_from_padding(net);
  Tensor h = text_embeddings(net, types, ids);
  net.shared.causal_mask = bidirectional_mask(net, h, true, net.S, net.S);
  net.shared.encoder_states = layout_embeddings(net, ids);
  net.model_locals = {h, net.shared.encoder_states, types, ids};
  return h;
}

// Softmax, dropout and the values' rows; `scores` and what is made of them have names until the attention returns.
struct Attended {
  Tensor weights, states;
};
Attended attended(Net& net, Tensor& scores, const Tensor& v, Dim width) {
  if (net.shared.causal_mask.defined()) scores = add(std::move(scores), net.shared.causal_mask);
  Attended out;
  out.weights = softmax(scores);
  out.weights = dropout(std::move(out.weights), net.arch.attention_dropout);
  Tensor states = matmul(out.weights, v);
  states = contiguous(transpose(std::move(states), 1, 2));
  out.states = view(std::move(states), Shape{net.B, net.S, width});
  return out;
}

struct Streams {
  Tensor text, layout;
};

Streams self_attention(Net& net, const Tensor& text, const Tensor& layout) {
  Scope in(net.tape, "attention.self", kAttention);
  net.attention_kernel = "eager";
  const Dim narrow(net.arch.pooler_size), part(net.arch.pooler_size / net.arch.num_heads);
  const auto heads = [&](const char* name, const Tensor& x, Dim width, Dim head) {
    return split_heads(net, net.linear(name, x, width, true), net.A, head);
  };
  const Tensor layout_v = heads("attention.self.layout_value", layout, narrow, part);
  const Tensor layout_k = heads("attention.self.layout_key", layout, narrow, part);
  const Tensor layout_q = heads("attention.self.layout_query", layout, narrow, part);
  const Tensor q = heads("attention.self.query", text, net.Q, net.hd);
  const Tensor k = heads("attention.self.key", text, net.Q, net.hd);
  const Tensor v = heads("attention.self.value", text, net.Q, net.hd);
  Tensor scores = matmul(q, transpose(k, 2, 3));
  Tensor layout_scores = matmul(layout_q, transpose(layout_k, 2, 3));
  const Tensor scaled = mul_scalar(scores);
  const Tensor layout_scaled = mul_scalar(layout_scores);
  scores = add(scaled, layout_scaled);
  layout_scores = add(layout_scaled, scaled);
  const Attended of_layout = attended(net, layout_scores, layout_v, narrow);
  const Attended of_text = attended(net, scores, v, net.Q);
  return {of_text.states, of_layout.states};
}

// Dense, dropout, norm of the sum.
Tensor join(Net& net, const char* module, const char* dense, const char* norm, const Tensor& x, const Tensor& input) {
  Scope in(net.tape, module, kLayer);
  Tensor h = net.linear(dense, x, input.dim(-1), true);
  h = dropout(std::move(h), net.arch.residual_dropout);
  Tensor sum = add(h, input);
  return net.layer_norm(norm, std::move(sum));
}

Tensor intermediate(Net& net, const char* module, const char* dense, const Tensor& x, Dim width) {
  Scope in(net.tape, module, kLayer);
  Tensor h = net.linear(dense, x, width, true);
  return activate(net.arch.activation, std::move(h));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor text_in = std::move(hidden), layout_in = net.shared.encoder_states;
  Streams h;
  {
    const Streams states = self_attention(net, text_in, layout_in);
    h.text =
        join(net, "attention.output", "attention.output.dense", "attention.output.LayerNorm", states.text, text_in);
    h.layout = join(net, "attention.layout_output", "attention.layout_output.dense",
                    "attention.layout_output.LayerNorm", states.layout, layout_in);
  }
  Tensor text, layout;
  {
    const Tensor wide = intermediate(net, "intermediate", "intermediate.dense", h.text, net.F);
    text = join(net, "output", "output.dense", "output.LayerNorm", wide, h.text);
  }
  {
    const Dim width(net.arch.intermediate_size * net.arch.pooler_size / net.arch.hidden_size);
    const Tensor wide = intermediate(net, "layout_intermediate", "layout_intermediate.dense", h.layout, width);
    layout = join(net, "layout_output", "layout_output.dense", "layout_output.LayerNorm", wide, h.layout);
  }
  net.shared.encoder_states = std::move(layout);
  return text;
}

// LiltEncoder.forward returns the text alone.
Tensor forward(Net& net) {
  Tensor hidden = embed(net);
  hidden = net.layers({"lilt.encoder.layer", net.arch.num_layers, layer, true, Phase::kLoss}, std::move(hidden));
  net.shared = {};
  return hidden;
}

// Beside adapters a checkpoint of the last layer holds what no record of ours explains yet.
void check(const Architecture&, const TrainingJob& job, Issues& issues) {
  if (job.checkpointing == Checkpointing::kNone || (!job.use_reentrant && job.method == Method::kFull)) return;
  issues.push_back(
      {"UNSUPPORTED_VALUE", Severity::kError, "/gradient_checkpointing",
       "Of lilt, whose layers hand on two streams, checkpoints are modelled with all parameters trained and "
       "without re-entrance.",
       "none"});
}

constexpr ClassSuffix kClasses[] = {{"ForTokenClassification", Head::kTokenClassification},
                                    {"ForSequenceClassification", Head::kSequenceClassification},
                                    {"ForQuestionAnswering", Head::kQuestionAnswering},
                                    {"Model", Head::kNone}};
constexpr HeadForward kHeads[] = {{Head::kTokenClassification, encoder_tokens},
                                  {Head::kSequenceClassification, roberta_sequence},
                                  {Head::kQuestionAnswering, encoder_span},
                                  {Head::kNone, bert_body}};

}  // namespace

const Program kLiltProgram = {
    .forward = forward, .heads = kHeads, .inputs = inputs, .attention = kEagerAlone, .check = check};

const Family kRows[] = {
    {"lilt",
     "Lilt",
     "LiltForTokenClassification",
     kClasses,
     read_config,
     &kLiltProgram,
     "lilt.encoder.layer",
     {.flex_attention = false, .no_split = NoSplit::kNone}},
};

extern const FamilyRows lilt_rows;
const FamilyRows lilt_rows = kRows;

}  // namespace tidemark
