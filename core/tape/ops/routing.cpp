// Choosing experts for tokens, gathering their rows, and the grouped matrix product.
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

// value_selecting_reduction_backward, gather_backward, index_backward: zeros of the input, filled in place.
void zeros_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = zeros(t, n.input_shapes[0], g[0].dtype(), n.name);
}

// The gradient expanded to the input's shape: a view.
void sum_backward(Tape&, Node& n, Tensor* g, Tensor* r) {
  const Shape& shape = n.input_shapes[0];
  Tensor grad = std::move(g[0]);
  if (grad.shape().rank < shape.rank) grad = unsqueeze(std::move(grad), static_cast<int>(n.attributes[0]));
  r[0] = expand(std::move(grad), shape);
}

// div_tensor_other_backward: -grad * ((self / other) / other); div_tensor_self_backward: grad / other.
void div_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  if (n.needs(1)) {
    const Tensor& self = n.saved_tensor(1);
    const Tensor negated = t.allocate(elementwise_shape({&g[0]}), g[0].dtype(), "div_backward");
    Tensor quotient = t.allocate(elementwise_shape({&self}), self.dtype(), "div_backward");
    quotient = t.allocate(quotient.shape(), quotient.dtype(), "div_backward");
    r[1] = t.allocate(elementwise_shape({&negated, &quotient}), promote(negated, quotient), "div_backward");
  }
  if (n.needs(0)) r[0] = t.allocate(elementwise_shape({&g[0]}), g[0].dtype(), "div_backward");
}

// CatBackward hands out narrow views of the gradient.
void rows_backward(Tape&, Node& n, Tensor* g, Tensor* r) {
  for (int i = 0; i < n.input_count; ++i) {
    if (!n.needs(i)) continue;
    r[i] = g[0];
    r[i].change().shape.dims[0] = n.input_shapes[i].dims[0];
  }
}

void scatter_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "gather");
}

void masked_fill_backward(Tape& t, Node&, Tensor* g, Tensor* r) {
  r[0] = t.allocate(elementwise_shape({&g[0]}), g[0].dtype(), "masked_fill_backward");
}

void noise_backward(Tape& t, Node&, Tensor* g, Tensor* r) {
  r[0] = t.allocate(elementwise_shape({&g[0]}), g[0].dtype(), "mul_backward");
}

// index_add: the rows' gradient is grad.index_select(0, index), the sum's the gradient itself.
void index_add_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  if (n.needs(1)) r[1] = t.allocate(n.input_shapes[1], g[0].dtype(), "index_add_backward");
  if (n.needs(0)) r[0] = g[0];
}

// cuda/GroupedBlas.cpp create_grouped_gemm_output_tensor: rows are padded to 16 bytes.
Tensor grouped_output(Tape& t, const Shape& shape, Dtype dtype, const char* op) {
  const Count aligned = 16 / size_of(dtype);
  Shape padded = shape;
  Dim& last = padded.dims[padded.rank - 1];
  const Count width = (last.n() + aligned - 1) / aligned * aligned;
  if (width != last.n()) last = Dim(width);
  padded.make_contiguous();
  Tensor out = t.allocate(padded, dtype, op);
  if (width != shape.size(-1)) out.change().shape.dims[shape.rank - 1] = shape.dim(-1);
  return out;
}

// FunctionsManual.cpp _grouped_mm_mat2_grad, _grouped_mm_mat1_grad: the weight's first, in the weight's own layout.
void grouped_mm_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Shape& weight = n.input_shapes[1];
  if (n.needs(1)) {
    if (weight.strides[1] < weight.strides[2]) {
      r[1] = grouped_output(t, Shape{weight.dim(0), weight.dim(2), weight.dim(1)}, g[0].dtype(),
                            "_grouped_mm (weight gradient)");
      r[1] = transpose(std::move(r[1]), 1, 2);
    } else {
      r[1] = grouped_output(t, Shape{weight.dim(0), weight.dim(1), weight.dim(2)}, g[0].dtype(),
                            "_grouped_mm (weight gradient)");
    }
    t.set_category(r[1], Category::kGradients);
  }
  if (n.needs(0)) {
    const Shape& x = n.input_shapes[0];
    r[0] = grouped_output(t, Shape{x.dim(0), x.dim(1)}, g[0].dtype(), "_grouped_mm (input gradient)");
  }
}

}  // namespace

TopK topk(Tensor x_in, Dim k) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("topk", zeros_backward, {&x});
  const Shape s = x.shape().with_last(k);
  TopK out;
  out.values = t.allocate(s, x.dtype(), "topk");
  out.indices = t.allocate(s, Dtype::kInt64, "topk indices");
  t.attach(n, out.values);
  t.save(n, out.indices);
  return out;
}

Tensor gather_last(Tensor x_in, Tensor index_in) {
  const Tensor x = std::move(x_in), index = std::move(index_in);
  Tape& t = x.tape();
  Node* n = t.record("gather", zeros_backward, {&x});
  t.save(n, index);
  Shape s = index.shape();
  s.make_contiguous();
  Tensor out = t.allocate(s, x.dtype(), "gather");
  t.attach(n, out);
  return out;
}

Tensor stack_layers(const std::vector<Tensor>& parts, Dim rows) {
  std::vector<const Tensor*> inputs;
  for (const Tensor& part : parts) inputs.push_back(&part);
  Tape& t = parts.front().tape();
  Node* n = t.record("cat", rows_backward, inputs.data(), inputs.size());
  Tensor out = t.allocate(Shape{rows, parts.front().dim(1)}, parts.front().dtype(), "cat");
  t.attach(n, out);
  return out;
}

