// Models that nobody here has written down: what `tidemark trace` recorded of one forward of the user's own code
// (core/bindings/python/tidemark/trace.py says what a trace holds), replayed with what autograd keeps of each
// operation.
#include <algorithm>
#include <cmath>
#include <memory>

#include "core/families/family.hpp"
#include "core/layers/model_call.hpp"
#include "core/units/excerpt.hpp"

namespace tidemark {

struct TracedOp;

/// A size as a trace states it: constant + per_batch·B + per_length·S + per_token·B·S, in elements.
struct TracedSize {
  Count constant = 0, per_batch = 0, per_length = 0, per_token = 0;
};

/// The tensors and modules of one run of a list of operations.
struct TracedRun;

/// What an operation of a trace means. One of the three functions is there.
struct TracedRule {
  std::string_view name;                        ///< as traces write it
  std::string_view form;                        ///< what stands behind its name: kRules
  void (*run)(TracedRun&, const TracedOp&);     ///< of anything
  Tensor (*one)(Tensor x) = nullptr;            ///< of one tensor
  Tensor (*two)(Tensor a, Tensor b) = nullptr;  ///< of two that broadcast
};

/// An operation as a trace writes it; which of these it has says its rule's form.
struct TracedOp {
  const TracedRule* rule = nullptr;
  std::vector<std::int32_t> out, in;  ///< numbers of tensors; −1: none is read
  std::vector<TracedSize> sizes;
  std::vector<int> order;  ///< of dimensions
  std::string name, leaf;  ///< of a module and its parameter, of a module and its source, of a function
  Count numbers[3] = {};   ///< in the order of the form
  double probability = 0.0;
  std::uint8_t dtypes[4] = {};  ///< by weights (fp32, 16 bits) and autocast (off, on)
  bool has_dtype = false;
};

/// A layer that a stack runs once or often. Tensor 0 is what it is handed, then come those that it reads from outside.
struct TracedBlock {
  std::size_t captures = 0;  ///< how many those are
  std::string source;        ///< of its class
  std::vector<TracedOp> ops;
  std::int32_t out = 0;  ///< what it hands on
  Count tensors = 0;     ///< one past the largest number
};

/// One layer of a stack.
struct TracedCall {
  std::size_t block = 0;
  std::vector<std::size_t> captured;  ///< places in TracedStack::captured
};

/// A list of layers that run one after the other.
struct TracedStack {
  std::string path;                    ///< of the list
  std::vector<std::int32_t> captured;  ///< tensors outside that its layers read
  std::vector<TracedCall> calls;
  std::vector<std::uint8_t> kinds;  ///< which layers are alike
  Architecture layers;              ///< what a part of the model is asked for
};

/// What was recorded of a model's forward.
struct ModelTrace {
  std::vector<TracedOp> inputs, ops;
  std::vector<TracedBlock> blocks;
  std::vector<TracedStack> stacks;
  std::vector<std::int32_t> outputs;  ///< tensors that the caller holds beside the loss
  std::int32_t loss = 0;
  std::size_t body = 0;  ///< operations up to the last stack
  Count tensors = 0;     ///< one past the largest number
};

/// A micro-step of it that is under way.
struct TraceState {
  const ModelTrace* trace = nullptr;
  std::vector<const Net*> nets;      ///< one per stack
  std::vector<Tensor> slots;         ///< the tensors outside the layers
  std::vector<std::int16_t> scopes;  ///< modules to go back to
  std::size_t next = 0;              ///< operation
  const char* broken = nullptr;      ///< what cannot be at this size
};

namespace {

constexpr Count kFormat = 1;
// Far more than the forward of any model has; they keep hostile files cheap.
constexpr std::size_t kMostOps = 200'000;
constexpr Count kMostTensors = 1'000'000;
// Of one dimension, and of the elements of one tensor: what is said to be larger is a mistake.
constexpr Count kLargestSize = Count{1} << 40;
constexpr Count kMostPieces = 4096;

using Size = TracedSize;
using Op = TracedOp;
using Run = TracedRun;

/// The dtype of 16 bits that the job trains in.
constexpr std::uint8_t kTracedLow = 255;

}  // namespace

// -- running
// -----------------------------------------------------------------------------------------------------------

struct TracedRun {
  Net& net;
  TraceState& state;
  std::vector<Tensor> slots = {};
  std::vector<std::int16_t> scopes = {};

