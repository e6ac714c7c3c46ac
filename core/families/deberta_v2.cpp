// DeBERTa v2 and v3: attention to content and, by projections of one shared table, to relative positions. The first
// DeBERTa: the same with one projection for queries, keys and values, and a norm written out in Python.
#include <string>
#include <string_view>

#include "core/families/family.hpp"
#include "core/job/mixed_precision.hpp"
#include "core/layers/vision.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/deberta_v2/configuration_deberta_v2.py: DebertaV2Config, and the keys that
// modeling_deberta_v2.py reads with getattr. `pos_att_type` is a list, or the names with bars between.
void read_positions(ConfigFields& fields, Architecture& architecture) {
  if (const Value* types = fields.find({"pos_att_type"})) {
    const auto has = [&](std::string_view name) {
      if (types->string.find(name) != std::string::npos) return true;
      for (const Value& type : types->items) {
        if (type.string == name) return true;
      }
      return false;
    };
    architecture.content_to_position = has("c2p");
    architecture.position_to_content = has("p2c");
  }
  const Value* reach = fields.find({"max_relative_positions"});
  const Value* buckets = fields.find({"position_buckets"});
  Count span =
      reach != nullptr && reach->is_integer() && reach->integer > 0 ? reach->integer : architecture.max_positions;
  if (buckets != nullptr && buckets->is_integer() && buckets->integer > 0) span = buckets->integer;
  if (fields.flag({"relative_attention"}, false)) architecture.num_buckets = span;
}

void read_deberta_v2_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 512);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  read_positions(fields, architecture);
  architecture.shares_position_keys = fields.flag({"share_att_key"}, false);
  architecture.norm_positions = fields.text({"norm_rel_ebd"}, "none").find("layer_norm") != std::string::npos;
  architecture.positions_by_token = fields.flag({"position_biased_input"}, true);
  architecture.type_vocab_size = fields.count({"type_vocab_size"}, 0, 0);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  architecture.head_activation = read_activation(fields, {"pooler_hidden_act"}, "gelu");
  architecture.attention_bias = true;
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.norm_bias = true;
  architecture.head_bias = true;
  architecture.norm_before = false;
  architecture.final_norm = false;
  const double dropout = fields.probability({"hidden_dropout_prob"}, 0.1);
  architecture.residual_dropout = dropout;
  architecture.embedding_dropout = dropout;
  architecture.attention_dropout = fields.probability({"attention_probs_dropout_prob"}, 0.1);
  architecture.summary_dropout = fields.probability({"pooler_dropout"}, 0.0);
  architecture.classifier_dropout = fields.probability({"cls_dropout"}, dropout);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  if (!fields.flag({"legacy"}, true)) {
    fields.error("INVALID_VALUE", "legacy", "Only the head that \"legacy\": true gives is modelled.");
  }
  if (fields.count({"conv_kernel_size"}, 0, 0) > 0) {
    fields.error("INVALID_VALUE", "conv_kernel_size", "The convolution beside the first layer is not modelled yet.");
  }
  for (const std::string_view key : {"embedding_size", "pooler_hidden_size", "attention_head_size"}) {
    const Count usual = key == "attention_head_size" ? architecture.head_dim : architecture.hidden_size;
    if (fields.nullable({key}, usual).value_or(usual) != usual) {
      fields.error("INVALID_VALUE", key, "A width of its own here is not modelled yet.");
    }
  }
}

// transformers 5.12.1 models/deberta/configuration_deberta.py: DebertaConfig, whose positions fall into no buckets.
void read_deberta_config(ConfigFields& fields, Architecture& architecture) {
  read_deberta_v2_config(fields, architecture);
  architecture.shares_position_keys = architecture.norm_positions = false;
  if (fields.flag({"talking_head"}, false)) {
    fields.error("INVALID_VALUE", "talking_head", "Projections between heads are not modelled.");
  }
}

bool is_first(const Net& net) {
  return net.arch.model_type == "deberta";
}

constexpr const char* kEmbeddings =
    "transformers 5.12 models/deberta_v2/modeling_deberta_v2.py: DebertaV2Embeddings.forward";
