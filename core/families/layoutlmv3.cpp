// LayoutLMv3: words with the boxes that they stand in and the page's patches in one encoder, whose scores know how far
// two of them are apart in the text and on the page.
#include <string>
#include <utility>

#include "core/families/biased_attention.hpp"
#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/layers/losses.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kText =
    "transformers 5.12 models/layoutlmv3/modeling_layoutlmv3.py: LayoutLMv3TextEmbeddings.forward";
constexpr const char* kImage =
    "transformers 5.12 models/layoutlmv3/modeling_layoutlmv3.py: LayoutLMv3Model.forward_image";
constexpr const char* kModel = "transformers 5.12 models/layoutlmv3/modeling_layoutlmv3.py: LayoutLMv3Model.forward";
constexpr const char* kBuckets =
    "transformers 5.12 models/layoutlmv3/modeling_layoutlmv3.py: LayoutLMv3Encoder.relative_position_bucket";
constexpr const char* kDistances =
    "transformers 5.12 models/layoutlmv3/modeling_layoutlmv3.py: LayoutLMv3Encoder._cal_2d_pos_emb";
constexpr const char* kLookup =
    "transformers 5.24 models/layoutlmv3/modeling_layoutlmv3.py: LayoutLMv3Encoder._compute_position_bias";
constexpr const char* kSelf =
    "transformers 5.12 models/layoutlmv3/modeling_layoutlmv3.py: LayoutLMv3SelfAttention.forward";
constexpr const char* kJoin = "transformers 5.12 models/layoutlmv3/modeling_layoutlmv3.py: LayoutLMv3Output.forward";
constexpr const char* kLayer = "transformers 5.12 models/layoutlmv3/modeling_layoutlmv3.py: LayoutLMv3Layer.forward";
constexpr const char* kHead =
    "transformers 5.12 models/layoutlmv3/modeling_layoutlmv3.py: LayoutLMv3ClassificationHead.forward";

/// Numbers of a box: left, upper, right, lower; and how high and wide it is.
constexpr Count kBox = 4, kSides = 2;
/// From so many labels on LayoutLMv3ForTokenClassification has a layer before its classifier.
constexpr Count kManyLabels = 10;

// transformers 5.12.1 models/layoutlmv3/configuration_layoutlmv3.py: LayoutLMv3Config, which extends BERT's keys.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_bert_config(fields, architecture);
  architecture.position_offset = 2;  // positions are counted from the padding id, as RoBERTa's are
  architecture.image_size = square_side(fields, "input_size", 224);
  architecture.patch_size = square_side(fields, "patch_size", 16);
  architecture.num_channels = fields.count({"num_channels"}, 3);
  architecture.num_buckets = fields.count({"rel_pos_bins"}, 32);
  Pictures& p = architecture.pictures;
  p.depth = fields.count({"rel_2d_pos_bins"}, 64);
  p.positions = fields.count({"max_2d_position_embeddings"}, 1024);
  p.width = fields.count({"coordinate_size"}, 128);
  p.head_dim = fields.count({"shape_size"}, 128);
  p.tokens = fields.count({"max_rel_pos"}, 128);
  p.window = fields.count({"max_rel_2d_pos"}, 256);
  fields.accept({"second_input_size"});
  for (const std::string_view key :
       {"has_relative_attention_bias", "has_spatial_attention_bias", "text_embed", "visual_embed"}) {
    if (fields.flag({key}, true)) continue;
    fields.error("INVALID_VALUE", key, "Only true is modelled, as in all published files.");
  }
}

/// A page's patches, and the token before them.
Dim page_tokens(const Net& net) {
  const Count side = net.arch.image_size / net.arch.patch_size;
  return Dim(side * side + 1);
}

// LayoutLMv3Processor: a box for each token, the page in one piece.
void inputs(Net& net) {
  text_inputs(net);
  const Dim side(net.arch.image_size), channels(net.arch.num_channels);
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B, net.S, Dim(kBox)}, Dtype::kInt64, "bbox"));
  net.pixel_values = given_pixels(net, Shape{net.B, channels, side, side});
}