  Tensor in(const Op& op, std::size_t i) const {
    return op.in[i] < 0 ? Tensor() : slots[static_cast<std::size_t>(op.in[i])];
  }
  void out(const Op& op, Tensor tensor, std::size_t i = 0) {
    slots[static_cast<std::size_t>(op.out[i])] = std::move(tensor);
  }
  Dim dim(const Size& s) {
    const Count B = net.B.n(), S = net.S.n();
    if (s.constant == 0 && s.per_batch + s.per_length + s.per_token == 1) {
      return s.per_batch == 1 ? net.B : s.per_length == 1 ? net.S : net.T;
    }
    // What a trace may state times rows and tokens need not fit into a whole number.
    const auto fits = [](Count factor, Count by) {
      return std::abs(static_cast<double>(factor) * static_cast<double>(by)) <= static_cast<double>(kLargestSize);
    };
    const bool sound = fits(s.per_batch, B) && fits(s.per_length, S) && fits(s.per_token, B * S);
    const Count n = sound ? s.constant + s.per_batch * B + s.per_length * S + s.per_token * B * S : -1;
    const bool holds = expect(n >= 0 && n <= kLargestSize, "a size that is negative or too large");
    return Dim(holds ? n : 1);
  }
  Shape shape(const Op& op) {
    Shape s;
    for (const Size& size : op.sizes) s.dims[s.rank++] = dim(size);
    double numel = 1.0;
    for (int i = 0; i < s.rank; ++i) numel *= static_cast<double>(s.size(i));
    if (!expect(numel <= static_cast<double>(kLargestSize), "a tensor that is too large"))
      std::fill_n(s.dims, s.rank, Dim(1));
    s.make_contiguous();
    return s;
  }
  Dtype dtype(const Op& op) const {
    const Recipe& recipe = net.job.recipe;
    const std::size_t mode = (is_half(recipe.weights) ? 1 : 0) + (recipe.autocast ? 2 : 0);
    if (op.dtypes[mode] != kTracedLow) return static_cast<Dtype>(op.dtypes[mode]);
    return recipe.autocast ? *recipe.autocast : recipe.weights;
  }
  /// What cannot be, is; the run ends.
  bool expect(bool holds, const char* what) {
    if (!holds && state.broken == nullptr) state.broken = what;
    return holds;
  }
};

namespace {

bool has_axis(Run& r, const Op& op) {
  return r.expect(op.numbers[0] < r.slots[static_cast<std::size_t>(op.in[0])].shape().rank,
                  "a dimension that a tensor lacks");
}

bool has_room(Run& r, const Tensor& x) {
  return r.expect(x.shape().rank < kMaxRank, "a tensor of more than five dimensions");
}

bool same_elements(Run& r, const Tensor& x, const Shape& shape) {
  return r.expect(x.numel() == shape.numel(), "a view with another number of elements");
}

bool broadcasts(const Shape& a, const Shape& b) {
  for (int i = 1; i <= std::min(a.rank, b.rank); ++i) {
    if (a.size(-i) != b.size(-i) && a.size(-i) != 1 && b.size(-i) != 1) return false;
  }
  return true;
}

bool multiplies(Run& r, const Tensor& a, const Tensor& b) {
  return r.expect(a.shape().rank >= 2 && b.shape().rank >= 2 && a.size(-1) == b.size(-2), "a product of other sizes");
}

void run_make(Run& r, const Op& op) {
  r.out(op, r.net.tape.allocate(r.shape(op), r.dtype(op), op.name.c_str()));
}

void run_view(Run& r, const Op& op) {
  const Shape shape = r.shape(op);
  Tensor x = r.in(op, 0);
  if (same_elements(r, x, shape)) r.out(op, view(std::move(x), shape));
}

// Without a gradient only what is shared matters.
void run_share(Run& r, const Op& op) {
  Tensor x = r.in(op, 0);
  const Shape shape = r.shape(op);
  Tensor shared = detach(std::move(x));
  shared.change().shape = shape;
  r.out(op, std::move(shared));
}

void run_reshape(Run& r, const Op& op) {
  const Shape shape = r.shape(op);
  Tensor x = r.in(op, 0);
  if (same_elements(r, x, shape)) r.out(op, reshape(std::move(x), shape));
}

void run_expand(Run& r, const Op& op) {
  const Shape shape = r.shape(op);
  Tensor x = r.in(op, 0);
  if (!r.expect(shape.rank >= x.shape().rank && broadcasts(x.shape(), shape), "an expansion of other sizes")) return;
  r.out(op, expand(std::move(x), shape));
}

void run_transpose(Run& r, const Op& op) {
  Tensor x = r.in(op, 0);
  const int rank = x.shape().rank;
  const auto a = static_cast<int>(op.numbers[0]), b = static_cast<int>(op.numbers[1]);
  if (r.expect(a < rank && b < rank, "a dimension that a tensor lacks")) r.out(op, transpose(std::move(x), a, b));
}

void run_permute(Run& r, const Op& op) {
  Tensor x = r.in(op, 0);
  const std::vector<int>& o = op.order;
  int seen = 0;
  for (const int i : o) seen |= 1 << i;
  const auto rank = static_cast<int>(o.size());
  if (!r.expect(rank == x.shape().rank && seen == (1 << rank) - 1, "an order of other dimensions")) return;
  switch (rank) {
    case 2:
      return r.out(op, permute(std::move(x), {o[0], o[1]}));
    case 3:
      return r.out(op, permute(std::move(x), {o[0], o[1], o[2]}));
    case 4:
      return r.out(op, permute(std::move(x), {o[0], o[1], o[2], o[3]}));
    case 5:
      return r.out(op, permute(std::move(x), {o[0], o[1], o[2], o[3], o[4]}));
    default:
      return r.out(op, std::move(x));
  }
}

void run_unsqueeze(Run& r, const Op& op) {
  Tensor x = r.in(op, 0);
  const auto at = static_cast<int>(op.numbers[0]);
  if (has_room(r, x) && r.expect(at <= x.shape().rank, "a dimension that a tensor lacks"))
    r.out(op, unsqueeze(std::move(x), at));
}

void run_pieces(Run& r, const Op& op) {
  Tensor x = r.in(op, 0);
  if (!has_axis(r, op)) return;
  const auto dim = static_cast<int>(op.numbers[0]);
  Pieces pieces;
  if (op.sizes.empty()) {
    if (!r.expect(x.size(dim) == static_cast<Count>(op.out.size()), "another number of pieces")) return;
    pieces = unbind(std::move(x), dim);
  } else {
    std::vector<Dim> sizes;
    Count whole = 0;
    for (const Size& size : op.sizes) whole += sizes.emplace_back(r.dim(size)).n();
    if (!r.expect(whole == x.size(dim) && sizes.size() == op.out.size(), "pieces that are no whole")) return;
    pieces = split(std::move(x), dim, sizes);
  }
  for (std::size_t i = 0; i < op.out.size(); ++i) r.out(op, pieces.part[i], i);
}

void run_narrow(Run& r, const Op& op) {
  Tensor x = r.in(op, 0);
  if (!has_axis(r, op)) return;
  const auto dim = static_cast<int>(op.numbers[0]);
  const Count start = r.dim(op.sizes[0]).n();
  const Dim length = r.dim(op.sizes[1]);
  if (!r.expect(start + length.n() <= x.size(dim), "a slice beyond its tensor")) return;
  r.out(op, narrow(std::move(x), dim, start, length));
}

void run_take(Run& r, const Op& op) {
  const Dim length = r.dim(op.sizes[0]);
  if (has_axis(r, op)) r.out(op, take(r.in(op, 0), static_cast<int>(op.numbers[0]), length));
}

void run_select(Run& r, const Op& op) {
  if (has_axis(r, op)) r.out(op, select(r.in(op, 0), static_cast<int>(op.numbers[0])));
}

void run_every_other(Run& r, const Op& op) {
  r.out(op, every_other(r.in(op, 0), op.numbers[0]));
}

void run_parameter(Run& r, const Op& op) {
  r.out(op, r.net.parameter(op.name.c_str(), op.leaf.c_str(), r.shape(op)));
}

void run_buffer(Run& r, const Op& op) {
  const Shape shape = r.shape(op);
  const Dtype dtype = r.dtype(op);
  r.net.tape.buffer(op.name.c_str(), shape.numel() * size_of(dtype));
  r.out(op, r.net.tape.part_of_buffer(shape, dtype));
}

// numbers: columns of the output, whether there is a bias, columns of the input
void run_linear(Run& r, const Op& op) {
  Tensor x = r.in(op, 0);
  if (!r.expect(x.shape().rank > 0 && x.size(-1) == op.numbers[2], "a linear layer of another width")) return;
  r.out(op, r.net.linear(op.name.c_str(), std::move(x), Dim(op.numbers[0]), op.numbers[1] != 0));
}

void run_head(Run& r, const Op& op) {
  Tensor x = r.in(op, 0);
  if (!r.expect(x.shape().rank > 0 && x.size(-1) == op.numbers[2], "a linear layer of another width")) return;
  r.out(op, r.net.lm_head(op.name.c_str(), std::move(x), Dim(op.numbers[0], Symbol::kVocab), op.numbers[1] != 0));
}

void run_conv1d(Run& r, const Op& op) {
  Tensor x = r.in(op, 0);
  if (r.expect(x.shape().rank > 0, "a linear layer of a number")) {
    r.out(op, r.net.conv1d(op.name.c_str(), std::move(x), Dim(op.numbers[0])));
  }
}

void run_embedding(Run& r, const Op& op) {
  Tensor ids = r.in(op, 0);
  if (has_room(r, ids)) {
    r.out(op,
          r.net.embedding(op.name.c_str(), std::move(ids), Dim(op.numbers[0]), Dim(op.numbers[1], Symbol::kHidden)));
  }
}

void run_tokens(Run& r, const Op& op) {
  r.net.input_ids = r.in(op, 0);
  if (has_room(r, r.net.input_ids))
    r.out(op, r.net.token_embedding(op.name.c_str(), Dim(op.numbers[1], Symbol::kHidden)));
}

void run_lookup(Run& r, const Op& op) {
  Tensor ids = r.in(op, 0), table = r.in(op, 1);
  if (has_room(r, ids) && r.expect(table.shape().rank == 2, "a table that is no matrix")) {
    r.out(op, embedding(std::move(ids), std::move(table)));
  }
}

void run_product(Run& r, const Op& op) {
  Tensor x = r.in(op, 0), weight = r.in(op, 1), bias = r.in(op, 2);
  if (!r.expect(weight.shape().rank == 2 && x.shape().rank > 0 && x.size(-1) == weight.size(1),
                "a product of other sizes"))
    return;
  r.out(op, linear(std::move(x), std::move(weight), std::move(bias)));
}

void run_layer_norm(Run& r, const Op& op) {
  Tensor x = r.in(op, 0), weight = r.in(op, 1), bias = r.in(op, 2);
  if (r.expect(x.shape().rank > 0, "a norm of a number"))
    r.out(op, layer_norm(std::move(x), std::move(weight), std::move(bias)));
}

void run_softmax(Run& r, const Op& op) {
  const bool logarithm = op.rule->name[0] == 'l';
  std::optional<Dtype> dtype;
  if (op.has_dtype) dtype = r.dtype(op);
  Tensor x = r.in(op, 0);
  r.out(op, logarithm ? log_softmax(std::move(x), dtype) : softmax(std::move(x), dtype));
}

void run_dropout(Run& r, const Op& op) {
  r.out(op, dropout(r.in(op, 0), r.net.evaluates ? 0.0 : op.probability));
}

// numbers: is_causal, enable_gqa
void run_attention(Run& r, const Op& op) {
  Tensor q = r.in(op, 0), k = r.in(op, 1), v = r.in(op, 2), mask = r.in(op, 3);
  const bool fits = q.shape().rank == 4 && k.shape().rank == 4 && v.shape().rank == 4 && q.size(-1) == k.size(-1) &&
                    k.size(2) == v.size(2) && k.size(1) > 0 && q.size(1) % k.size(1) == 0;
  if (!r.expect(fits, "attention of other sizes than [batch, heads, length, columns]")) return;
  const double dropout = r.net.evaluates ? 0.0 : op.probability;
  r.out(op, scaled_dot_product_attention(r.net, std::move(q), std::move(k), std::move(v), std::move(mask), dropout,
                                         op.numbers[0] != 0, op.numbers[1] != 0));
}

void run_cross_entropy(Run& r, const Op& op) {
  Tensor logits = r.in(op, 0), target = r.in(op, 1);
  if (r.expect(logits.shape().rank == 2, "a loss of other than [rows, classes]")) {
    r.out(op, cross_entropy(std::move(logits), std::move(target)));
  }
}

void run_cat(Run& r, const Op& op) {
  std::vector<Tensor> parts;
  const int rank = r.in(op, 0).shape().rank;
  for (std::size_t i = 0; i < op.in.size(); ++i) {
    if (!r.expect(parts.emplace_back(r.in(op, i)).shape().rank == rank, "parts of other dimensions")) return;
  }
  if (has_axis(r, op)) r.out(op, cat(parts, static_cast<int>(op.numbers[0])));
}

void run_stack_last(Run& r, const Op& op) {
  Tensor a = r.in(op, 0), b = r.in(op, 1);
  if (has_room(r, a) && r.expect(a.shape().same_sizes(b.shape()), "parts of other sizes"))
    r.out(op, stack_last(std::move(a), std::move(b)));
}

void run_matmul(Run& r, const Op& op) {
  Tensor a = r.in(op, 0), b = r.in(op, 1);
  if (multiplies(r, a, b)) r.out(op, matmul(std::move(a), std::move(b)));
}

void run_baddbmm(Run& r, const Op& op) {
  Tensor input = r.in(op, 0), a = r.in(op, 1), b = r.in(op, 2);
  if (multiplies(r, a, b)) r.out(op, baddbmm(std::move(input), std::move(a), std::move(b)));
}

void run_to(Run& r, const Op& op) {
  // The dtype of another tensor, where the code casts to that.
  r.out(op, to(r.in(op, 0), op.in[1] < 0 ? r.dtype(op) : r.in(op, 1).dtype()));
}

void run_where(Run& r, const Op& op) {
  Tensor mask = r.in(op, 0), a = r.in(op, 1), b = r.in(op, 2);
  r.out(op, where(std::move(mask), std::move(a), std::move(b)));
}

void run_pad(Run& r, const Op& op) {
  const Count extra = r.dim(op.sizes[0]).n();
  Tensor x = r.in(op, 0);
  if (r.expect(x.shape().rank > 0, "padding of a number")) r.out(op, pad_last(std::move(x), extra));
}

void run_patches(Run& r, const Op& op) {
  Tensor x = r.in(op, 0), weight = r.in(op, 1), bias = r.in(op, 2);
  const int rank = x.shape().rank;
  if (!r.expect(rank >= 4 && rank == weight.shape().rank && x.size(1) == weight.size(1),
                "a convolution of other sizes"))
    return;
  r.out(op, patch_convolution(std::move(x), std::move(weight), std::move(bias)));
}

void run_gather_rows(Run& r, const Op& op) {
  Tensor x = r.in(op, 0), rows = r.in(op, 1);
  if (r.expect(x.shape().rank > 0 && rows.shape().rank == 1, "rows by other than a list")) {
    r.out(op, gather_rows(std::move(x), std::move(rows)));
  }
}

void run_pick(Run& r, const Op& op) {
  Tensor x = r.in(op, 0), rows = r.in(op, 1), places = r.in(op, 2);
  if (r.expect(x.shape().rank >= 2, "places in other than rows"))
    r.out(op, pick(std::move(x), std::move(rows), std::move(places)));
}

void run_mean_last(Run& r, const Op& op) {
  Tensor x = r.in(op, 0);
  if (r.expect(x.shape().rank > 0, "the mean of a number")) r.out(op, mean_last(std::move(x)));
}

void run_sum_rows(Run& r, const Op& op) {
  Tensor x = r.in(op, 0);
  if (r.expect(x.shape().rank == 3, "a sum over rows of other than [B, S, H]")) r.out(op, sum_rows(std::move(x)));
}

void run_enter(Run& r, const Op& op) {
  r.scopes.push_back(r.net.tape.enter(op.name.c_str(), op.leaf.c_str()));
}

void run_leave(Run& r, const Op&) {
  if (r.scopes.empty()) return;
  r.net.tape.leave(r.scopes.back());
  r.scopes.pop_back();
}

// torch.autocast(enabled=False) around a part of the forward, and its end.
void run_autocast(Run& r, const Op& op) {
  if (r.net.job.recipe.autocast) r.net.tape.set_autocast(op.numbers[0] != 0 ? r.net.job.recipe.autocast : std::nullopt);
}

void run_drop(Run& r, const Op& op) {
  r.slots[static_cast<std::size_t>(op.in[0])].reset();
}

void run_stack(Run& r, const Op& op);

// What stands in an operation behind its name: o, i the number of a tensor made or read, O, I a list of them, ? one
// read or −1, z sizes, d a dimension, D a list of them, n a number, s text, t a dtype, T one or null, p a probability,
// R the rows of a stack.
constexpr TracedRule kRules[] = {
    {"make", "ozts", run_make},
    {"share", "oiz", run_share},
    {"alias", "oi", nullptr, [](Tensor x) { return x; }},
    {"drop", "i", run_drop},
    {"enter", "ss", run_enter},
    {"leave", "", run_leave},
    {"autocast", "n", run_autocast},
    {"parameter", "ossz", run_parameter},
    {"buffer", "osszt", run_buffer},
    {"linear", "oisnnn", run_linear},
    {"head", "oisnnn", run_head},
    {"conv1d", "oisn", run_conv1d},
    {"embedding", "oisnn", run_embedding},
    {"tokens", "oisnn", run_tokens},
    {"lookup", "oii", run_lookup},
    {"product", "oii?", run_product},
    {"layer_norm", "oi??", run_layer_norm},
    {"softmax", "oiT", run_softmax},
    {"log_softmax", "oiT", run_softmax},
    {"dropout", "oip", run_dropout},
    {"attention", "oiii?pnn", run_attention},
    {"cross_entropy", "oii", run_cross_entropy},
    {"cat", "oId", run_cat},
    {"stack_last", "oii", run_stack_last},
    {"matmul", "oii", run_matmul},
    {"baddbmm", "oiii", run_baddbmm},
    {"view", "oiz", run_view},
    {"reshape", "oiz", run_reshape},
    {"expand", "oiz", run_expand},
    {"transpose", "oidd", run_transpose},
    {"permute", "oiD", run_permute},
    {"unsqueeze", "oid", run_unsqueeze},
    {"split", "Oidz", run_pieces},
    {"unbind", "Oid", run_pieces},
    {"narrow", "oidzz", run_narrow},
    {"take", "oidz", run_take},
    {"select", "oid", run_select},
    {"every_other", "oin", run_every_other},
    {"to", "oit?", run_to},
    {"detach", "oi", nullptr, detach},
    {"contiguous", "oi", nullptr, contiguous},
    {"clone", "oi", nullptr, clone},
    {"add_scalar", "oi", nullptr, add_scalar},
    {"mul_scalar", "oi", nullptr, mul_scalar},
    {"scale_in_place", "oi", nullptr, scale_in_place},
    {"neg", "oi", nullptr, neg},
    {"power", "oi", nullptr, power},
    {"rsqrt", "oi", nullptr, rsqrt},
    {"silu", "oi", nullptr, silu},
    {"gelu", "oi", nullptr, gelu},
    {"relu", "oi", nullptr, relu},
    {"tanh", "oi", nullptr, tanh},
    {"sigmoid", "oi", nullptr, sigmoid},
    {"clamp", "oi", nullptr, clamp},
    {"mean_last", "oi", run_mean_last},
    {"mean_all", "oi", nullptr, mean_all},
    {"sum_rows", "oi", run_sum_rows},
    {"add", "oii", nullptr, nullptr, add},
    {"sub", "oii", nullptr, nullptr, sub},
    {"mul", "oii", nullptr, nullptr, mul},
    {"div", "oii", nullptr, nullptr, div},
    {"add_in_place", "oii", nullptr, nullptr, add_in_place},
    {"maximum", "oii", nullptr, nullptr, maximum},
    {"masked_fill", "oii", nullptr, nullptr, masked_fill},
    {"mse_loss", "oii", nullptr, nullptr, mse_loss},
    {"where", "oiii", run_where},
    {"pad_last", "oiz", run_pad},
    {"patches", "oii?", run_patches},
    {"gather_rows", "oiiz", run_gather_rows},
    {"pick", "oiii", run_pick},
    {"stack", "oisR", run_stack},
};

void execute(Run& r, const Op* begin, const Op* end) {
  for (const Op* op = begin; op != end && r.state.broken == nullptr; ++op) {
    for (const std::int32_t i : op->in) {
      if (i >= 0 && op->rule->run != run_drop)
        r.expect(r.slots[static_cast<std::size_t>(i)].defined(), "a tensor that is not there");
    }
    if (r.state.broken != nullptr) return;
    if (op->rule->run != nullptr) {
      op->rule->run(r, *op);
    } else if (op->rule->one != nullptr) {
      r.out(*op, op->rule->one(r.in(*op, 0)));
    } else {
      Tensor a = r.in(*op, 0), b = r.in(*op, 1);
      if (r.expect(broadcasts(a.shape(), b.shape()), "operands that do not broadcast")) {
        r.out(*op, op->rule->two(std::move(a), std::move(b)));
      }
    }
  }
}

// One layer of a stack: what it reads from outside lies in net.shared, where checkpoints hold it.
Tensor run_layer(Net& net, Tensor hidden) {
  TraceState& state = *net.traced;
  const ModelTrace& trace = *state.trace;
  const auto part = std::find(state.nets.begin(), state.nets.end(), &net) - state.nets.begin();
  const TracedStack& stack = trace.stacks[static_cast<std::size_t>(part)];
  const TracedCall& call = stack.calls[static_cast<std::size_t>(net.layer_index)];
  const TracedBlock& block = trace.blocks[call.block];
  Run r{net, state};
  r.slots.resize(static_cast<std::size_t>(block.tensors));
  r.slots[0] = std::move(hidden);
  for (std::size_t i = 0; i < call.captured.size(); ++i) r.slots[i + 1] = net.shared.captured[call.captured[i]];
  const std::int16_t before = net.tape.enter("", block.source.c_str());
  execute(r, block.ops.data(), block.ops.data() + block.ops.size());
  while (!r.scopes.empty()) run_leave(r, {});
  Tensor out = std::move(r.slots[static_cast<std::size_t>(block.out)]);
  r.slots.clear();
  net.tape.leave(before);
  if (!out.defined()) out = net.tape.allocate(Shape{Dim(1)}, Dtype::kFp32, "nothing");
  return out;
}

void run_stack(Run& r, const Op& op) {
  const TracedStack& stack = r.state.trace->stacks[static_cast<std::size_t>(op.numbers[0])];
  const bool first = r.state.nets.empty();
  Net& part = first ? r.net : r.net.part(stack.layers, r.net.B, r.net.S);
  part.traced = r.net.traced;
  r.state.nets.push_back(&part);
  part.shared.captured.clear();
  for (const std::int32_t i : stack.captured) part.shared.captured.push_back(r.slots[static_cast<std::size_t>(i)]);
  Stack loop{stack.path, static_cast<Count>(stack.calls.size()), run_layer};
  if (op.numbers[0] + 1 == static_cast<Count>(r.state.trace->stacks.size())) loop.then = Phase::kLoss;
  r.out(op, part.layers(loop, r.in(op, 0)));
  part.shared.captured.clear();
}

// -- the program
// -------------------------------------------------------------------------------------------------------

void traced_inputs(Net& net) {
  const ModelTrace& trace = *net.arch.trace;
  net.traced = std::make_shared<TraceState>();
  TraceState& state = *net.traced;
  state.trace = &trace;
  Run r{net, state};
  r.slots.resize(static_cast<std::size_t>(trace.tensors));
  for (const Op& input : trace.inputs) {
    Tensor tensor = net.tape.allocate(r.shape(input), r.dtype(input), input.name.c_str());
    net.more_inputs.push_back(tensor);
    r.out(input, std::move(tensor));
  }
  state.slots = std::move(r.slots);
}

void run_until(Net& net, std::size_t end) {
  TraceState& state = *net.traced;
  const Op* const ops = state.trace->ops.data();
  Run r{net, state, std::move(state.slots), std::move(state.scopes)};
  execute(r, ops + state.next, ops + end);
  state.next = end;
  state.slots = std::move(r.slots);
  state.scopes = std::move(r.scopes);
}

Tensor traced_forward(Net& net) {
  run_until(net, net.arch.trace->body);
  return {};
}

// In place of what cannot be: more than any card has, so that nothing that reads it says that it fits.
Tensor nonsense(Net& net) {
  return net.tape.allocate(Shape{Dim(kLargestSize)}, Dtype::kFp32, "a trace that makes no sense at this size");
}

Outputs traced_head(Net& net, const Program&, Tensor) {
  const ModelTrace& trace = *net.arch.trace;
  run_until(net, trace.ops.size());
  TraceState& state = *net.traced;
  if (!state.scopes.empty()) net.tape.leave(state.scopes.front());
  const auto slot = [&](std::int32_t number) -> Tensor& { return state.slots[static_cast<std::size_t>(number)]; };
  Outputs out;
  out.loss = slot(trace.loss);
  if (state.broken == nullptr && !out.loss.defined()) state.broken = "there is no loss";
  if (state.broken != nullptr) out.loss = nonsense(net);
  for (const std::int32_t kept : trace.outputs) {
    if (slot(kept).defined()) out.rest.push_back(slot(kept));
  }
  state.slots.clear();
  return out;
}

// A run of the forward alone says what is wrong at this size.
const char* first_wrong(const Architecture& architecture, const TrainingJob& job) {
  Tape tape;
  tape.set_grad_enabled(false);
  Net net(tape, architecture, job);
  net.begin_micro_step();
  traced_inputs(net);
  call_model(net, *architecture.program);
  return net.traced->broken;
}

void refuse(Issues& issues, std::string_view path, std::string message, std::string suggestion = {}) {
  issues.push_back(
      {"UNSUPPORTED_VALUE", Severity::kError, std::string(path), std::move(message), std::move(suggestion)});
}

void check_trace(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  if (job.attention != AttentionKernel::kSdpa) {
    refuse(issues, "/attention",
           "A trace holds the attention that ran when it was made. Use \"sdpa\", or trace the model again.", "sdpa");
  }
  if (job.padding) refuse(issues, "/padding", "A trace is made without padding. Use false.", "false");
  if (job.loss != Loss::kDefault || job.liger_rope || job.liger_rms_norm || job.liger_swiglu) {
    refuse(issues, "/loss", "A trace holds the loss and the kernels that ran when it was made. Use \"default\".",
           "default");
  }
  if (job.preference != Preference::kNone)
    refuse(issues, "/task", "A trace is of one forward and its loss. Use \"sft\".", "sft");
  if (job.data_parallel.is_sharded() || job.tensor.is_used() || job.pipeline.is_used()) {
    refuse(issues, "/parallelism", "A traced model is answered on one GPU and under DistributedDataParallel so far.");
  }
  if (job.checkpointing == Checkpointing::kSelectiveCoreAttention) {
    refuse(issues, "/gradient_checkpointing/selective",
           "A trace does not know what the core of its attention is. Use \"full\".", "full");
  }
  if (job.checkpointing != Checkpointing::kNone && architecture.trace->stacks.empty()) {
    refuse(issues, "/gradient_checkpointing",
           "The trace has no list of layers that run one after the other: nothing is checkpointed.", "none");
  }
  if (has_error(issues)) return;
  if (const char* wrong = first_wrong(architecture, job)) {
    refuse(issues, "/config",
           std::string("At this batch and length the trace makes no sense: ") + wrong +
               ". Trace the model again, at sizes nearer to these.");
  }
}

constexpr HeadForward kHeads[] = {{Head::kCausalLm, traced_head}};
constexpr ClassSuffix kSuffixes[] = {{"ForCausalLM", Head::kCausalLm}};

const Program kTraceProgram = {
    .forward = traced_forward, .heads = kHeads, .inputs = traced_inputs, .check = check_trace};

// -- reading
// -----------------------------------------------------------------------------------------------------------

/// Reads the operations of a document, each by the form that its rule states.
class Reader {
 public:
  Reader(ConfigFields& fields, ModelTrace& trace) : fields_(fields), trace_(trace) {}

