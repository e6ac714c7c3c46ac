// Longformer: RoBERTa whose tokens attend to a window around them, worked out in overlapping chunks, and to a few
// tokens that attend to all.
#include "core/families/longformer.hpp"

#include <algorithm>
#include <utility>

#include "core/families/bert_heads.hpp"
#include "core/layers/losses.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/window_ops.hpp"

namespace tidemark {

extern const BertNames kLongformerNames = {
    {"longformer.embeddings", "longformer.embeddings.word_embeddings", "longformer.embeddings.token_type_embeddings",
     "longformer.embeddings.position_embeddings", "longformer.embeddings.LayerNorm"},
    "longformer.pooler.dense",
    {"lm_head", "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder"},
    true};

namespace {

constexpr const char* kEmbeddings =
    "transformers 5.24 models/longformer/modeling_longformer.py: LongformerEmbeddings.forward";
constexpr const char* kModel = "transformers 5.24 models/longformer/modeling_longformer.py: LongformerModel.forward";
constexpr const char* kAttention =
    "transformers 5.24 models/longformer/modeling_longformer.py: LongformerSelfAttention.forward";
constexpr const char* kLayer = "transformers 5.24 models/longformer/modeling_longformer.py: LongformerLayer.forward";

// Tokens of a question before its first separator, which attend to all.
constexpr Count kQuestionTokens = 16;
constexpr Count kMostWindow = Count{1} << 20;
constexpr std::size_t kMostKinds = 255;

// transformers 5.24 models/longformer/configuration_longformer.py: LongformerConfig. Positions count from the padding
// id.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_bert_config(fields, architecture);
  architecture.position_offset = fields.count({"pad_token_id"}, 1, 0) + 1;
  architecture.classifier_dropout = architecture.residual_dropout;
  read_attention_windows(fields, architecture);
  fields.accept({"onnx_export", "attention_mode", "attention_dilation", "autoregressive", "ignore_attention_mask",
                 "classifier_dropout", "sep_token_id"});
  if (architecture.head == Head::kQuestionAnswering) {
    fields.note("INVALID_VALUE", "sep_token_id",
                "The tokens before the first separator attend to all: 16 of each row are taken to be the question.");
  }
}

Count globals_of(const Net& net) {
  if (net.arch.head == Head::kSequenceClassification) return 1;
  return net.arch.head == Head::kQuestionAnswering ? kQuestionTokens : 0;
}

// -- the attention ---------------------------------------------------------------------------------------------------

// _chunk: [heads, S, d] in chunks of two windows' sides, each half of which the next one sees again.
Tensor chunks_of(Tensor x_in, Count side) {
  const Tensor x = std::move(x_in);
  const Count count = x.size(1) / side;
  Tensor h = view(x, Shape{x.dim(0), Dim(count / 2), Dim(2 * side), x.dim(2)});
  Shape s{x.dim(0), Dim(count - 1), Dim(2 * side), x.dim(2)};
  s.strides[0] = x.shape().strides[0];
  s.strides[1] = side * x.shape().strides[1];
  s.strides[2] = x.shape().strides[1];
  s.strides[3] = x.shape().strides[2];
  return as_strided(std::move(h), s, count > 2);
}

// [B, S, heads, d] as [B·heads, S, d].
Tensor by_heads(const Tensor& x) {
  const Shape s{Dim(x.size(0) * x.size(2)), x.dim(1), x.dim(3)};
  return reshape(transpose(x, 1, 2), s);
}

// _mask_invalid_locations: both ends of the rows, what lies beyond them.
Tensor mask_ends(Tensor base, const Tensor& scores, const Shape& seen, Count side) {
  Tape& t = scores.tape();
  const Dim edge(side), columns(side + 1);
  for (int end = 0; end < 2; ++end) {
    Tensor part = end == 0 ? scores : as_strided(base, seen, false);
    part = narrow(std::move(part), 1, 0, edge);
    part = narrow(std::move(part), 3, 0, columns);
    Tensor value;
    {
      const Tensor full = t.allocate(part.shape().contiguous(), part.dtype(), "full_like");
      const Tensor mask = t.allocate(part.shape().contiguous(), Dtype::kBool, "bool");
      value = where(mask, full, part);
    }
    base = copy_into(std::move(base), value.shape(), value);
  }
  return base;
}

struct Scores {
  Tensor base;  // [B·heads, S / side, side, 2·side + 1]
  Shape seen;   // [B, S, heads, 2·side + 1]
};

// _sliding_chunks_query_key_matmul, of q and k [B, S, heads, d]. A write to a part of what autograd knows is a node of
// its own, and who then sees it by a view made before sees it by as_strided.
Scores window_scores(const Tensor& q, const Tensor& k, Count side) {
  Tape& t = q.tape();
  const Dim outer(q.size(0) * q.size(2)), width(2 * side + 1), two(2 * side);
  const Dim chunks(q.size(1) / side - 1);
  Tensor padded;
  {
    Tensor product;
    {
      const Tensor query = chunks_of(by_heads(q), side);
      const Tensor key = chunks_of(by_heads(k), side);
      const Dim all(outer.n() * chunks.n());
      Tensor left = reshape(query, Shape{all, two, q.dim(3)});
      Tensor right = reshape(transpose(key, 2, 3), Shape{all, q.dim(3), two});
      product = matmul(std::move(left), std::move(right));
    }
    product = view(std::move(product), Shape{outer, chunks, two, two});
    padded = pad(product, 2, 1);
  }
  padded = view(std::move(padded), Shape{outer, chunks, two, width});
  Tensor base = zeros(t, Shape{outer, Dim(chunks.n() + 1), Dim(side), width}, q.dtype());
  {
    Tensor upper = narrow(padded, 2, 0, Dim(side));
    upper = narrow(std::move(upper), 3, 0, Dim(side + 1));
    base = copy_into(std::move(base), upper.shape(), upper);
  }
  {
    Tensor last = narrow(select(padded, 1), 1, side, Dim(side));
    last = narrow(std::move(last), 2, 0, Dim(side + 1));
    base = copy_into(std::move(base), last.shape(), last);
  }
  {
    Tensor lower = narrow(padded, 2, side - 1, Dim(side));
    lower = narrow(std::move(lower), 3, side + 1, Dim(side));
    base = copy_into(std::move(base), lower.shape(), lower);
  }
  if (side > 1) {
    Tensor first = narrow(select(padded, 1), 1, 0, Dim(side - 1));
    first = narrow(std::move(first), 2, side + 2, Dim(side - 1));
    base = copy_into(std::move(base), first.shape(), first);
  }
  Tensor scores = transpose(view(base, Shape{q.dim(0), q.dim(2), q.dim(1), width}), 1, 2);
  Scores out;
  out.seen = scores.shape();
  out.base = mask_ends(std::move(base), scores, out.seen, side);
  return out;
}

// _sliding_chunks_matmul_attn_probs_value, of probabilities [B, S, heads, 2·side + 1] and values [B, S, heads, d].
Tensor window_values(const Tensor& probabilities, const Tensor& v, Count side) {
  const Dim outer(v.size(0) * v.size(2)), count(v.size(1) / side), three(3 * side), row(3 * side + 1);
  Tensor chunked = reshape(transpose(probabilities, 1, 2), Shape{outer, count, Dim(side), Dim(2 * side + 1)});
  const Tensor padded = pad(by_heads(v), 1, 2 * side);
  Shape s{outer, count, three, v.dim(3)};
  s.strides[0] = padded.shape().strides[0];
  s.strides[1] = side * padded.shape().strides[1];
  s.strides[2] = padded.shape().strides[1];
  const Tensor values = as_strided(padded, s, true);
  {
    Tensor wide = pad(chunked, 3, side + 1);
    wide = view(std::move(wide), Shape{outer, count, Dim(side * (row.n() + 1))});
    wide = narrow(std::move(wide), 2, 0, Dim(side * row.n()));
    wide = view(std::move(wide), Shape{outer, count, Dim(side), row});
    chunked = narrow(std::move(wide), 3, 0, three);
  }
  const Dim all(outer.n() * count.n());
  Tensor left = reshape(chunked, Shape{all, Dim(side), three});
  Tensor right = reshape(values, Shape{all, three, v.dim(3)});
  Tensor context = matmul(std::move(left), std::move(right));
  context = view(std::move(context), Shape{v.dim(0), v.dim(2), v.dim(1), v.dim(3)});
  return transpose(std::move(context), 1, 2);
}

// The rows of [B, S, …] that attend to all, [B, globals, …].
Tensor global_rows(const Tensor& x, const Tensor& indices, Dim globals) {
  Tape& t = x.tape();
  Shape s = x.shape();
  s.dims[1] = globals;
  s.make_contiguous();
  Tensor rows = t.allocate(s, x.dtype(), "new_zeros");
  Tensor own = index_pairs(x, indices, Dim(x.size(0) * globals.n()));
  return put_rows(std::move(rows), indices, std::move(own));
}

// _concat_with_global_key_attn_probs: [B, S, heads, globals].
Tensor global_scores(const Tensor& q, const Tensor& k, const Tensor& indices, Dim globals) {
  const Tensor keys = global_rows(k, indices, globals);
  const Dim outer(q.size(0) * q.size(2));
  Tensor left = by_heads(q);
  Tensor right = reshape(permute(keys, {0, 2, 3, 1}), Shape{outer, q.dim(3), globals});
  Tensor scores = matmul(std::move(left), std::move(right));
  scores = view(std::move(scores), Shape{q.dim(0), q.dim(2), q.dim(1), globals});
  return transpose(std::move(scores), 1, 2);
}

// _compute_attn_output_with_global_indices
Tensor with_globals(const Tensor& probabilities, const Tensor& v, const Tensor& indices, Dim globals, Count side) {
  const Tensor of_globals = narrow(probabilities, 3, 0, globals);
  const Tensor values = global_rows(v, indices, globals);
  Tensor left = contiguous(transpose(of_globals, 1, 2));
  Tensor right = clone(transpose(values, 1, 2));
  const Tensor first = transpose(matmul(std::move(left), std::move(right)), 1, 2);
  const Tensor others = contiguous(narrow(probabilities, 3, globals.n(), Dim(2 * side + 1)));
  const Tensor second = window_values(others, v, side);
  return add(first, second);
}

// _compute_global_attn_output_from_hidden: what the tokens see that attend to all, [B·globals, H].
Tensor globals_see(Net& net, const WindowedNames& names, const Tensor& hidden, const Tensor& indices, Dim globals) {
  const Dim outer(net.B.n() * net.A.n());
  Tensor own;
  {
    Tensor picked = index_pairs(hidden, indices, Dim(net.B.n() * globals.n()));
    own = net.tape.allocate(Shape{globals, net.B, net.H}, hidden.dtype(), "new_zeros");
    own = put_rows(std::move(own), indices, std::move(picked));
  }
  const auto heads = [&](Tensor x, Dim rows) {
    return transpose(view(std::move(x), Shape{rows, outer, net.hd}), 0, 1);
  };
  Tensor q = net.linear(names.q_global, own, net.H, true);
  Tensor k = net.linear(names.k_global, hidden, net.H, true);
  Tensor v = net.linear(names.v_global, hidden, net.H, true);
  q = scale_in_place(std::move(q));
  q = heads(std::move(q), globals);
  k = heads(std::move(k), hidden.dim(0));
  v = heads(std::move(v), hidden.dim(0));
  Tensor scores = matmul(q, transpose(k, 1, 2));
  scores = view(std::move(scores), Shape{net.B, net.A, globals, hidden.dim(0)});
  scores = masked_fill(std::move(scores), view(net.shared.sliding_mask, Shape{net.B, Dim(1), Dim(1), hidden.dim(0)}));
  scores = view(std::move(scores), Shape{outer, globals, hidden.dim(0)});
  Tensor probabilities = softmax(scores, Dtype::kFp32);
  probabilities = to(std::move(probabilities), scores.dtype());
  probabilities = dropout(std::move(probabilities), net.arch.attention_dropout);
  Tensor out = matmul(probabilities, v);
  out = view(std::move(out), Shape{net.B, net.A, globals, net.hd});
  out = contiguous(transpose(std::move(out), 1, 2));
  return view(std::move(out), Shape{Dim(net.B.n() * globals.n()), net.H});
}

// A linear layer that this forward does not call: it is there, with its adapter.
void leave_unread(Net& net, const char* name) {
  const Declared unread(net, true);
  const Tensor row = net.tape.allocate(Shape{Dim(1), net.H}, net.job.recipe.weights, "row");
  net.linear(name, row, net.H, true);
}

}  // namespace