constexpr const char* kEncoder = "transformers 5.12 models/deberta_v2/modeling_deberta_v2.py: DebertaV2Encoder.forward";
constexpr const char* kLayer = "transformers 5.12 models/deberta_v2/modeling_deberta_v2.py: DebertaV2Layer.forward";
constexpr const char* kSelf =
    "transformers 5.12 models/deberta_v2/modeling_deberta_v2.py: DisentangledSelfAttention.forward";
constexpr const char* kBias =
    "transformers 5.12 models/deberta_v2/modeling_deberta_v2.py: DisentangledSelfAttention.disentangled_attention_bias";
constexpr const char* kJoin = "transformers 5.12 models/deberta_v2/modeling_deberta_v2.py: DebertaV2Output.forward";
constexpr const char* kHead =
    "transformers 5.12 models/deberta_v2/modeling_deberta_v2.py: LegacyDebertaV2LMPredictionHead.forward";
constexpr const char* kPooler = "transformers 5.12 models/deberta_v2/modeling_deberta_v2.py: ContextPooler.forward";

constexpr const char* kFirstNorm = "transformers 5.12 models/deberta/modeling_deberta.py: DebertaLayerNorm.forward";
constexpr const char* kFirstSelf =
    "transformers 5.12 models/deberta/modeling_deberta.py: DisentangledSelfAttention.forward";

Tensor norm(Net& net, const char* name, Tensor x_in) {
  if (!is_first(net)) return net.layer_norm(name, std::move(x_in));
  Scope in(net.tape, name, kFirstNorm);
  const Tensor argument = std::move(x_in);  // lives until the call returns
  const Dtype dtype = argument.dtype();
  Tensor x = to(argument, Dtype::kFp32);
  const Tensor mean = mean_last(x);
  Tensor variance = mean_last(power(sub(x, mean)));
  x = sub(std::move(x), mean);
  variance = add_scalar(variance);
  x = div(std::move(x), power(std::move(variance)));
  x = to(std::move(x), dtype);
  const Shape width{x.dim(-1)};
  Tensor y = mul(net.parameter(name, "weight", width), x);
  return add(std::move(y), net.parameter(name, "bias", width));
}

Tensor embeddings(Net& net, const Tensor& mask, const Tensor& types) {
  Scope in(net.tape, "deberta.embeddings", kEmbeddings);
  Tape& t = net.tape;
  t.buffer("embeddings.position_ids", 8 * net.arch.max_positions);
  const Tensor embeds = net.token_embedding("deberta.embeddings.word_embeddings", net.H);
  Tensor h = embeds, positions;
  if (net.arch.positions_by_token) {
    const Tensor ids = t.part_of_buffer(Shape{Dim(1), net.S}, Dtype::kInt64);
    positions = net.embedding("deberta.embeddings.position_embeddings", ids, Dim(net.arch.max_positions), net.H);
    h = add(std::move(h), positions);
  } else {
    positions = t.allocate(embeds.shape(), embeds.dtype(), "zeros_like");
  }
  if (net.arch.type_vocab_size > 0) {
    const Tensor type_embeds =
        net.embedding("deberta.embeddings.token_type_embeddings", types, Dim(net.arch.type_vocab_size), net.H);
    h = add(std::move(h), type_embeds);
  }
  h = norm(net, "deberta.embeddings.LayerNorm", std::move(h));
  Tensor factor = to(unsqueeze(mask, 2), h.dtype());
  h = mul(std::move(h), std::move(factor));
  return dropout(std::move(h), net.arch.embedding_dropout);
}