  bool failed() const { return failed_; }

  void fail(std::string_view key, const std::string& what) {
    if (!failed_)
      fields_.error("INVALID_VALUE", key,
                    "The trace cannot be read: " + what + ". Make it anew with `tidemark trace`.");
    failed_ = true;
  }

  std::int32_t tensor(const Value& value, bool optional = false) {
    if (value.is_integer() && value.integer >= (optional ? -1 : 0) && value.integer < kMostTensors) {
      tensors_ = std::max<Count>(tensors_, value.integer + 1);
      return static_cast<std::int32_t>(value.integer);
    }
    fail("ops", "a tensor's number is none");
    return 0;
  }

  Size size(const Value& value) {
    const auto number = [&](const Value& v) {
      if (v.is_integer() && v.integer >= -kLargestSize && v.integer <= kLargestSize) return Count{v.integer};
      fail("ops", "a size is no whole number");
      return Count{0};
    };
    if (!value.is_array()) return {number(value), 0, 0, 0};
    if (value.items.size() == 4) {
      return {number(value.items[0]), number(value.items[1]), number(value.items[2]), number(value.items[3])};
    }
    fail("ops", "a size is neither a number nor four");
    return {};
  }

  void sizes(const Value& value, Op& op) {
    if (!value.is_array() || (op.out.size() <= 1 && value.items.size() > kMaxRank))
      return fail("ops", "a list of sizes is none, or of more than five dimensions");
    for (const Value& item : value.items) op.sizes.push_back(size(item));
  }