Tensor scatter_last(Tensor values_in, Tensor index_in, Dim width) {
  const Tensor values = std::move(values_in), index = std::move(index_in);
  Tape& t = values.tape();
  Node* n = t.record("scatter_", scatter_backward, {&values});
  t.save(n, index);
  Tensor out = t.allocate(values.shape().with_last(width), values.dtype(), "full_like");
  t.attach(n, out);
  return out;
}

Tensor sum_over(Tensor x_in, int dim, bool keep, bool wide) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  const int d = dim < 0 ? x.shape().rank + dim : dim;
  Node* n = t.record("sum", sum_backward, {&x});
  if (n != nullptr) n->attributes[0] = d;
  Shape s = x.shape();
  if (keep) {
    s.dims[d] = Dim(1);
  } else {
    for (int i = d; i + 1 < s.rank; ++i) s.dims[i] = s.dims[i + 1];
    --s.rank;
  }
  s.make_contiguous();
  // On autocast's fp32 list (autocast_mode.h: sum).
  wide = wide || (t.autocast() && is_half(x.dtype()));
  Tensor out = t.allocate(s, wide ? Dtype::kFp32 : x.dtype(), "sum");
  t.attach(n, out);
  return out;
}

Tensor div_in_place(Tensor a_in, Tensor b_in) {
  Tensor a = std::move(a_in);
  const Tensor b = std::move(b_in);
  Tape& t = a.tape();
  Node* n = t.record("div_", div_backward, {&a, &b});
  t.save(n, b);
  if (n != nullptr && b.requires_grad()) {
    Tensor before = t.allocate(elementwise_shape({&a}), a.dtype(), "clone");
    t.save(n, before);
  }
  a.leave_graph();
  t.attach(n, a);
  return a;
}

Tensor masked_fill_in_place(Tensor x_in, Tensor mask_in) {
  Tensor x = std::move(x_in);
  const Tensor mask = std::move(mask_in);
  Tape& t = x.tape();
  Node* n = t.record("masked_fill_", masked_fill_backward, {&x});
  t.save(n, mask);
  x.leave_graph();
  t.attach(n, x);
  return x;
}

Tensor index_some(Tensor x_in, Tensor indices_in, Dim rows) {
  const Tensor x = std::move(x_in), indices = std::move(indices_in);
  Tape& t = x.tape();
  Node* n = t.record("index_backward", zeros_backward, {&x});
  t.save(n, indices);
  Shape s = x.shape();
  s.dims[0] = rows;
  s.make_contiguous();
  Tensor out = t.allocate(s, x.dtype(), "index");
  t.attach(n, out);
  return out;
}

Tensor index_pairs(Tensor x_in, Tensor rows_in, Tensor columns_in, Dim count) {
  const Tensor x = std::move(x_in), rows = std::move(rows_in), columns = std::move(columns_in);
  Tape& t = x.tape();
  Node* n = t.record("index_backward", zeros_backward, {&x});
  t.save(n, rows);
  t.save(n, columns);
  Shape s{count};
  for (int i = 2; i < x.shape().rank; ++i) s.dims[s.rank++] = x.dim(i);
  s.make_contiguous();
  Tensor out = t.allocate(s, x.dtype(), "index");
  t.attach(n, out);
  return out;
}

namespace {

// index_add_ keeps the rows for their shape alone: grad.index_select(dim, index).expand_as(source).
Tensor rows_added(Tensor sum_in, Tensor index_in, Tensor rows_in, bool keeps_rows) {
  Tensor sum = std::move(sum_in);
  const Tensor index = std::move(index_in), rows = std::move(rows_in);
  Tape& t = sum.tape();
  Node* n = t.record(keeps_rows ? "index_add_" : "scatter_add_", index_add_backward, {&sum, &rows});
  t.save(n, index);
  if (keeps_rows) t.save(n, rows);
  sum.leave_graph();
  t.attach(n, sum);
  return sum;
}

}  // namespace

Tensor index_add_in_place(Tensor sum, Tensor index, Tensor rows) {
  return rows_added(std::move(sum), std::move(index), std::move(rows), true);
}

Tensor scatter_add_in_place(Tensor sum, Tensor index, Tensor rows) {
  return rows_added(std::move(sum), std::move(index), std::move(rows), false);
}

Tensor add_noise(Tensor x_in) {
  Tensor x = std::move(x_in);
  Tape& t = x.tape();
  const Tensor noise = t.allocate(elementwise_shape({&x}), x.dtype(), "empty_like");
  Node* n = t.record("mul_", noise_backward, {&x});
  t.save(n, noise);
  x.leave_graph();
  t.attach(n, x);
  return x;
}

Tensor grouped_mm(Tensor x_in, Tensor weight_in, Tensor offsets_in) {
  const Tensor weight = std::move(weight_in), offsets = std::move(offsets_in);
  const Tensor x = to(std::move(x_in), weight.dtype());
  Tape& t = x.tape();
  Node* n = t.record("_grouped_mm", grouped_mm_backward, {&x, &weight});
  if (n != nullptr) {
    if (weight.requires_grad()) t.save(n, x);
    if (x.requires_grad()) t.save(n, weight);
    t.save(n, offsets);
  }
  Tensor out = grouped_output(t, Shape{x.dim(0), weight.dim(2)}, x.dtype(), "_grouped_mm");
  t.attach(n, out);
  return out;
}

}  // namespace tidemark