Tensor embed(Net& net) {
  Tape& t = net.tape;
  const Shape rows{net.B, net.S};
  Tensor mask = net.attention_mask;
  if (!mask.defined()) mask = t.allocate(rows, Dtype::kFp32, "attention_mask");
  Tensor types = t.allocate(rows, Dtype::kInt64, "token_type_ids");
  Tensor h = embeddings(net, mask, types);
  Scope in(t, "deberta.encoder", kEncoder);
  net.shared.causal_mask = t.allocate(Shape{net.B, Dim(1), net.S, net.S}, mask.dtype(), "mul");
  if (net.arch.num_buckets > 0) {
    net.shared.position_ids = t.allocate(Shape{net.S, net.S}, Dtype::kInt64, "relative_pos");
    net.shared.bias =
        net.parameter("deberta.encoder.rel_embeddings", "weight", Shape{Dim(2 * net.arch.num_buckets), net.H});
    if (net.arch.norm_positions) net.shared.bias = net.layer_norm("deberta.encoder.LayerNorm", net.shared.bias);
  }
  net.model_locals = {std::move(mask), std::move(types), h};
  return h;
}

// transpose_for_scores: heads as a batch of matrices, a copy.
Tensor by_heads(Net& net, Tensor x_in) {
  const Tensor x = std::move(x_in);
  const Dim rows = x.dim(0), length = x.dim(1);
  Tensor h = view(x, Shape{rows, length, net.A, net.hd});
  h = contiguous(permute(std::move(h), {0, 2, 1, 3}));
  return view(std::move(h), Shape{Dim(rows.n() * net.A.n()), length, net.hd});
}

// The shared table through a projection, for each row of the batch.
Tensor of_positions(Net& net, const char* name, const Tensor& table) {
  Tensor h = net.linear(name, table, net.Q, true);
  h = by_heads(net, std::move(h));
  return repeat_rows(std::move(h), net.B);
}

// relative_pos shifted and clamped.
Tensor shifted(Net& net, bool negated) {
  const Shape square{Dim(1), Dim(1), net.S, net.S};
  Tensor ids;
  if (negated) ids = net.tape.allocate(square, Dtype::kInt64, "neg");
  ids = net.tape.allocate(square, Dtype::kInt64, "add");
  return net.tape.allocate(square, Dtype::kInt64, "clamp");
}

struct Places {
  std::size_t query, key;
};

Tensor position_bias(Net& net, const Tensor& q, const Tensor& k, const Tensor& table, const Places& places) {
  Scope in(net.tape, "attention.self", kBias);
  Tape& t = net.tape;
  const bool shares = net.arch.shares_position_keys;
  const Tensor rel = unsqueeze(table, 0);
  Tensor pos_key, pos_query;
  if (shares) {
    const std::size_t here = t.parameter_place();
    t.set_parameter_place(places.query);
    pos_query = of_positions(net, "attention.self.query_proj", rel);
    t.set_parameter_place(places.key);
    pos_key = of_positions(net, "attention.self.key_proj", rel);
    t.set_parameter_place(here);
  } else {
    if (net.arch.content_to_position) pos_key = of_positions(net, "attention.self.pos_key_proj", rel);
    if (net.arch.position_to_content) pos_query = of_positions(net, "attention.self.pos_query_proj", rel);
  }
  Tensor score, c2p, p2c;
  if (net.arch.content_to_position) {
    c2p = matmul(q, transpose(pos_key, 1, 2));
    Tensor at = shifted(net, false);
    c2p = gather_last(std::move(c2p), std::move(at), net.S);
    Tensor scaled = mul_scalar(c2p);
    score = add_scalar(std::move(scaled));
  }
  if (net.arch.position_to_content) {
    Tensor at = shifted(net, true);
    p2c = matmul(k, transpose(pos_query, 1, 2));
    p2c = gather_last(std::move(p2c), std::move(at), net.S);
    p2c = transpose(std::move(p2c), 1, 2);
    Tensor scaled = mul_scalar(p2c);
    score = score.defined() ? add_in_place(std::move(score), std::move(scaled)) : add_scalar(std::move(scaled));
  }
  return score;
}