  void dtype(const Value& value, Op& op) {
    op.has_dtype = true;
    for (std::size_t mode = 0; mode < 4; ++mode) {
      const Value* name = value.is_array() && value.items.size() == 4 ? &value.items[mode] : &value;
      op.dtypes[mode] = name->string == "low" ? kTracedLow : kUnknownDtype;
      constexpr std::pair<std::string_view, Dtype> kDtypes[] = {{"fp32", Dtype::kFp32},
                                                                {"int64", Dtype::kInt64},
                                                                {"int32", Dtype::kInt32},
                                                                {"bool", Dtype::kBool},
                                                                {"uint8", Dtype::kUint8}};
      for (const auto& [known, dtype] : kDtypes) {
        if (name->string == known) op.dtypes[mode] = static_cast<std::uint8_t>(dtype);
      }
      if (op.dtypes[mode] == kUnknownDtype)
        return fail("ops", "the dtype " + in_quotes(name->string) + " is not modelled");
    }
  }

  Count whole(const Value& value) {
    if (value.is_integer() && value.integer >= 0 && value.integer <= kLargestSize) return value.integer;
    fail("ops", "a number is none");
    return 0;
  }

  Op read(const Value& value) {
    Op op;
    const std::string_view name =
        value.is_array() && !value.items.empty() ? std::string_view{value.items.front().string} : "";
    for (const TracedRule& rule : kRules) {
      if (rule.name == name) op.rule = &rule;
    }
    if (op.rule == nullptr) {
      fail("ops", "the operation " + in_quotes(excerpt(name)) + " is not modelled");
      op.rule = &kRules[0];
      return op;
    }
    if (value.items.size() != op.rule->form.size() + 1) {
      fail("ops", "the operation " + in_quotes(name) + " has another number of arguments");
      return op;
    }
    std::size_t texts = 0, numbers = 0;
    for (std::size_t i = 0; i < op.rule->form.size(); ++i) {
      const Value& argument = value.items[i + 1];
      switch (op.rule->form[i]) {
        case 'o':
          op.out.push_back(tensor(argument));
          break;
        case 'i':
          op.in.push_back(tensor(argument));
          break;
        case '?':
          op.in.push_back(tensor(argument, true));
          break;
        case 'O':
        case 'I':
          if (!argument.is_array() || argument.items.empty() || argument.items.size() > kMostPieces) {
            fail("ops", "a list of tensors is none");
            break;
          }
          for (const Value& item : argument.items) (op.rule->form[i] == 'O' ? op.out : op.in).push_back(tensor(item));
          break;
        case 'z':
          sizes(argument, op);
          break;
        case 'd':
          op.numbers[numbers] = whole(argument);
          if (op.numbers[numbers++] > kMaxRank) fail("ops", "a dimension is none");
          break;
        case 'D':
          for (const Value& item : argument.items) {
            op.order.push_back(static_cast<int>(std::min<Count>(whole(item), kMaxRank)));
          }
          if (op.order.size() > kMaxRank) fail("ops", "an order of more than five dimensions");
          break;
        case 'n':
          op.numbers[numbers++] = whole(argument);
          break;
        case 's':
          (texts++ == 0 ? op.name : op.leaf) = argument.string;
          break;
        case 'T':
          if (!argument.is_null()) dtype(argument, op);
          break;
        case 't':
          dtype(argument, op);
          break;
        case 'p': {
          const Value* p = argument.find("p");
          if (p == nullptr || !p->is_number() || p->real < 0.0 || p->real > 1.0) fail("ops", "a probability is none");
          op.probability = p == nullptr ? 0.0 : p->real;
          break;
        }
        case 'R':
          stack(argument, op);
          break;
        default:
          break;
      }
    }
    // One size each: where a slice begins and how long it is, or how far is padded.
    const std::string_view form = op.rule->form;
    if ((form == "oidzz" && op.sizes.size() != 2) || ((name == "pad_last" || name == "take") && op.sizes.size() != 1))
      fail("ops", "a slice is none");
    return op;
  }