// calculate_spatial_position_embeddings: two tables of coordinates, each read twice, and two of sizes.
Tensor boxes(Net& net, const Tensor& bbox) {
  Tape& t = net.tape;
  const Shape row{net.B, net.S};
  const Pictures& p = net.arch.pictures;
  const Dim rows(p.positions), coordinate(p.width), extent(p.head_dim);
  const auto looked_up = [&](const char* name, Dim width) { return net.embedding(name, select(bbox, 2), rows, width); };
  const char *const kX = "layoutlmv3.embeddings.x_position_embeddings",
                    *const kY = "layoutlmv3.embeddings.y_position_embeddings";
  const std::size_t place = t.parameter_place();
  const Tensor left = looked_up(kX, coordinate);
  const Tensor upper = looked_up(kY, coordinate);
  t.set_parameter_place(place);
  const Tensor right = looked_up(kX, coordinate);
  const Tensor lower = looked_up(kY, coordinate);
  const auto size_of_box = [&](const char* name) {
    const Tensor difference = t.allocate(row, Dtype::kInt64, "sub");
    Tensor clipped = t.allocate(row, Dtype::kInt64, "clip");
    return net.embedding(name, std::move(clipped), rows, extent);
  };
  const Tensor height = size_of_box("layoutlmv3.embeddings.h_position_embeddings");
  const Tensor width = size_of_box("layoutlmv3.embeddings.w_position_embeddings");
  return cat({&left, &upper, &right, &lower, &height, &width}, -1);
}

Tensor text_embeddings(Net& net, const Tensor& types, const Tensor& bbox) {
  Scope in(net.tape, "layoutlmv3.embeddings", kText);
  net.tape.buffer("embeddings.position_ids", net.arch.max_positions * size_of(Dtype::kInt64));
  const Tensor position_ids = position_ids_from_padding(net);
  const Tensor embeds = net.token_embedding("layoutlmv3.embeddings.word_embeddings", net.H);
  const Tensor type_embeds =
      net.embedding("layoutlmv3.embeddings.token_type_embeddings", types, Dim(net.arch.type_vocab_size), net.H);
  Tensor h = add(embeds, type_embeds);
  const Tensor positions =
      net.embedding("layoutlmv3.embeddings.position_embeddings", position_ids, Dim(net.arch.max_positions), net.H);
  h = add_in_place(std::move(h), positions);
  const Tensor spatial = boxes(net, bbox);
  h = add(std::move(h), spatial);
  h = net.layer_norm("layoutlmv3.embeddings.LayerNorm", std::move(h));
  return dropout(std::move(h), net.arch.embedding_dropout);
}

Tensor page_embeddings(Net& net) {
  Scope in(net.tape, "layoutlmv3", kImage);
  const Dim side(net.arch.patch_size), one(1), tokens = page_tokens(net);
  Tensor weight =
      net.parameter("layoutlmv3.patch_embed.proj", "weight", Shape{net.H, Dim(net.arch.num_channels), side, side});
  Tensor bias = net.parameter("layoutlmv3.patch_embed.proj", "bias", Shape{net.H});
  Tensor h = patch_convolution(net.pixel_values, std::move(weight), std::move(bias));
  h = transpose(view(std::move(h), Shape{net.B, net.H, Dim(tokens.n() - 1)}), 1, 2);
  const Tensor token =
      expand(net.parameter("layoutlmv3", "cls_token", Shape{one, one, net.H}), Shape{net.B, one, net.H});
  h = cat({&token, &h}, 1);
  h = add(std::move(h), net.parameter("layoutlmv3", "pos_embed", Shape{one, tokens, net.H}));
  return net.layer_norm("layoutlmv3.norm", std::move(h));
}

