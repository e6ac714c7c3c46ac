// Redistribution of tensors that several GPUs share.
#include "core/tape/collective_ops.hpp"

namespace tidemark {
namespace {

Shape with_sequence(const Shape& from, Count length) {
  Shape s = from;
  s.dims[1] = Dim(length, from.dims[1].symbol());
  s.make_contiguous();
  return s;
}

// placement_types.py Shard._to_replicate_tensor: gathered along the first dimension; of several rows a copy in order.
Tensor gathered(const Tensor& x, Count shards) {
  Tape& t = x.tape();
  const Shape whole = with_sequence(x.shape(), x.size(1) * shards);
  Tensor parts = t.allocate(whole, x.dtype(), "all_gather_into_tensor");
  if (!t.above(x.size(0), 1)) return parts;
  return t.allocate(whole, x.dtype(), "cat");
}

// Shard._reduce_shard_tensor: the parts of the sequence one behind the other, then the reduction.
Tensor scattered(Tensor x_in, Count shards, bool keep = false) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  const Tensor parts = t.allocate(with_sequence(x.shape(), x.size(1)), x.dtype(), "cat");
  if (keep) t.keep_results(true);
  Tensor part = t.allocate(with_sequence(x.shape(), t.quotient(x.size(1), shards)), x.dtype(), "reduce_scatter_tensor");
  if (keep) t.keep_results(false);
  return part;
}

void gather_backward(Tape&, Node& n, Tensor* g, Tensor* r) {
  r[0] = scattered(std::move(g[0]), n.attributes[0]);
}

void scatter_backward(Tape&, Node& n, Tensor* g, Tensor* r) {
  r[0] = gathered(g[0], n.attributes[0]);
}

void pass_backward(Tape&, Node&, Tensor* g, Tensor* r) {
  r[0] = std::move(g[0]);
}

Tensor reduced(const Tensor& x) {
  Shape s = x.shape();
  s.make_contiguous();
  return x.tape().allocate(s, x.dtype(), "all_reduce");
}

void reduce_backward(Tape&, Node&, Tensor* g, Tensor* r) {
  r[0] = reduced(g[0]);
}

// A bool for each token, and its id as a column of this GPU's.
struct Masked {
  Tensor mask, ids;
};
Masked masked_ids(const Tensor& target) {
  Tape& t = target.tape();
  Masked out;
  {
    const Tensor below = t.allocate(target.shape(), Dtype::kBool, "lt");
    const Tensor above = t.allocate(target.shape(), Dtype::kBool, "ge");
    out.mask = t.allocate(target.shape(), Dtype::kBool, "mask");
  }
  const Tensor copy = t.allocate(target.shape(), Dtype::kInt64, "clone");
  out.ids = t.allocate(target.shape(), Dtype::kInt64, "masked ids");
  return out;
}

// torch.where(target != ignore_index, x, 0)
Tensor where_counted(const Tensor& target, Dtype dtype) {
  Tape& t = target.tape();
  const Tensor condition = t.allocate(target.shape(), Dtype::kBool, "ne");
  return t.allocate(target.shape(), dtype, "where");
}

// loss.py _nll_loss_and_log_softmax_backward: (grad_input + exp(x)) * grad_output, which is log_softmax's backward too.
void parallel_cross_entropy_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  const Tensor x = n.saved_tensor(0), target = n.saved_tensor(1);
  Tensor scaled = t.allocate(Shape{}, x.dtype(), "div");
  const Tensor safe_target = where_counted(target, Dtype::kInt64);
  const Tensor grad_input = t.allocate(x.shape(), x.dtype(), "zeros_like");
  const Masked masked = masked_ids(target);
  Tensor wide = t.allocate(target.shape(), x.dtype(), "to");
  const Tensor grad_update = t.allocate(target.shape(), x.dtype(), "sub");
  wide.reset();
  const Tensor arange = t.allocate(target.shape(), Dtype::kInt64, "arange");
  const Tensor grad_output = where_counted(target, x.dtype());
  scaled.reset();
  Tensor exponential = t.allocate(x.shape(), x.dtype(), "exp");
  const Tensor sum = t.allocate(x.shape(), x.dtype(), "add");
  exponential.reset();
  r[0] = t.allocate(n.input_shapes[0], x.dtype(), "mul");
}

// loss.py _log_softmax
Tensor parallel_log_softmax(const Tensor& x, const Shape& row) {
  Tape& t = x.tape();
  Tensor maximum = t.allocate(row, x.dtype(), "amax");
  maximum = t.allocate(row, x.dtype(), "all_reduce");
  const Tensor shifted = t.allocate(x.shape(), x.dtype(), "shifted");
  Tensor sum;
  {
    const Tensor exponential = t.allocate(x.shape(), x.dtype(), "exp");
    sum = t.allocate(row, x.dtype(), "sum");
  }
  sum = t.allocate(row, x.dtype(), "all_reduce");
  const Tensor logarithm = t.allocate(row, x.dtype(), "log");
  return t.allocate(x.shape(), x.dtype(), "log_softmax");
}