  void stack(const Value& rows, Op& op) {
    TracedStack stack;
    stack.path = op.name;
    op.numbers[0] = static_cast<Count>(trace_.stacks.size());
    if (!rows.is_array() || rows.items.empty() || rows.items.size() > 2000)
      return fail("ops", "a stack has no layers, or more than 2000");
    std::vector<std::pair<std::size_t, std::vector<std::size_t>>> kinds;
    for (const Value& row : rows.items) {
      if (!row.is_array() || row.items.size() != 2 || !row.items[1].is_array())
        return fail("ops", "a layer of a stack is none");
      TracedCall call;
      call.block = static_cast<std::size_t>(whole(row.items[0]));
      for (const Value& item : row.items[1].items) {
        const std::int32_t number = tensor(item);
        auto place = std::find(stack.captured.begin(), stack.captured.end(), number);
        if (place == stack.captured.end()) place = stack.captured.insert(place, number);
        call.captured.push_back(static_cast<std::size_t>(place - stack.captured.begin()));
      }
      if (call.block >= trace_.blocks.size() || call.captured.size() != trace_.blocks[call.block].captures) {
        return fail("ops", "a layer of a stack is of no kind");
      }
      const std::pair<std::size_t, std::vector<std::size_t>> kind{call.block, call.captured};
      auto known = std::find(kinds.begin(), kinds.end(), kind);
      if (known == kinds.end()) known = kinds.insert(known, kind);
      if (kinds.size() > 200) return fail("ops", "a stack has more than 200 kinds of layers");
      stack.kinds.push_back(static_cast<std::uint8_t>(known - kinds.begin()));
      stack.calls.push_back(std::move(call));
    }
    trace_.stacks.push_back(std::move(stack));
  }

