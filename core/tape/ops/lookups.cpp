// Table lookups and the negative log likelihood.
#include "core/tape/collective_ops.hpp"

namespace tidemark {
namespace {

// ATen/native/cuda/Embedding.cu embedding_dense_backward_cuda: above this many indices they are sorted and reduced by
// segments (EmbeddingBackwardKernel.cu), which needs scratch.
constexpr Count kEmbeddingSortThreshold = 3072;
// EmbeddingBackwardKernel.cu: NROWS_PER_THREAD
constexpr Count kRowsPerThread = 10;

void embedding_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "embedding_dense_backward");
  t.set_category(r[0], Category::kGradients);
  const Count indices = n.attributes[0];
  if (!t.above(indices, kEmbeddingSortThreshold)) return;
  const Count rows = n.input_shapes[0].size(0), columns = n.input_shapes[0].size(1);
  const Count segments = t.quotient(indices, kRowsPerThread) + (t.above(indices, rows) ? rows : indices);
  t.scratch({{8 * indices, "sorted_indices"},
             {8 * indices, "orig_indices"},
             {8 * indices, "segment_offsets"},
             {8 * indices, "partials_per_segment"},
             {8 * segments, "partial_segment_offset"},
             {4 * segments * columns, "grad_weight_per_segment"}});
}

void nll_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "nll_loss_backward");
}

// index_backward: zeros of the input, then index_put_ in place.
void index_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = zeros(t, n.input_shapes[0], g[0].dtype(), "index_backward");
}

// derivatives.yaml masked_scatter: grad.masked_fill(mask, 0) for the tokens' rows; for the pictures', whose sizes are
// known, masked_scatter_backward: the gradient's marked elements, found by nonzero of the expanded mask.
void masked_scatter_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  if (n.needs(0)) r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "masked_fill");
  if (!n.needs(1)) return;
  Shape s = n.input_shapes[1];
  s.make_contiguous();
  r[1] = t.allocate(s, g[0].dtype(), "masked_scatter_backward");
  t.scratch({{g[0].numel(), "mask.contiguous"}, {8 * g[0].shape().rank * s.numel(), "nonzero"}});
}

// derivatives.yaml index_put_: the tensor's own rows get zeros in a copy of the gradient, the values a gather of it.
void put_rows_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  if (n.needs(0)) r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "index_put");
  if (n.needs(1)) r[1] = t.allocate(n.input_shapes[1], g[0].dtype(), "index");
}

void average_pool_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  Shape s = n.input_shapes[0];
  s.make_contiguous();
  r[0] = t.allocate(s, g[0].dtype(), "avg_pool2d_backward");
}

// index_put_backward: the values' gradient is a gather; the zeros that were filled need none.
void index_put_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "index_put_backward");
}

}  // namespace

Tensor take(Tensor x_in, int dim, Dim length) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Tensor indices = t.allocate(Shape{length}, Dtype::kInt64, "index");
  Node* n = t.record("index", index_backward, {&x});
  t.save(n, indices);
  Shape s = x.shape();
  s.dims[dim] = length;
  s.make_contiguous();
  Tensor out = t.allocate(s, x.dtype(), "index");
  t.attach(n, out);
  return out;
}

Tensor pick(Tensor x_in, Tensor rows_in, Tensor positions_in) {
  const Tensor x = std::move(x_in);
  const Tensor rows = std::move(rows_in);
  const Tensor positions = std::move(positions_in);
  Tape& t = x.tape();
  Node* n = t.record("index", index_backward, {&x});
  t.save(n, rows);
  t.save(n, positions);
  Tensor out = t.allocate(Shape{x.dim(0), x.dim(2)}, x.dtype(), "index");
  t.attach(n, out);
  return out;
}

Tensor gather_rows(Tensor x_in, Tensor indices_in) {
  const Tensor x = std::move(x_in);
  const Tensor indices = std::move(indices_in);
  Tape& t = x.tape();
  Node* n = t.record("index", index_backward, {&x});
  t.save(n, indices);
  Shape s = x.shape();
  s.dims[0] = indices.dim(0);
  s.make_contiguous();
  Tensor out = t.allocate(s, x.dtype(), "index");
  t.attach(n, out);
  return out;
}

Tensor put_rows(Tensor x_in, Tensor indices_in, Tensor rows_in) {
  const Tensor x = std::move(x_in), indices = std::move(indices_in), rows = std::move(rows_in);
  Tape& t = x.tape();
  Node* n = t.record("index_put_", put_rows_backward, {&x, &rows});
  t.save(n, indices);
  Tensor out = x;
  out.leave_graph();
  t.attach(n, out);
  return out;
}

Tensor masked_scatter(Tensor x_in, Tensor mask_in, Tensor source_in) {
  const Tensor x = std::move(x_in), mask = std::move(mask_in), source = std::move(source_in);
  Tape& t = x.tape();
  Node* n = t.record("masked_scatter", masked_scatter_backward, {&x, &source});
  t.save(n, mask);
  Shape s = x.shape();
  s.make_contiguous();
  Tensor out = t.allocate(s, x.dtype(), "masked_scatter");
  // IndexKernel.cpp masked_scatter_cuda: the expanded mask made contiguous, and the prefix sums of its elements.
  t.scratch({{s.numel(), "mask.contiguous"}, {8 * s.numel(), "maskPrefixSum"}});
  t.attach(n, out);
  return out;
}