// Whole numbers for each pair of tokens, by way of logarithms.
Tensor buckets(Net& net, const Shape& pairs) {
  Scope in(net.tape, "layoutlmv3.encoder", kBuckets);
  Tape& t = net.tape;
  const Tensor distance = t.allocate(pairs, Dtype::kInt64, "sub");
  Tensor result;
  {
    Tensor behind = t.allocate(pairs, Dtype::kBool, "gt");
    Tensor whole = t.allocate(pairs, Dtype::kInt64, "long");
    behind.reset();
    Tensor half = t.allocate(pairs, Dtype::kInt64, "mul");
    whole.reset();
    result = t.allocate(pairs, Dtype::kInt64, "add");
  }
  const Tensor n = t.allocate(pairs, Dtype::kInt64, "abs");
  const Tensor is_small = t.allocate(pairs, Dtype::kBool, "lt");
  Tensor step = t.allocate(pairs, Dtype::kFp32, "float");
  for (const char* op : {"div", "log", "div", "mul"}) step = t.allocate(pairs, Dtype::kFp32, op);
  Tensor large = t.allocate(pairs, Dtype::kInt64, "long");
  step.reset();
  large = t.allocate(pairs, Dtype::kInt64, "add");
  {
    const Tensor most = t.allocate(pairs, Dtype::kInt64, "full_like");
    large = t.allocate(pairs, Dtype::kInt64, "min");
  }
  const Tensor chosen = t.allocate(pairs, Dtype::kInt64, "where");
  return result;
}

// self.rel_pos_bias.weight.t()[rel_pos]: no gradient comes to these weights.
Tensor by_distance(Net& net, const char* name, Count bins) {
  Tape& t = net.tape;
  const Tensor weight = net.linear_weight(name, net.A, Dim(bins));
  return t.allocate(Shape{net.B, net.S, net.S, net.A}, weight.dtype(), "index");
}

// transformers 5.24 models/layoutlmv3/modeling_layoutlmv3.py: ALL_ATTENTION_FUNCTIONS, and one bias of all layers.
constexpr int kByInterface = 24;

bool by_interface(const Net& net) {
  return net.job.framework.at_least(5, kByInterface);
}

// _relative_position_lookup: a row for each distance, of which every pair takes its own; [B, A, S, S].
Tensor looked_up(Net& net, const Tensor& weight, Count farthest) {
  Tape& t = net.tape;
  const Dim distances(2 * farthest + 1);
  const Tensor bucket = buckets(net, Shape{distances});
  const Tensor positions = t.allocate(Shape{net.B, net.S}, Dtype::kInt32, "int");
  const Tensor indices = t.allocate(Shape{net.B, net.S, net.S}, Dtype::kInt32, "sub");
  const Tensor table = t.allocate(Shape{net.A, distances}, weight.dtype(), "index");
  return transpose(t.allocate(Shape{net.A, net.B, net.S, net.S}, weight.dtype(), "index_select"), 0, 1);
}

void make_bias(Net& net) {
  Scope in(net.tape, "layoutlmv3.encoder", kLookup);
  const Pictures& p = net.arch.pictures;
  const Tensor along = net.linear_weight("layoutlmv3.encoder.rel_pos_bias", net.A, Dim(net.arch.num_buckets));
  const Tensor across = net.linear_weight("layoutlmv3.encoder.rel_pos_x_bias", net.A, Dim(p.depth));
  const Tensor down = net.linear_weight("layoutlmv3.encoder.rel_pos_y_bias", net.A, Dim(p.depth));
  net.shared.bias = looked_up(net, across, p.window);  // the others are added in place
  { const Tensor y = looked_up(net, down, p.window); }
  const Tensor order = looked_up(net, along, p.tokens);
}

void make_biases(Net& net) {
  Scope in(net.tape, "layoutlmv3.encoder", kDistances);
  Tape& t = net.tape;
  const Shape pairs{net.B, net.S, net.S}, biases{net.B, net.A, net.S, net.S};
  {
    const Tensor bucket = buckets(net, pairs);
    Tensor bias = by_distance(net, "layoutlmv3.encoder.rel_pos_bias", net.arch.num_buckets);
    net.shared.bias = t.allocate(biases, bias.dtype(), "contiguous");
  }
  const Tensor across = t.allocate(pairs, Dtype::kInt64, "sub"), down = t.allocate(pairs, Dtype::kInt64, "sub");
  const Tensor columns = buckets(net, pairs), rows = buckets(net, pairs);
  Tensor x = by_distance(net, "layoutlmv3.encoder.rel_pos_x_bias", net.arch.pictures.depth);
  Tensor y = by_distance(net, "layoutlmv3.encoder.rel_pos_y_bias", net.arch.pictures.depth);
  x = t.allocate(biases, x.dtype(), "contiguous");
  y = t.allocate(biases, y.dtype(), "contiguous");
  net.shared.cross_bias = t.allocate(biases, x.dtype(), "add");
}

