// What a mask as large as its tensor marks. The mask itself stays for backward; each use finds its elements anew.
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr Count kIndex = size_of(Dtype::kInt64);

// ATen/native/IndexingUtils.h expandTensors: nonzero of the mask, a list for each dimension; cuda/Nonzero.cu makes the
// mask contiguous before. `adds`: cuda/Indexing.cu index_put_with_sort_kernel computes one index from the lists by
// three at a time, which then is sorted: its result, the order and that before, and cub's copies of both are as much
// again.
void find_marked(Tape& t, const Shape& mask, Count marked, bool adds = false) {
  const Bytes lists = kIndex * mask.rank * marked;
  if (adds) {
    t.scratch({{lists, "nonzero"}, {3 * kIndex * marked, "linear index"}});
  } else if (mask.strides[mask.rank - 1] == 0) {
    t.scratch({{mask.numel(), "mask.contiguous"}, {lists, "nonzero"}});
  } else {
    t.scratch({{lists, "nonzero"}});
  }
}

// index_backward: zeros of the input, then index_put_ in place, which adds.
void index_marked_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = zeros(t, n.input_shapes[0], g[0].dtype(), "index_backward");
  find_marked(t, n.saved_tensor(0).shape(), g[0].numel(), true);
}

// derivatives.yaml index_put_: zeros where marked in a copy of the gradient, and what stands there.
void put_marked_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Shape &mask = n.saved_tensor(0).shape(), values = n.input_shapes[1].contiguous();
  if (n.needs(0)) {
    const Tensor none = zeros(t, values, g[0].dtype());
    r[0] = t.allocate(n.input_shapes[0].contiguous(), g[0].dtype(), "index_put");
    find_marked(t, mask, values.numel());
  }
  if (!n.needs(1)) return;
  r[1] = t.allocate(values, g[0].dtype(), "index");
  find_marked(t, mask, values.numel());
}

}  // namespace

Tensor index_marked(Tensor x_in, Tensor mask_in, Dim marked) {
  const Tensor x = std::move(x_in), mask = std::move(mask_in);
  Tape& t = x.tape();
  Node* n = t.record("index", index_marked_backward, {&x});
  t.save(n, mask);
  Tensor out = t.allocate(Shape{marked}, x.dtype(), "index");
  find_marked(t, mask.shape(), marked.n());
  t.attach(n, out);
  return out;
}

Tensor put_marked(Tensor x_in, Tensor mask_in, Tensor values_in) {
  Tensor x = std::move(x_in);
  const Tensor mask = std::move(mask_in), values = std::move(values_in);
  Tape& t = x.tape();
  Node* n = t.record("index_put_", put_marked_backward, {&x, &values});
  t.save(n, mask);
  find_marked(t, mask.shape(), values.numel());
  x.leave_graph();
  t.attach(n, x);
  return x;
}

}  // namespace tidemark