Tensor attend(Net& net, const Tensor& x) {
  Scope in(net.tape, "attention.self", kSelf);
  Tape& t = net.tape;
  net.attention_kernel = "eager";
  Places places{};
  places.query = t.parameter_place();
  const Tensor q = by_heads(net, net.linear("attention.self.query_proj", x, net.Q, true));
  places.key = t.parameter_place();
  const Tensor k = by_heads(net, net.linear("attention.self.key_proj", x, net.Q, true));
  const Tensor v = by_heads(net, net.linear("attention.self.value_proj", x, net.Q, true));
  Tensor kt = mul_scalar(transpose(k, 1, 2));
  Tensor scores = matmul(q, std::move(kt));
  Tensor rel_att, table;
  if (net.arch.num_buckets > 0) {
    table = dropout(net.shared.bias, net.arch.residual_dropout);
    rel_att = position_bias(net, q, k, table, places);
    if (rel_att.defined()) scores = add(std::move(scores), rel_att);
  }
  const Shape four{net.B, net.A, net.S, net.S}, three{Dim(net.B.n() * net.A.n()), net.S, net.S};
  scores = view(std::move(scores), four);
  const Tensor mask = t.allocate(net.shared.causal_mask.shape(), Dtype::kBool, "bool");
  Tensor inverted = t.allocate(mask.shape(), Dtype::kBool, "bitwise_not");
  scores = masked_fill(std::move(scores), std::move(inverted));
  Tensor probabilities = softmax(scores);
  probabilities = dropout(std::move(probabilities), net.arch.attention_dropout);
  Tensor out = matmul(view(probabilities, three), v);
  out = view(std::move(out), Shape{net.B, net.A, net.S, net.hd});
  out = contiguous(permute(std::move(out), {0, 2, 1, 3}));
  return view(std::move(out), Shape{net.B, net.S, net.Q});
}

// disentangled_att_bias: positions by heads, [1, A, rows, hd], which the products copy for each row of the batch.
Tensor first_bias(Net& net, const Tensor& q, const Tensor& k, Tensor table) {
  const Count reach = net.arch.num_buckets;
  const bool all = net.tape.above(net.S.n(), reach - 1);
  const Dim rows(2 * (all ? reach : net.S.n()));
  if (!all) table = narrow(std::move(table), 0, 0, rows);
  const Tensor rel = unsqueeze(table, 0);
  const auto heads = [&](Tensor x) {
    x = transpose(view(std::move(x), Shape{Dim(1), rows, net.A, net.hd}), 1, 2);
    return transpose(expand(std::move(x), Shape{net.B, net.A, rows, net.hd}), 2, 3);
  };
  Tensor score;
  if (net.arch.content_to_position) {
    Tensor keys = heads(net.linear("attention.self.pos_proj", rel, net.Q));
    Tensor c2p = matmul(q, std::move(keys));
    score = add_scalar(gather_last(std::move(c2p), shifted(net, false), net.S));
  }
  if (net.arch.position_to_content) {
    Tensor queries = scale_in_place(net.linear("attention.self.pos_q_proj", rel, net.Q, true));
    const Tensor at = shifted(net, true);
    Tensor p2c = matmul(k, heads(std::move(queries)));
    p2c = transpose(gather_last(std::move(p2c), at, net.S), 2, 3);
    score = score.defined() ? add_in_place(std::move(score), std::move(p2c)) : add_scalar(std::move(p2c));
  }
  return score;
}

// Made with dtype=torch.float, in which transformers 5 loads it (core_model_loading.py: empty_param.dtype).
Tensor wide_bias(Net& net, const char* leaf) {
  constexpr const char* kModule = "attention.self";
  const Shape row{net.Q};
  Tensor bias = net.job.framework.at_least(5, 0) ? net.fp32_parameter(kModule, leaf, row, true)
                                                 : net.parameter(kModule, leaf, row);
  return view(std::move(bias), Shape{Dim(1), net.A, Dim(1), net.hd});
}

