// Views share their base's storage and pin all of it. Their nodes hand the gradient on, as a view where PyTorch does.
#include "core/tape/ops.hpp"

namespace tidemark {
namespace {

Tensor share(const Tensor& base, const Shape& shape, Count further = 0) {
  Tensor out = base;
  out.leave_graph();
  TensorBody& body = out.change();
  body.shape = shape;
  body.offset += further;
  body.is_view = true;
  return out;
}

Tensor finish_view(const Tensor& x, const Shape& shape, const char* name, BackwardFn backward,
                   std::initializer_list<Count> attributes = {}) {
  Tensor out = share(x, shape);
  Node* n = x.tape().record(name, backward, {&x});
  if (n != nullptr) {
    int i = 0;
    for (Count a : attributes) n->attributes[i++] = a;
    x.tape().attach(n, out);
  }
  return out;
}

void view_backward(Tape&, Node& n, Tensor* g, Tensor* r) {
  r[0] = reshape(std::move(g[0]), n.input_shapes[0]);
}

void transpose_backward(Tape&, Node& n, Tensor* g, Tensor* r) {
  r[0] = transpose(g[0], static_cast<int>(n.attributes[0]), static_cast<int>(n.attributes[1]));
}

void permute_backward(Tape&, Node& n, Tensor* g, Tensor* r) {
  Shape s = g[0].shape();
  for (int i = 0; i < s.rank; ++i) {
    const int to = static_cast<int>(n.attributes[i]);
    s.dims[to] = g[0].shape().dims[i];
    s.strides[to] = g[0].shape().strides[i];
  }
  r[0] = share(g[0], s);
}

void expand_backward(Tape&, Node& n, Tensor* g, Tensor* r) {
  r[0] = sum_to(g[0], n.input_shapes[0]);
}

// FunctionsManual.cpp slice_backward / select_backward: zeros of the whole, then a copy into the part.
void slice_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = zeros(t, n.input_shapes[0], g[0].dtype(), "slice_backward");
}

// split_with_sizes_backward: the pieces are concatenated; missing ones are zeros.
void split_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  Few<Tensor, 4> made;
  const int dim = static_cast<int>(n.attributes[0]);
  Dtype dtype = Dtype::kFp32;
  for (int i = 0; i < n.output_count; ++i) {
    if (g[i].defined()) dtype = g[i].dtype();
  }
  for (int i = 0; i < n.output_count; ++i) {
    if (g[i].defined()) continue;
    Shape s = n.input_shapes[0];
    s.dims[dim] = Dim(n.lengths[static_cast<std::size_t>(i)]);
    s.make_contiguous();
    made.push_back(zeros(t, s, dtype, "split_backward zeros"));
  }
  Shape s = n.input_shapes[0];
  s.make_contiguous();
  r[0] = t.allocate(s, dtype, "split_backward");
}

}  // namespace

bool is_viewable(const Shape& from, const Shape& to, Shape* out) {
  // ATen/TensorUtils.cpp computeStride: group old dimensions that are contiguous among themselves.
  Count strides[kMaxRank];
  int view_d = to.rank - 1;
  Count chunk_base = from.rank > 0 ? from.strides[from.rank - 1] : 1;
  Count tensor_numel = 1, view_numel = 1;
  for (int d = from.rank - 1; d >= 0; --d) {
    tensor_numel *= from.dims[d].n();
    if (d == 0 || (from.dims[d - 1].n() != 1 && from.strides[d - 1] != tensor_numel * chunk_base)) {
      while (view_d >= 0 && (view_numel < tensor_numel || to.dims[view_d].n() == 1)) {
        strides[view_d] = view_numel * chunk_base;
        view_numel *= to.dims[view_d].n();
        --view_d;
      }
      if (view_numel != tensor_numel) return false;
      if (d > 0) {
        chunk_base = from.strides[d - 1];
        tensor_numel = 1;
        view_numel = 1;
      }
    }
  }
  if (view_d != -1) return false;
  if (out == nullptr) return true;
  *out = to;
  for (int i = 0; i < to.rank; ++i) out->strides[i] = strides[i];
  return true;
}

Tensor view(Tensor x_in, const Shape& shape) {
  const Tensor x = std::move(x_in);
  Shape s;
  if (!is_viewable(x.shape(), shape, &s)) {
    s = shape;
    s.make_contiguous();
  }
  return finish_view(x, s, "view", view_backward);
}

Tensor transpose(Tensor x_in, int a, int b) {
  const Tensor x = std::move(x_in);
  Shape s = x.shape();
  const int i = a < 0 ? s.rank + a : a, k = b < 0 ? s.rank + b : b;
  std::swap(s.dims[i], s.dims[k]);
  std::swap(s.strides[i], s.strides[k]);
  return finish_view(x, s, "transpose", transpose_backward, {i, k});
}

