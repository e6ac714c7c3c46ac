// Operations of models of pictures.
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

// Whole tensors of the input's shape: of a mean, an interpolation, slices with steps.
void whole_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  Shape s = n.input_shapes[0];
  s.make_contiguous();
  r[0] = t.allocate(s, g[0].dtype(), n.name);
}

// FunctionsManual.cpp scale_grad_by_count: the gradient where the largest stands, divided by how often it does.
void amax_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Shape s = n.input_shapes[0].contiguous();
  const Tensor there = t.allocate(s, Dtype::kBool, "eq");
  const Tensor masked = t.allocate(s, g[0].dtype(), "mul");
  const Tensor count = t.allocate(s.with_last(Dim(1)), Dtype::kInt64, "sum");
  r[0] = t.allocate(s, g[0].dtype(), "div");
}

// grid_sampler_2d_backward_cuda makes the grid's gradient whether or not it is asked for (GridSampler.cpp).
void grid_sample_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor of_grid = t.allocate(n.input_shapes[1], g[0].dtype(), n.name);
  r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), n.name);
}

void batch_norm_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  for (int i = 0; i < n.input_count; ++i) {
    if (!n.needs(i)) continue;
    r[i] = t.allocate(n.input_shapes[i], i == 0 ? g[0].dtype() : n.input_dtypes[i], "native_batch_norm_backward");
    if (i > 0) t.set_category(r[i], Category::kGradients);
  }
}

// torch/csrc/autograd/FunctionsManual.cpp: norm_backward for the 2-norm: grad * (self / norm).masked_fill_(norm == 0,
// 0)
void norm_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Shape whole = n.input_shapes[0];
  const Tensor unit = t.allocate(whole, g[0].dtype(), "div");
  const Tensor zero = t.allocate(g[0].shape(), Dtype::kBool, "eq");
  r[0] = t.allocate(whole, g[0].dtype(), "mul");
}

Tensor reshaped(const Tensor& x, const Shape& shape, const char* name) {
  Tape& t = x.tape();
  Node* n = t.record(name, whole_backward, {&x});
  Tensor out = t.allocate(shape, x.dtype(), name);
  t.attach(n, out);
  return out;
}

}  // namespace

Tensor mean_over(Tensor x_in, int dim) {
  const Tensor x = std::move(x_in);
  Shape s = x.shape();
  for (int i = dim < 0 ? s.rank + dim : dim; i + 1 < s.rank; ++i) s.dims[i] = s.dims[i + 1];
  --s.rank;
  s.make_contiguous();
  return reshaped(x, s, "mean");
}

Tensor amax_last(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("amax", amax_backward, {&x});
  t.save(n, x);
  Shape s = x.shape();
  --s.rank;
  s.make_contiguous();
  Tensor out = t.allocate(s, x.dtype(), "amax");
  t.attach(n, out);
  t.save(n, out);
  return out;
}

Tensor interpolate(Tensor x_in, const Shape& shape) {
  // On autocast's fp32 list (autocast_mode.h: upsample_bilinear2d, upsample_bicubic2d).
  const Tensor argument = std::move(x_in);
  const Tensor x = argument.tape().autocast() ? to(argument, Dtype::kFp32) : argument;
  return reshaped(x, shape, "upsample");
}

Tensor grid_sample(Tensor x_in, Tensor grid_in) {
  const Tensor x = std::move(x_in), grid = std::move(grid_in);
  Tape& t = x.tape();
  Node* n = t.record("grid_sampler_2d", grid_sample_backward, {&x, &grid});
  t.save(n, x);
  t.save(n, grid);
  Tensor out = t.allocate(Shape{x.dim(0), x.dim(1), grid.dim(1), grid.dim(2)}, x.dtype(), "grid_sampler_2d");
  t.attach(n, out);
  return out;
}

Tensor roll(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Shape s = x.shape();
  s.make_contiguous();
  return reshaped(x, s, "roll");
}

Tensor batch_norm(Tensor x_in, Tensor weight_in, Tensor bias_in) {
  const Tensor x = std::move(x_in), weight = std::move(weight_in), bias = std::move(bias_in);
  Tape& t = x.tape();
  t.tell_batch_norm();
  Node* n = t.record("native_batch_norm", batch_norm_backward, {&x, &weight, &bias});
  t.save(n, x);
  t.save(n, weight);
  Tensor out = t.allocate(elementwise_shape({&x}), x.dtype(), "native_batch_norm");
  const Tensor mean = t.allocate(weight.shape(), Dtype::kFp32, "native_batch_norm mean");
  const Tensor inverse = t.allocate(weight.shape(), Dtype::kFp32, "native_batch_norm invstd");
  t.attach(n, out);
  t.save(n, mean);
  t.save(n, inverse);
  return out;
}

Tensor max_pool(Tensor x_in, Dim height, Dim width) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("max_pool2d_with_indices", whole_backward, {&x});
  t.save(n, x);
  const Shape s{x.dim(0), x.dim(1), height, width};
  Tensor out = t.allocate(s, x.dtype(), "max_pool2d_with_indices");
  const Tensor indices = t.allocate(s, Dtype::kInt64, "max_pool2d indices");
  t.attach(n, out);
  t.save(n, indices);
  return out;
}

Tensor average_pool(Tensor x_in, Dim height, Dim width) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("avg_pool2d", whole_backward, {&x});
  t.save(n, x);
  Tensor out = t.allocate(Shape{x.dim(0), x.dim(1), height, width}, x.dtype(), "avg_pool2d");
  t.attach(n, out);
  return out;
}

Tensor vector_norm(Tensor x_in, const Shape& kept) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("linalg_vector_norm", norm_backward, {&x});
  t.save(n, x);
  // autocast_mode.h: AT_FORALL_FP32_SET_OPT_DTYPE: the input is not cast.
  Tensor norm = t.allocate(kept, t.autocast() ? Dtype::kFp32 : x.dtype(), "linalg_vector_norm");
  t.attach(n, norm);
  t.save(n, norm);
  return norm;
}

Tensor relu_in_place(Tensor x_in) {
  Tensor x = std::move(x_in);
  Node* n = x.tape().record("relu_", whole_backward, {&x});
  x.leave_graph();
  x.tape().attach(n, x);
  x.tape().save(n, x);
  return x;
}

Tensor channels_first(Tensor x) {
  const Shape shape{x.dim(0), x.dim(3), x.dim(1), x.dim(2)};
  return view(std::move(x), shape);
}

Tensor channels_last(Tensor x) {
  const Shape shape{x.dim(0), x.dim(2), x.dim(3), x.dim(1)};
  return view(std::move(x), shape);
}

}  // namespace tidemark
