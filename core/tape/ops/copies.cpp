// Operations that only move data: nothing is kept for backward.
#include <algorithm>
#include <iterator>
#include <vector>

#include "core/tape/ops.hpp"
#include "core/tape/ops/sums.hpp"
#include "core/tape/reduction.hpp"

namespace tidemark {
namespace {

void pass_backward(Tape&, Node&, Tensor* g, Tensor* r) {
  r[0] = g[0];
}

void to_backward(Tape&, Node& n, Tensor* g, Tensor* r) {
  r[0] = to(g[0], n.input_dtypes[0]);
}

// CatBackward hands out narrow views of the gradient.
void cat_backward(Tape&, Node& n, Tensor* g, Tensor* r) {
  const int dim = static_cast<int>(n.attributes[0]);
  Count before = 0;
  for (int i = 0; i < n.input_count; ++i) {
    const Dim length = n.input_shapes[i].dims[dim];
    if (n.needs(i)) {
      r[i] = g[0];
      TensorBody& part = r[i].change();
      part.shape.dims[dim] = length;
      if (dim == 0 && before > 0) part.offset += before * part.shape.strides[0];
    }
    before += length.n();
  }
}

void pad_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = g[0];
  r[0].change().shape.dims[n.input_shapes[0].rank - 1] = n.input_shapes[0].dims[n.input_shapes[0].rank - 1];
  // constant_pad_nd's backward pads by a negative amount and clones.
  Shape s = n.input_shapes[0];
  s.make_contiguous();
  r[0] = t.allocate(s, g[0].dtype(), "constant_pad_nd backward");
}

// torch/csrc/autograd/functions/tensor.cpp CopySlices::apply: the gradient is copied, then the part of it that was
// written to. Behind that, of x[1:] = x[1:], CopyBackwards: zeros for what was there, a slice's gradient for the rest.
void view_add_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Shape& whole = n.input_shapes[0];
  Shape part = whole;
  Tensor grad = std::move(g[0]);
  const Dtype dtype = grad.dtype();
  if (n.attributes[0] != 0) {
    part.dims[0] = Dim(part.dims[0].n() - 1);
    Tensor copy = t.allocate(whole, dtype, "new_empty_strided");
    const Tensor written = t.allocate(part, dtype, "clone");
    t.allocate(part, dtype, "zeros_like");
    grad = std::move(copy);
    t.allocate(whole, dtype, "slice_backward");
  }
  r[0] = t.allocate(whole, dtype, "new_empty_strided");
  r[1] = t.allocate(part, dtype, "clone");
}

bool moves(const Shape& shape) {
  for (int i = 0; i < shape.rank; ++i) {
    const Symbol meaning = shape.dim(i).symbol();
    if (meaning == Symbol::kBatch || meaning == Symbol::kSequence || meaning == Symbol::kTokens) return true;
  }
  return false;
}

// The second factor of a Kronecker product: [m, k, n, l] to [1, k, 1, l].
bool sums_factor(const Shape& of, const Shape& to) {
  constexpr int kKronecker = 4;
  return of.rank == kKronecker && to.rank == kKronecker && to.size(0) == 1 && to.size(2) == 1 &&
         of.size(1) == to.size(1) && of.size(3) == to.size(3);
}

// The rows and columns of pictures, whose channels are last: [n, h, w, c] to [n, 1, 1, c]. (Sums within rows of tokens
// are left out: a step's sizes would hold for one batch alone.)
bool sums_pictures(const Shape& of, const Shape& to) {
  constexpr int kPictures = 4;
  return of.rank == kPictures && to.rank == kPictures && to.size(1) == 1 && to.size(2) == 1 &&
         of.size(0) == to.size(0) && of.size(3) == to.size(3) && of.size(1) > 1 && of.size(2) > 1;
}

// Only leading dimensions go, or every other one: the sums are those of columns.
bool sums_rows(const Shape& of, const Shape& to) {
  if (sums_factor(of, to) || sums_pictures(of, to)) return true;
  int left = to.rank;
  while (left > 0 && to.size(to.rank - left) == 1) --left;
  if (left > of.rank) return false;
  for (int i = 1; i <= left; ++i) {
    if (of.size(of.rank - i) != to.size(to.rank - i)) return false;
  }
  return true;
}

// The rows of a transposed matrix lie as columns: [n, m] of strides (1, n) to [n, 1].
bool sums_turned_rows(const Shape& of, const Shape& to) {
  const bool matrices = of.rank == 2 && to.rank == 2 && of.size(1) > 1;
  return matrices && of.strides[0] == 1 && of.strides[1] == of.size(0) && to.size(0) == of.size(0) && to.size(1) == 1;
}

Tensor copy_of(const Tensor& x, const Shape& shape, Dtype dtype, const char* op, BackwardFn backward) {
  Node* n = x.tape().record(op, backward, {&x});
  Tensor out = x.tape().allocate(shape, dtype, op);
  x.tape().attach(n, out);
  return out;
}

}  // namespace