Tensor windowed_attention(Net& net, const WindowedNames& names, const Tensor& hidden_in, Count globals_count) {
  Scope in(net.tape, names.module, kAttention);
  net.attention_kernel = "eager";
  Tape& t = net.tape;
  t.above(net.B.n(), 1);  // one row alone lies as its transpose does
  const Tensor hidden = transpose(hidden_in, 0, 1);
  const Dim length = hidden.dim(0), globals(globals_count);
  const Count side = net.arch.layer_windows[static_cast<std::size_t>(net.layer_index)] / 2;
  const auto heads = [&](Tensor x) { return transpose(view(std::move(x), Shape{length, net.B, net.A, net.hd}), 0, 1); };
  Tensor q = net.linear(names.q, hidden, net.H, true);
  Tensor k = net.linear(names.k, hidden, net.H, true);
  Tensor v = net.linear(names.v, hidden, net.H, true);
  if (globals_count == 0) {
    for (const char* const name : {names.q_global, names.k_global, names.v_global}) leave_unread(net, name);
  }
  q = heads(scale_in_place(std::move(q)));
  k = heads(std::move(k));
  Scores scores = window_scores(q, k, side);
  const Shape rows{net.B, length, Dim(1), Dim(1)};
  const Tensor removed = t.allocate(rows, Dtype::kBool, "ne");
  const Tensor masked = t.allocate(rows, q.dtype(), "masked_fill");
  Tensor diagonal;
  {
    const Tensor ones = t.allocate(rows, q.dtype(), "new_ones");
    diagonal = window_scores(ones, masked, side).base;
  }
  scores.base = add_to_view(std::move(scores.base), diagonal, false);
  Tensor local = as_strided(scores.base, scores.seen, false);
  scores.base.reset();
  Tensor indices;
  if (globals_count > 0) {
    indices = t.allocate(Shape{Dim(2), Dim(net.B.n() * globals_count)}, Dtype::kInt64, "nonzero");
    const Tensor all = global_scores(q, k, indices, globals);
    local = cat({&all, &local}, 3);
  }
  Tensor probabilities = softmax(local, Dtype::kFp32);
  probabilities = masked_fill(std::move(probabilities), net.shared.sliding_mask);
  probabilities = to(std::move(probabilities), local.dtype());
  local.reset();
  probabilities = dropout(std::move(probabilities), net.arch.attention_dropout);
  v = heads(std::move(v));
  Tensor out = globals_count > 0 ? with_globals(probabilities, v, indices, globals, side)
                                 : window_values(probabilities, v, side);
  out = reshape(transpose(std::move(out), 0, 1), Shape{length, net.B, net.H});
  if (globals_count > 0) {
    Tensor seen = globals_see(net, names, hidden, indices, globals);
    out = put_rows(std::move(out), indices, std::move(seen));
  }
  return transpose(std::move(out), 0, 1);
}