// cogview_attention: the scores made small, their largest taken away, and made large again.
Tensor probabilities(const Tensor& scores) {
  const Tensor scaled = mul_scalar(scores);
  const Tensor largest = unsqueeze(amax_last(scaled), -1);
  Tensor fresh = sub(scaled, largest);
  fresh = mul_scalar(std::move(fresh));
  return softmax(fresh);
}

Tensor attend(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "attention.self", kSelf);
  const Tensor q = split_heads(net, net.linear("attention.self.query", hidden, net.Q, true), net.A, net.hd);
  const Tensor k = split_heads(net, net.linear("attention.self.key", hidden, net.Q, true), net.A, net.hd);
  const Tensor v = split_heads(net, net.linear("attention.self.value", hidden, net.Q, true), net.A, net.hd);
  if (by_interface(net)) {
    Tensor out = biased_attention(net, {q, k, v, net.shared.bias, net.shared.causal_mask});
    return view(contiguous(transpose(std::move(out), 1, 2)), Shape{net.B, net.S, net.Q});
  }
  Tensor scores = matmul(mul_scalar(q), transpose(k, 2, 3));
  {
    Tensor bias = add(net.shared.bias, net.shared.cross_bias);
    bias = mul_scalar(std::move(bias));
    scores = add_in_place(std::move(scores), bias);
  }
  if (net.shared.causal_mask.defined()) scores = add(std::move(scores), net.shared.causal_mask);
  Tensor weights = probabilities(scores);
  weights = dropout(std::move(weights), net.arch.attention_dropout);
  Tensor out = matmul(weights, v);
  out = contiguous(permute(std::move(out), {0, 2, 1, 3}));
  return view(std::move(out), Shape{net.B, net.S, net.Q});
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor x = std::move(hidden);
  Tensor attended = attend(net, x);
  attended = bert_join(net, "attention.output", "attention.output.dense", "attention.output.LayerNorm", kJoin,
                       std::move(attended), x);
  net.attention_weights.reset();  // LayoutLMv3Attention.forward has the name for them, and returns
  Tensor h = net.linear("intermediate.dense", attended, net.F, true);
  {
    Scope act(net.tape, "intermediate.intermediate_act_fn", kLayer);
    h = activate(net.arch.activation, std::move(h));
  }
  return bert_join(net, "output", "output.dense", "output.LayerNorm", kJoin, std::move(h), attended);
}

Tensor forward(Net& net) {
  Scope in(net.tape, "layoutlmv3", kModel);
  Tape& t = net.tape;
  const Dim page = page_tokens(net), all(net.S.n() + page.n());
  Net& body = net.part(net.arch, net.B, all);
  const Tensor bbox = net.more_inputs.front();
  const Tensor types = t.allocate(Shape{net.B, net.S}, Dtype::kInt64, "zeros");
  Tensor words = text_embeddings(net, types, bbox);
  const Tensor patches = page_embeddings(net);
  t.buffer("visual_bbox", page.n() * kBox * size_of(Dtype::kInt64));
  const Tensor mask = t.allocate(Shape{net.B, all}, Dtype::kFp32, "cat");
  const Tensor page_boxes = t.allocate(Shape{net.B, page, Dim(kBox)}, Dtype::kInt64, "repeat");
  const Tensor all_boxes = t.allocate(Shape{net.B, all, Dim(kBox)}, Dtype::kInt64, "cat");
  const Tensor page_places = t.allocate(Shape{net.B, page}, Dtype::kInt64, "repeat");
  const Tensor all_places = t.allocate(Shape{net.B, all}, Dtype::kInt64, "cat");
  Tensor hidden = cat({&words, &patches}, 1);
  words.reset();
  hidden = net.layer_norm("layoutlmv3.LayerNorm", std::move(hidden));
  hidden = dropout(std::move(hidden), net.arch.residual_dropout);
  body.shared.causal_mask = bidirectional_mask(body, hidden, runs_eagerly(net), all, all);
  const Tensor embeds = hidden;
  {
    const bool grad_before = t.grad_enabled();
    t.set_grad_enabled(false);
    by_interface(net) ? make_bias(body) : make_biases(body);
    t.set_grad_enabled(grad_before);
  }
  hidden = body.layers({"layoutlmv3.encoder.layer", net.arch.num_layers, layer, false}, std::move(hidden));
  body.shared = {};
  return hidden;
}