void partial_sums(Tape& t, Count rows, const Shape& of) {
  // Of sums whose number moves with the sizes, few have so many rows: that they have not is all that is asked.
  if (moves(of) && !t.above(rows, kFewRows)) return;
  const Reduction sums = reduction_of(of.numel(), t.compute_capability());
  if (sums.filling == 0) return;
  const Guard blocks{Guard::Kind::kBlocks, rows, sums.filling, sums.height};
  const Guard divided{Guard::Kind::kDivided, rows, sums.filling, sums.height};
  const Tensor partial = t.allocate_guarded(blocks, sums.partial, "sum (partial sums of blocks)");
  t.allocate_guarded(divided, sums.semaphores, "sum (semaphores)");
}

Tensor reshape(Tensor x_in, const Shape& shape) {
  Tensor x = std::move(x_in);
  if (x.shape().same_sizes(shape)) return x;
  Shape s;
  if (is_viewable(x.shape(), shape, &s)) return view(std::move(x), shape);
  Tensor c = contiguous(std::move(x));
  return view(std::move(c), shape);
}

Tensor contiguous(Tensor x_in) {
  const Tensor x = std::move(x_in);
  if (x.shape().is_contiguous()) return x;
  Shape s = x.shape();
  s.make_contiguous();
  return copy_of(x, s, x.dtype(), "clone", pass_backward);
}

Tensor clone(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return copy_of(x, elementwise_shape({&x}), x.dtype(), "clone", pass_backward);
}

// ToCopyBackward: the gradient goes back to where the tensor came from, on which the node was recorded.
Tensor to_card(Tensor x_in, std::int16_t card) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  const std::int16_t from = t.card_of(x);
  t.go_to_card(from);
  const auto sent_back = [](Tape& tape, Node&, Tensor* g, Tensor* r) {
    r[0] = tape.allocate(elementwise_shape({&g[0]}), g[0].dtype(), "copy (gradient)");
  };
  Node* const n = from == card ? nullptr : t.record("to", sent_back, {&x});
  t.go_to_card(card);
  if (from == card) return x;
  Tensor out = t.allocate(elementwise_shape({&x}), x.dtype(), "copy");
  t.attach(n, out);
  return out;
}

Tensor to(Tensor x_in, Dtype dtype) {
  const Tensor x = std::move(x_in);
  if (x.dtype() == dtype) return x;
  return copy_of(x, elementwise_shape({&x}), dtype, "to", to_backward);
}

Tensor to_contiguous(Tensor x_in, Dtype dtype) {
  const Tensor x = std::move(x_in);
  if (x.dtype() == dtype) return x;
  Shape s = x.shape();
  s.make_contiguous();
  return copy_of(x, s, dtype, "to", to_backward);
}

Tensor cat(std::initializer_list<const Tensor*> parts, int dim) {
  return cat(parts.begin(), parts.size(), dim);
}

Tensor cat(const Tensor* const* parts, std::size_t count, int dim) {
  const Tensor& first = *parts[0];
  Tape& t = first.tape();
  Shape s = first.shape();
  const int d = dim < 0 ? s.rank + dim : dim;
  Count total = 0;
  Dtype dtype = first.dtype();
  for (std::size_t i = 0; i < count; ++i) {
    total += parts[i]->shape().dims[d].n();
    if (parts[i]->dtype() != dtype) dtype = Dtype::kFp32;  // of the two halves, too
  }
  s.dims[d] = Dim(total, s.dims[d].symbol());
  s.make_contiguous();
  Node* n = t.record("cat", cat_backward, parts, count);
  if (n != nullptr) n->attributes[0] = d;
  Tensor out = t.allocate(s, dtype, "cat");
  t.attach(n, out);
  return out;
}

Tensor cat(const std::vector<Tensor>& parts, int dim) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& part : parts) pointers.push_back(&part);
  return cat(pointers.data(), pointers.size(), dim);
}

Tensor sum_to(Tensor x_in, const Shape& shape) {
  const Tensor x = std::move(x_in);
  Shape s = shape;
  s.make_contiguous();
  if (s.numel() == x.numel()) return view(x, s);
  Tape& t = x.tape();
  Tensor sum = t.allocate(s, x.dtype(), "sum");
  const bool as_columns = x.shape().is_contiguous() ? sums_rows(x.shape(), s) : sums_turned_rows(x.shape(), s);
  if (as_columns) partial_sums(t, x.numel() / s.numel(), s);
  return sum;
}

Tensor add_to_view(Tensor x_in, Tensor y_in, bool behind) {
  Tensor x = std::move(x_in);
  const Tensor y = std::move(y_in);
  Node* n = x.tape().record("add_", view_add_backward, {&x, &y});
  if (n != nullptr) n->attributes[0] = behind ? 1 : 0;
  x.leave_graph();
  x.tape().attach(n, x);
  return x;
}

Tensor zeros(Tape& tape, const Shape& shape, Dtype dtype, const char* op) {
  Shape s = shape;
  s.make_contiguous();
  return tape.allocate(s, dtype, op);
}

Tensor pad_last(Tensor x_in, Count extra) {
  const Tensor x = std::move(x_in);
  const Shape padded = x.shape().with_last(Dim(x.size(-1) + extra));
  return copy_of(x, padded, x.dtype(), "constant_pad_nd", pad_backward);
}

}  // namespace tidemark