void columns_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "clone");
}

void all_to_all_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "all_to_all_single");
}

void entered_backward(Tape& t, Node&, Tensor* g, Tensor* r) {
  r[0] = std::move(g[0]);
  if (t.placement() != nullptr) t.placement()->backward_leaves_inner();
}

void left_backward(Tape& t, Node&, Tensor* g, Tensor* r) {
  if (t.placement() != nullptr) t.placement()->backward_enters_inner();
  r[0] = std::move(g[0]);
}

// Itself, with a node of its own.
Tensor marked(Tensor x, BackwardFn backward) {
  Node* n = x.tape().record("identity", backward, {&x});
  Tensor out = std::move(x);
  if (n == nullptr) return out;
  out.leave_graph();
  out.tape().attach(n, out);
  return out;
}

}  // namespace

Tensor all_to_all(Tensor x_in, Dim rows) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("all_to_all_single", all_to_all_backward, {&x});
  Tensor out = t.allocate(Shape{rows, x.dim(1)}, x.dtype(), "all_to_all_single");
  t.attach(n, out);
  return out;
}

// A slot of the checkpoint's behind all others, of a node that nobody comes to.
void compute_to_the_end(const Tensor& x) {
  Tape& t = x.tape();
  Node* n = t.record("identity", pass_backward, {&x});
  Tensor nothing = t.allocate(Shape{Dim(0)}, x.dtype(), "the last that is saved");
  if (n == nullptr) return;
  t.save(n, nothing);
  t.attach(n, nothing);
}

Tensor enter_unit(Tensor x) {
  if (x.tape().placement() != nullptr) x.tape().placement()->enter_inner();
  return marked(std::move(x), entered_backward);
}

Tensor leave_unit(Tensor x) {
  if (x.tape().placement() != nullptr) x.tape().placement()->leave_inner();
  return marked(std::move(x), left_backward);
}

Tensor gather_sequence(Tensor x_in, Count shards) {
  const Tensor x = std::move(x_in);
  Node* n = x.tape().record("Redistribute", gather_backward, {&x});
  if (n != nullptr) n->attributes[0] = shards;
  Tensor out = gathered(x, shards);
  x.tape().attach(n, out);
  return out;
}

Tensor scatter_sequence(Tensor x_in, Count shards, bool keep) {
  const Tensor x = std::move(x_in);
  Node* n = x.tape().record("Redistribute", scatter_backward, {&x});
  if (n != nullptr) n->attributes[0] = shards;
  Tensor out = scattered(x, shards, keep);
  x.tape().attach(n, out);
  return out;
}

Tensor all_reduce(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Node* n = x.tape().record("Redistribute", pass_backward, {&x});
  Tensor out = reduced(x);
  x.tape().attach(n, out);
  return out;
}

Tensor all_reduce_gradient(Tensor x) {
  return marked(std::move(x), reduce_backward);
}

Tensor gather_columns(Tensor x_in, Count shards, Dim columns) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("Redistribute", columns_backward, {&x});
  const Shape padded = x.shape().with_last(Dim(x.size(-1) * shards, Symbol::kVocab));
  const Tensor parts = t.allocate(padded, x.dtype(), "all_gather_into_tensor");
  Tensor out = t.allocate(x.shape().with_last(columns), x.dtype(), "cat");
  t.attach(n, out);
  return out;
}

// loss.py _nll_loss_forward behind it.
Tensor parallel_cross_entropy(Tensor logits, Tensor target_in) {
  Tensor x = std::move(logits);
  const Tensor target = std::move(target_in);
  Tape& t = x.tape();
  Node* n = t.record("parallel_cross_entropy", parallel_cross_entropy_backward, {&x});
  const Tensor result = parallel_log_softmax(x, target.shape());
  x.reset();
  t.save(n, result);
  t.save(n, target);
  const Tensor safe_target = where_counted(target, Dtype::kInt64);
  Masked masked = masked_ids(target);
  const Tensor partial = t.allocate(target.shape(), result.dtype(), "gather");
  masked.mask.reset();
  const Tensor reduced_rows = t.allocate(target.shape(), result.dtype(), "all_reduce");
  Tensor rows = t.allocate(target.shape(), result.dtype(), "neg");
  rows = where_counted(target, result.dtype());
  const Tensor total_weight = t.allocate(Shape{}, result.dtype(), "total_weight");
  Tensor out = t.allocate(Shape{}, result.dtype(), "nll_loss");
  t.attach(n, out);
  t.save(n, total_weight);
  return out;
}

}  // namespace tidemark