Tensor average_pool(Tensor x_in, Count side) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("avg_pool2d", average_pool_backward, {&x});
  t.save(n, x);
  Shape s = x.shape();
  for (int d = s.rank - 2; d < s.rank; ++d) s.dims[d] = Dim(s.dims[d].n() / side);
  s.make_contiguous();
  Tensor out = t.allocate(s, x.dtype(), "avg_pool2d");
  t.attach(n, out);
  return out;
}

Tensor index_rows(Tensor x_in, Tensor indices_in) {
  const Tensor x = std::move(x_in);
  const Tensor indices = std::move(indices_in);
  Tape& t = x.tape();
  Node* n = t.record("index_select", index_backward, {&x});
  t.save(n, indices);
  Shape s = x.shape();
  s.dims[0] = indices.dim(0);
  s.make_contiguous();
  Tensor out = t.allocate(s, x.dtype(), "index_select");
  t.attach(n, out);
  return out;
}

Tensor scatter_rows(Tensor x_in, Tensor indices_in, Shape s) {
  const Tensor x = std::move(x_in);
  const Tensor indices = std::move(indices_in);
  Tape& t = x.tape();
  Tensor full = t.allocate(s, x.dtype(), "zeros");
  Node* n = t.record("index_put", index_put_backward, {&x});
  t.save(n, indices);
  Tensor out = t.allocate(s, x.dtype(), "index_put");
  t.attach(n, out);
  return out;
}

Tensor embedding(Tensor ids_in, Tensor weight_in) {
  const Tensor ids = std::move(ids_in);
  const Tensor weight = std::move(weight_in);
  Tape& t = weight.tape();
  Node* n = t.record("embedding", embedding_backward, {&weight});
  if (n != nullptr) n->attributes[0] = ids.numel();
  t.save(n, ids);
  Shape s = ids.shape();
  s.dims[s.rank++] = weight.dim(1);
  s.make_contiguous();
  Tensor out = t.allocate(s, weight.dtype(), "embedding");
  t.attach(n, out);
  return out;
}

// _MaskPartial._mask_tensor: which ids are other GPUs', and the ids as rows of this one's.
Tensor embedding_of_rows(Tensor ids_in, Tensor weight_in, Count rows) {
  const Tensor ids = std::move(ids_in);
  const Tensor weight = std::move(weight_in);
  Tape& t = weight.tape();
  Tensor mask;
  {
    const Tensor below = t.allocate(ids.shape(), Dtype::kBool, "lt");
    const Tensor above = t.allocate(ids.shape(), Dtype::kBool, "ge");
    mask = t.allocate(ids.shape(), Dtype::kBool, "mask");
  }
  Tensor whole = t.allocate(ids.shape(), ids.dtype(), "clone");
  const Tensor masked = t.allocate(ids.shape(), ids.dtype(), "masked ids");
  whole.reset();
  Node* n = t.record("embedding", embedding_backward, {&weight});
  if (n != nullptr && !t.recomputing()) {
    n->attributes[0] = ids.numel();
    n->input_shapes[0] = Shape{Dim(rows, weight.dim(0).symbol()), weight.dim(1)};
  }
  t.save(n, ids);
  Shape s = ids.shape();
  s.dims[s.rank++] = weight.dim(1);
  s.make_contiguous();
  Tensor out = t.allocate(s, weight.dtype(), "embedding");
  t.attach(n, out);
  return out;
}

Tensor nll_loss(Tensor log_probabilities, Tensor target_in) {
  Tensor x = std::move(log_probabilities);
  const Tensor target = std::move(target_in);
  Tape& t = x.tape();
  if (t.autocast()) x = to(std::move(x), Dtype::kFp32);
  Node* n = t.record("nll_loss", nll_backward, {&x});
  t.save(n, x);
  t.save(n, target);
  Tensor out = t.allocate(Shape{}, x.dtype(), "nll_loss");
  Tensor total_weight = t.allocate(Shape{}, x.dtype(), "nll_loss total_weight");
  t.attach(n, out);
  t.save(n, total_weight);
  return out;
}

Tensor cross_entropy(Tensor logits, Tensor target) {
  // ATen/native/LossNLL.cpp cross_entropy_loss names self.scalar_type(), so autocast leaves the softmax in that dtype.
  const Dtype dtype = logits.dtype();
  Tensor p = log_softmax(std::move(logits), dtype);
  return nll_loss(std::move(p), std::move(target));
}

namespace {

// FunctionsManual.cpp gather_backward: zeros as large as self, then scatter_add_ in place.
void gather_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = zeros(t, n.input_shapes[0], g[0].dtype(), "gather_backward");
}

// FunctionsManual.cpp repeat_backward: the copies summed.
void repeat_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "repeat_backward");
}

}  // namespace

Tensor gather_last(Tensor x_in, Tensor indices_in, Dim length) {
  const Tensor x = std::move(x_in);
  const Tensor indices = std::move(indices_in);
  Tape& t = x.tape();
  Node* n = t.record("gather", gather_backward, {&x});
  t.save(n, indices);  // in the order of their names, index and self
  t.save(n, x);
  Tensor out = t.allocate(x.shape().with_last(length), x.dtype(), "gather");
  t.attach(n, out);
  return out;
}

Tensor repeat_rows(Tensor x_in, Dim times) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("repeat", repeat_backward, {&x});
  Tensor out = t.allocate(Shape{Dim(x.size(0) * times.n()), x.dim(1), x.dim(2)}, x.dtype(), "repeat");
  t.attach(n, out);
  return out;
}

}  // namespace tidemark