Tensor attend_first(Net& net, const Tensor& x) {
  Scope in(net.tape, "attention.self", kFirstSelf);
  net.attention_kernel = "eager";
  const Tensor projected = net.linear("attention.self.in_proj", x, Dim(3 * net.Q.n()));
  Tensor heads = transpose(view(projected, Shape{net.B, net.S, net.A, Dim(3 * net.hd.n())}), 1, 2);
  const Pieces three = split(std::move(heads), -1, {net.hd, net.hd, net.hd});
  Tensor q = add(three.part[0], wide_bias(net, "q_bias"));
  const Tensor k = three.part[1];
  const Tensor v = add(three.part[2], wide_bias(net, "v_bias"));
  q = mul_scalar(std::move(q));
  Tensor scores = matmul(q, transpose(k, 2, 3));
  Tensor table, rel_att;
  if (net.arch.num_buckets > 0) {
    table = dropout(net.shared.bias, net.arch.residual_dropout);
    rel_att = first_bias(net, q, k, table);
    if (rel_att.defined()) scores = add(std::move(scores), rel_att);
  }
  const Tensor mask = net.tape.allocate(net.shared.causal_mask.shape(), Dtype::kBool, "bool");
  Tensor inverted = net.tape.allocate(mask.shape(), Dtype::kBool, "bitwise_not");
  scores = masked_fill(std::move(scores), std::move(inverted));
  Tensor probabilities = softmax(scores);
  probabilities = dropout(std::move(probabilities), net.arch.attention_dropout);
  Tensor out = matmul(probabilities, v);
  out = contiguous(permute(std::move(out), {0, 2, 1, 3}));
  return view(std::move(out), Shape{net.B, net.S, net.Q});
}

// DebertaSelfOutput and DebertaOutput.
Tensor join_first(Net& net, const char* dense, const char* norm_name, Tensor x_in, const Tensor& input) {
  const Tensor x = std::move(x_in);
  Tensor h = net.linear(dense, x, net.H, true);
  h = dropout(std::move(h), net.arch.residual_dropout);
  Tensor sum = add(h, input);
  return norm(net, norm_name, std::move(sum));
}

Tensor first_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor x = std::move(hidden);
  Tensor attended = attend_first(net, x);
  attended = join_first(net, "attention.output.dense", "attention.output.LayerNorm", std::move(attended), x);
  Tensor h = net.linear("intermediate.dense", attended, net.F, true);
  h = activate(net.arch.activation, std::move(h));
  return join_first(net, "output.dense", "output.LayerNorm", std::move(h), attended);
}

Tensor layer(Net& net, Tensor hidden) {
  if (is_first(net)) return first_layer(net, std::move(hidden));
  Scope in(net.tape, "", kLayer);
  const Tensor x = std::move(hidden);
  Tensor attention_output = attend(net, x);
  attention_output = bert_join(net, "attention.output", "attention.output.dense", "attention.output.LayerNorm", kJoin,
                               std::move(attention_output), x);
  Tensor h = net.linear("intermediate.dense", attention_output, net.F, true);
  {
    Scope act(net.tape, "intermediate.intermediate_act_fn", kLayer);
    h = activate(net.arch.activation, std::move(h));
  }
  return bert_join(net, "output", "output.dense", "output.LayerNorm", kJoin, std::move(h), attention_output);
}

// DebertaModel.forward and DebertaV2Model.forward ask the encoder for all hidden states, until they return.
Tensor forward(Net& net) {
  const Stack stack{net.arch.layers_path, net.arch.num_layers, layer, true, Phase::kForward, keep_hidden};
  Tensor hidden = net.layers(stack, embed(net));
  net.let_handed_out_go();
  return hidden;
}

Tensor lm_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  // As in BERT: untied, a second bias stays that nothing reads.
  if (!net.arch.tie_word_embeddings) const Tensor unread = net.parameter("cls.predictions", "bias", Shape{net.V});
  Tensor h = net.linear("cls.predictions.transform.dense", std::move(hidden), net.H, true);
  h = activate(net.arch.activation, std::move(h));
  h = net.layer_norm("cls.predictions.transform.LayerNorm", std::move(h));
  return net.lm_head("cls.predictions.decoder", std::move(h), net.V, true);
}