void read_attention_windows(ConfigFields& fields, Architecture& architecture) {
  constexpr Count kDefaultWindow = 512;
  const auto count = static_cast<std::size_t>(std::max<Count>(0, architecture.num_layers));
  architecture.layer_windows.assign(count, kDefaultWindow);
  const Value* const stated = fields.find({"attention_window"});
  if (stated == nullptr || stated->is_null()) return;
  const bool listed = stated->is_array();
  if (listed && list_of_layers(fields, "attention_window", architecture.num_layers) == nullptr) return;
  std::vector<Count> kinds;
  for (std::size_t i = 0; i < count; ++i) {
    const Value& value = listed ? stated->items[i] : *stated;
    const Count window = value.is_integer() ? value.integer : 0;
    if (window < 2 || window % 2 != 0 || window > kMostWindow) {
      fields.error("INVALID_VALUE", "attention_window", "A layer's window has to be an even number of tokens.");
      return;
    }
    architecture.layer_windows[i] = window;
    auto kind = std::find(kinds.begin(), kinds.end(), window);
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), window);
    if (listed) architecture.layer_kinds.push_back(static_cast<std::uint8_t>(kind - kinds.begin()));
  }
  const Count most = kinds.empty() ? 0 : *std::max_element(kinds.begin(), kinds.end());
  for (const Count window : kinds) {
    if (kinds.size() <= kMostKinds && most % window == 0) continue;
    fields.error("INVALID_VALUE", "attention_window",
                 "Sequences are filled up to the widest window, of which each layer's has to be a part.");
    return;
  }
}