  std::vector<Op> list(const Value* values, std::string_view key) {
    std::vector<Op> ops;
    if (values == nullptr || !values->is_array() || values->items.size() > kMostOps) {
      fail(key, "it has no list of operations");
      return ops;
    }
    ops.reserve(values->items.size());
    for (const Value& value : values->items) {
      ops.push_back(read(value));
      if (failed_) return {};
    }
    return ops;
  }

  void block(const Value& value) {
    tensors_ = 1;
    TracedBlock block;
    if (const Value* captures = value.find("captures")) block.captures = static_cast<std::size_t>(whole(*captures));
    if (const Value* source = value.find("source")) block.source = source->string;
    block.ops = list(value.find("ops"), "blocks");
    for (const Op& op : block.ops) {
      if (op.rule->run == run_stack) fail("blocks", "a layer has layers");
    }
    const Value* out = value.find("out");
    if (out == nullptr) return fail("blocks", "a layer hands nothing on");
    block.out = tensor(*out);
    if (block.captures > static_cast<std::size_t>(kMostPieces)) fail("blocks", "a layer reads too much");
    block.tensors = std::max<Count>(tensors_, static_cast<Count>(block.captures) + 1);
    trace_.blocks.push_back(std::move(block));
  }

  void whole_model() {
    if (const Value* blocks = fields_.find({"blocks"})) {
      for (const Value& value : blocks->items) {
        block(value);
        if (failed_) return;
      }
    }
    tensors_ = 1;
    const Value* inputs = fields_.find({"inputs"});
    if (inputs == nullptr || inputs->items.empty() || inputs->items.size() > 64)
      return fail("inputs", "it has no inputs");
    for (const Value& value : inputs->items) {
      Op op;
      op.rule = &kRules[0];
      if (!value.is_array() || value.items.size() != 4) return fail("inputs", "an input is none");
      op.name = value.items[0].string;
      op.out.push_back(tensor(value.items[1]));
      sizes(value.items[2], op);
      dtype(value.items[3], op);
      trace_.inputs.push_back(std::move(op));
    }
    trace_.ops = list(fields_.find({"ops"}), "ops");
    if (failed_) return;
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      if (trace_.ops[i].rule->run == run_stack) trace_.body = i + 1;
    }
    const Value* loss = fields_.find({"loss"});
    if (loss == nullptr) return fail("loss", "it has no loss");
    trace_.loss = tensor(*loss);
    if (const Value* outputs = fields_.find({"outputs"})) {
      for (const Value& value : outputs->items) trace_.outputs.push_back(tensor(value));
    }
    trace_.tensors = tensors_;
  }