Tensor pooled(Net& net, Tensor hidden) {
  Scope in(net.tape, "pooler", kPooler);
  Tensor h = select(std::move(hidden), 1);
  h = dropout(std::move(h), net.arch.summary_dropout);
  h = net.linear("pooler.dense", std::move(h), net.H, true);
  h = activate(net.arch.head_activation, std::move(h));
  return dropout(std::move(h), net.arch.classifier_dropout);
}

Outputs sequence(Net& net, const Program&, Tensor hidden) {
  Tensor h = pooled(net, std::move(hidden));
  return classified(net, net.classifier("classifier", std::move(h), Dim(net.arch.num_labels), true));
}

Outputs tokens(Net& net, const Program&, Tensor hidden) {
  const Tensor x = dropout(std::move(hidden), net.arch.residual_dropout);
  return labelled(net, net.classifier("classifier", x, Dim(net.arch.num_labels), true));
}

Outputs span(Net& net, const Program&, Tensor hidden) {
  return spans(net, net.classifier("qa_outputs", std::move(hidden), Dim(2), true));
}

Outputs choice(Net& net, const Program&, Tensor hidden) {
  return choose(net, pooled(net, std::move(hidden)));
}

constexpr ClassSuffix kDebertaClasses[] = {{"ForMaskedLM", Head::kMaskedLm},
                                           {"ForSequenceClassification", Head::kSequenceClassification},
                                           {"ForTokenClassification", Head::kTokenClassification},
                                           {"ForQuestionAnswering", Head::kQuestionAnswering},
                                           {"Model", Head::kNone}};

constexpr HeadForward kHeads[] = {{Head::kMaskedLm, masked_lm},         {Head::kSequenceClassification, sequence},
                                  {Head::kTokenClassification, tokens}, {Head::kQuestionAnswering, span},
                                  {Head::kMultipleChoice, choice},      {Head::kNone, body_alone}};

// The table of distances is normed once and comes to each layer by a keyword, which re-entrant checkpoints do not
// detach: each layer's own backward runs through that norm, whose graph is gone after the first.
void check_norm(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const bool again = job.checkpointing != Checkpointing::kNone && job.use_reentrant && architecture.num_layers > 1;
  if (!again || !architecture.norm_positions || job.method != Method::kFull) return;
  issues.push_back({"INVALID_VALUE", Severity::kError, "/use_reentrant",
                    "Re-entrant checkpoints run backward through this model's norm of distances once a layer: torch "
                    "raises a RuntimeError (\"Trying to backward through the graph a second time\").",
                    "false"});
}

// DisentangledSelfAttention.__init__ makes q_bias and v_bias with dtype=torch.float, and transformers 5 loads each
// parameter in the dtype that it was made in (core_model_loading.py: empty_param.dtype).
void check_biases(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  check_norm(architecture, job, issues);
  const bool casts = job.recipe.autocast || job.runs_deepspeed() || mixed_precision(job).gathered;
  if (casts || job.method == Method::kQlora || !is_half(job.recipe.weights) || !job.framework.at_least(5, 0)) return;
  issues.push_back(of_mixed_dtypes());
}

constexpr ClassFacts kFacts = {.flex_attention = false, .no_split = NoSplit::kNone};

}  // namespace

// DebertaV2PreTrainedModel names no attention kernels at all.
const Program kDebertaV2Program = {
    .forward = forward, .lm_head = lm_head, .heads = kHeads, .attention = kEagerAlone, .check = check_norm};
const Program kDebertaProgram = {
    .forward = forward, .lm_head = lm_head, .heads = kHeads, .attention = kEagerAlone, .check = check_biases};

const Family kRows[] = {
    {"deberta-v2", "DebertaV2", "DebertaV2ForMaskedLM", kDistilBertClasses, read_deberta_v2_config, &kDebertaV2Program,
     "deberta.encoder.layer", kFacts},
    {"deberta", "Deberta", "DebertaForMaskedLM", kDebertaClasses, read_deberta_config, &kDebertaProgram,
     "deberta.encoder.layer", kFacts},
};

extern const FamilyRows deberta_v2_rows;
const FamilyRows deberta_v2_rows = kRows;

}  // namespace tidemark