Dim whole_windows(Net& net) {
  const std::vector<Count>& windows = net.arch.layer_windows;
  const Count most = *std::max_element(windows.begin(), windows.end());
  if (net.tape.is_multiple(net.S.n(), most)) return net.S;
  return Dim(net.tape.round_up(net.S.n(), most));
}

void share_window_mask(Net& net, Tensor mask, Dim length) {
  net.shared.causal_mask = std::move(mask);
  net.shared.sliding_mask = net.tape.allocate(Shape{net.B, length, Dim(1), Dim(1)}, Dtype::kBool, "is_index_masked");
  net.shared.condition = net.tape.allocate(Shape{net.B, length}, Dtype::kBool, "is_index_global_attn");
}

namespace {

constexpr WindowedNames kNames = {"attention.self",
                                  "attention.self.query",
                                  "attention.self.key",
                                  "attention.self.value",
                                  "attention.self.query_global",
                                  "attention.self.key_global",
                                  "attention.self.value_global"};

Tensor embeddings(Net& net, const Tensor& types) {
  const EmbeddingNames& names = kLongformerNames.embeddings;
  Scope in(net.tape, names.module, kEmbeddings);
  const Tensor ids = position_ids_from_padding(net);
  const Tensor words = net.token_embedding(names.words, net.H);
  const Tensor positions = net.embedding(names.positions, ids, Dim(net.arch.max_positions), net.H);
  const Tensor of_types = net.embedding(names.types, types, Dim(net.arch.type_vocab_size), net.H);
  Tensor h = add(words, positions);
  h = add(std::move(h), of_types);
  h = net.layer_norm(names.norm, std::move(h));
  return dropout(std::move(h), net.arch.embedding_dropout);
}

// LongformerModel.forward. Its mask [B, 1, S, S] lives as long as the row of it that the layers are told.
Tensor forward(Net& net) {
  Scope in(net.tape, "", kModel);
  Tape& t = net.tape;
  const Dim length = whole_windows(net);
  const Shape rows{net.B, length};
  const bool is_padded = length.n() != net.S.n();
  const Count globals = globals_of(net);
  Tensor global;
  if (globals > 0) {
    global = t.allocate(Shape{net.B, net.S}, net.arch.head == Head::kQuestionAnswering ? Dtype::kBool : Dtype::kInt64,
                        "global_attention_mask");
  }
  const Tensor given = net.input_ids;
  if (is_padded) net.input_ids = t.allocate(rows, Dtype::kInt64, "constant_pad_nd");
  const Tensor mask = t.allocate(rows, net.attention_mask.defined() ? Dtype::kInt64 : Dtype::kFp32, "attention_mask");
  const Tensor types = t.allocate(rows, Dtype::kInt64, "zeros");
  Tensor h = embeddings(net, types);
  Tensor scores;
  {
    const Shape square{net.B, Dim(1), length, length};
    const Tensor seen = t.allocate(square, Dtype::kBool, "bidirectional mask (bool)");
    scores = t.allocate(square, h.dtype(), "eager mask");
  }
  share_window_mask(net, std::move(scores), length);
  net.model_locals = {h, global, net.input_ids, mask, types};
  Stack stack{"longformer.encoder.layer", net.arch.num_layers, [](Net& n, Tensor hidden) {
                Scope layer(n.tape, "", kLayer);
                const Tensor x = std::move(hidden);
                Tensor out;
                {
                  const Tensor attended = windowed_attention(n, kNames, x, globals_of(n));
                  out = bert_join(n, "attention.output", "attention.output.dense", "attention.output.LayerNorm", kLayer,
                                  attended, x);
                }
                return bert_feed_forward(n, out);
              }};
  stack.then = Phase::kLoss;
  h = net.layers(stack, std::move(h));
  net.shared = {};
  net.input_ids = given;
  return narrow(std::move(h), 1, 0, net.S);
}

constexpr ClassSuffix kClasses[] = {{"ForMaskedLM", Head::kMaskedLm},
                                    {"ForSequenceClassification", Head::kSequenceClassification},
                                    {"ForTokenClassification", Head::kTokenClassification},
                                    {"ForQuestionAnswering", Head::kQuestionAnswering},
                                    {"Model", Head::kNone}};
constexpr HeadForward kHeads[] = {{Head::kMaskedLm, masked_lm},
                                  {Head::kSequenceClassification, roberta_sequence},
                                  {Head::kTokenClassification, encoder_tokens},
                                  {Head::kQuestionAnswering, encoder_span},
                                  {Head::kNone, bert_body}};

}  // namespace

const Program kLongformerProgram = {
    .forward = forward, .lm_head = bert_lm_head, .heads = kHeads, .attention = kEagerAlone};

const Family kRows[] = {
    {"longformer",
     "Longformer",
     "LongformerForMaskedLM",
     kClasses,
     read_config,
     &kLongformerProgram,
     "longformer.encoder.layer",
     {.flex_attention = false, .no_split = NoSplit::kOtherParts}},
};

extern const FamilyRows longformer_rows;
const FamilyRows longformer_rows = kRows;

}  // namespace tidemark