 private:
  static constexpr std::uint8_t kUnknownDtype = 254;
  ConfigFields& fields_;
  ModelTrace& trace_;
  Count tensors_ = 1;
  bool failed_ = false;
};

void read_trace(ConfigFields& fields, Architecture& architecture) {
  const auto trace = std::make_shared<ModelTrace>();
  if (fields.count({"format"}, 0, 0) != kFormat) {
    fields.error("INVALID_VALUE", "format", "The trace is of another version of `tidemark trace`. Make it anew.");
    return;
  }
  Reader reader(fields, *trace);
  reader.whole_model();
  if (reader.failed()) return;
  architecture.class_name = excerpt(fields.text({"class"}, "nn.Module"));
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  fields.accept({"torch", "parameters"});
  architecture.layers_path = "";
  architecture.body_prefix = "";
  architecture.positions_by_token = false;
  for (const Op& op : trace->ops) {
    if (op.rule->run != run_tokens) continue;
    architecture.vocab_size = op.numbers[0];
    architecture.hidden_size = op.numbers[1];
  }
  for (TracedStack& stack : trace->stacks) {
    architecture.num_layers += static_cast<Count>(stack.calls.size());
    stack.layers.layer_kinds = std::move(stack.kinds);
    stack.layers.num_layers = static_cast<Count>(stack.calls.size());
  }
  if (!trace->stacks.empty()) architecture.layer_kinds = trace->stacks.front().layers.layer_kinds;
  architecture.num_heads = architecture.num_kv_heads = architecture.head_dim = 1;
  architecture.trace = trace;
  fields.note("MODEL_TRACE", "class",
              "Computed from a trace of " + in_quotes(architecture.class_name) +
                  ": of operations that the engine knows, on torch " + excerpt(fields.text({"torch"}, "?")) + ".");
}

const Family kRows[] = {
    {"model_trace", "ModelTrace", "ModelTraceForCausalLM", kSuffixes, read_trace, &kTraceProgram},
};

}  // namespace

extern const FamilyRows model_trace_rows;
const FamilyRows model_trace_rows = kRows;

}  // namespace tidemark