Tensor permute(Tensor x_in, std::initializer_list<int> order) {
  const Tensor x = std::move(x_in);
  Shape s = x.shape();
  Count attributes[kMaxRank] = {};
  int to = 0;
  for (int from : order) {
    s.dims[to] = x.shape().dims[from];
    s.strides[to] = x.shape().strides[from];
    attributes[to++] = from;
  }
  return finish_view(x, s, "permute", permute_backward,
                     {attributes[0], attributes[1], attributes[2], attributes[3], attributes[4]});
}

Tensor expand(Tensor x_in, const Shape& shape) {
  const Tensor x = std::move(x_in);
  Shape s = shape;
  const int offset = s.rank - x.shape().rank;
  for (int i = 0; i < s.rank; ++i) {
    const bool broadcast = i < offset || (x.shape().dims[i - offset].n() == 1 && s.dims[i].n() != 1);
    s.strides[i] = broadcast ? 0 : x.shape().strides[i - offset];
  }
  return finish_view(x, s, "expand", expand_backward);
}

Tensor unsqueeze(Tensor x_in, int dim) {
  const Tensor x = std::move(x_in);
  Shape s = x.shape();
  const int at = dim < 0 ? s.rank + 1 + dim : dim;
  for (int i = s.rank; i > at; --i) {
    s.dims[i] = s.dims[i - 1];
    s.strides[i] = s.strides[i - 1];
  }
  s.dims[at] = Dim(1);
  s.strides[at] = at < x.shape().rank ? x.shape().strides[at] * x.shape().dims[at].n() : 1;
  ++s.rank;
  return finish_view(x, s, "unsqueeze", view_backward);
}

Tensor narrow(Tensor x_in, int dim, Count start, Dim length) {
  const Tensor x = std::move(x_in);
  Shape s = x.shape();
  const int d = dim < 0 ? s.rank + dim : dim;
  if (start == 0 && s.dims[d].n() == length.n()) return x;
  s.dims[d] = length;
  Tensor out = finish_view(x, s, "slice", slice_backward);
  if (start > 0) out.change().offset += start * s.strides[d];
  return out;
}

Tensor select(Tensor x_in, int dim) {
  const Tensor x = std::move(x_in);
  Shape s = x.shape();
  const int d = dim < 0 ? s.rank + dim : dim;
  for (int i = d; i + 1 < s.rank; ++i) {
    s.dims[i] = s.dims[i + 1];
    s.strides[i] = s.strides[i + 1];
  }
  --s.rank;
  return finish_view(x, s, "select", slice_backward);
}

namespace {
// Views of x side by side, all outputs of one node; `lengths` is what each takes of dimension `dim`.
Pieces take_apart(const Tensor& x, const char* name, int dim, const std::vector<Count>& lengths,
                  const std::vector<Shape>& shapes) {
  Tape& t = x.tape();
  Pieces out;
  Node* n = t.record(name, split_backward, {&x});
  if (n != nullptr) {
    n->attributes[0] = dim;
    n->lengths = lengths;
  }
  Count before = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    Tensor& part = out.part.push_back(share(x, shapes[i], before * x.shape().strides[dim]));
    t.attach(n, part, static_cast<int>(i));
    before += lengths[i];
  }
  return out;
}
}  // namespace

Pieces split(Tensor x, int dim, std::initializer_list<Dim> sizes) {
  return split(std::move(x), dim, std::vector<Dim>(sizes));
}

Pieces split(Tensor x_in, int dim, const std::vector<Dim>& sizes) {
  const Tensor x = std::move(x_in);
  const int d = dim < 0 ? x.shape().rank + dim : dim;
  std::vector<Count> lengths;
  std::vector<Shape> shapes;
  for (const Dim& size : sizes) {
    Shape s = x.shape();
    s.dims[d] = size;
    lengths.push_back(size.n());
    shapes.push_back(s);
  }
  return take_apart(x, "split", d, lengths, shapes);
}

Pieces split(Tensor x_in, int dim, const std::vector<Count>& sizes) {
  const Tensor x = std::move(x_in);
  const int d = dim < 0 ? x.shape().rank + dim : dim;
  std::vector<Shape> shapes(sizes.size(), x.shape());
  for (std::size_t i = 0; i < sizes.size(); ++i) shapes[i].dims[d] = Dim(sizes[i]);
  return take_apart(x, "split", d, sizes, shapes);
}

Pieces unbind(Tensor x_in, int dim) {
  const Tensor x = std::move(x_in);
  const int d = dim < 0 ? x.shape().rank + dim : dim;
  Shape s = x.shape();
  for (int i = d; i + 1 < s.rank; ++i) {
    s.dims[i] = s.dims[i + 1];
    s.strides[i] = s.strides[i + 1];
  }
  --s.rank;
  const auto count = static_cast<std::size_t>(x.size(d));
  return take_apart(x, "unbind", d, std::vector<Count>(count, 1), std::vector<Shape>(count, s));
}

Tensor detach(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return share(x, x.shape());
}

}  // namespace tidemark