/// Names of a head of two layers.
struct HeadNames {
  const char *module, *dense, *out;
};
constexpr HeadNames kClassifier = {"classifier", "classifier.dense", "classifier.out_proj"};
constexpr HeadNames kSpan = {"qa_outputs", "qa_outputs.dense", "qa_outputs.out_proj"};

Tensor two_layers(Net& net, const HeadNames& names, Tensor x_in) {
  Scope in(net.tape, names.module, kHead);
  const double p = net.arch.classifier_dropout;
  Tensor x = dropout(std::move(x_in), p);
  x = net.classifier(names.dense, std::move(x), net.H, true);
  x = tanh(std::move(x));
  x = dropout(std::move(x), p);
  return net.classifier(names.out, std::move(x), Dim(net.arch.num_labels), true);
}

// The words' part of what the body hands out.
Tensor of_words(Net& net, Tensor hidden) {
  return narrow(std::move(hidden), 1, 0, net.S);
}

Outputs tokens(Net& net, const Program&, Tensor hidden) {
  const Tensor x = dropout(of_words(net, std::move(hidden)), net.arch.residual_dropout);
  if (net.arch.num_labels >= kManyLabels) return labelled(net, two_layers(net, kClassifier, x));
  return labelled(net, net.classifier("classifier", x, Dim(net.arch.num_labels), true));
}

Outputs sequence(Net& net, const Program&, Tensor hidden) {
  return classified(net, two_layers(net, kClassifier, select(std::move(hidden), 1)));
}

Outputs span(Net& net, const Program&, Tensor hidden) {
  return spans(net, two_layers(net, kSpan, of_words(net, std::move(hidden))));
}

void check(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const Pictures& p = architecture.pictures;
  if (kBox * p.width + kSides * p.head_dim != architecture.hidden_size) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/config/coordinate_size",
                      "Four of \"coordinate_size\" and two of \"shape_size\" must make \"hidden_size\".", ""});
  }
  if (job.method != Method::kQlora) return;
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/method",
                    "transformers 5.12 fails here: LayoutLMv3Encoder reads rows of rel_pos_bias's weight, which would "
                    "be packed. Use \"lora\".",
                    "lora"});
}

constexpr HeadForward kHeads[] = {{Head::kTokenClassification, tokens},
                                  {Head::kSequenceClassification, sequence},
                                  {Head::kQuestionAnswering, span},
                                  {Head::kNone, body_alone}};
constexpr ClassSuffix kClasses[] = {{"ForTokenClassification", Head::kTokenClassification},
                                    {"ForSequenceClassification", Head::kSequenceClassification},
                                    {"ForQuestionAnswering", Head::kQuestionAnswering},
                                    {"Model", Head::kNone}};

// LayoutLMv3PreTrainedModel names no checkpointing and, until 5.23, no attention kernels.
const Program kProgram = {.forward = forward,
                          .heads = kHeads,
                          .inputs = inputs,
                          .attention = sdpa_alone_since(kByInterface),
                          .checkpoints = false,
                          .check = check};

constexpr ClassFacts kFacts = {.flex_attention = false, .no_split = NoSplit::kNone, .pictures = PictureRule::kOwnSize};

}  // namespace

const Family kRows[] = {
    {"layoutlmv3", "LayoutLMv3", "LayoutLMv3ForTokenClassification", kClasses, read_config, &kProgram,
     "layoutlmv3.encoder.layer", kFacts},
};

extern const FamilyRows layoutlmv3_rows;
const FamilyRows layoutlmv3_rows = kRows;

}  // namespace tidemark
