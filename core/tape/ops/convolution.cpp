// Convolutions with any stride and padding.
#include "core/tape/ops/convolution.hpp"

#include <algorithm>

#include "core/tape/convolution_workspace.hpp"
#include "core/tape/ops.hpp"
#include "core/tape/ops/sums.hpp"

namespace tidemark {
namespace {

constexpr const char* kWorkspace = "cudnn workspace";

ConvolutionWorkspace workspace_of(Tape& t, const Shape& x, const Shape& weight, const Shape& y, Dtype dtype) {
  const ConvolutionWorkspace all = convolution_workspace(x, weight, y, dtype);
  t.note_workspace(std::max({all.forward, all.input_gradient, all.weight_gradient}));
  return t.has_convolution_workspaces() ? all : ConvolutionWorkspace{};
}

void take_workspace(Tape& t, const Tensor& x, const Tensor& weight, const Shape& y) {
  t.scratch({{workspace_of(t, x.shape(), weight.shape(), y, x.dtype()).forward, kWorkspace}});
}

// ATen/native/Convolution.cpp convolution_backward: input, weight, bias, where each needs one; the bias's is a sum, of
// rows of neighbours where channels come last.
void convolution_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Shape &x = n.input_shapes[0], &y = g[0].shape();
  const ConvolutionWorkspace workspace = workspace_of(t, x, n.input_shapes[1], y, g[0].dtype());
  const Bytes beside[] = {workspace.input_gradient, workspace.weight_gradient, 0};
  for (int i = 0; i < n.input_count; ++i) {
    if (!n.needs(i)) continue;
    Shape s = n.input_shapes[i];
    s.make_contiguous();
    r[i] = t.allocate(s, g[0].dtype(), "convolution_backward");
    if (i > 0) t.set_category(r[i], Category::kGradients);
    t.scratch({{beside[i], kWorkspace}});
    if (i == 2 && has_channels_last(x)) partial_sums(t, y.numel() / y.size(1), s);
  }
}

// y [n, any, …places]
Tensor convolved(const Tensor& x, const Tensor& weight, const Tensor& bias, Shape y) {
  Tape& t = x.tape();
  Node* n = bias.defined() ? t.record("convolution", convolution_backward, {&x, &weight, &bias})
                           : t.record("convolution", convolution_backward, {&x, &weight});
  t.save(n, x);
  t.save(n, weight);
  y.dims[1] = weight.dim(0);
  y.make_contiguous();
  Tensor out = t.allocate(y, x.dtype(), "convolution");
  take_workspace(t, x, weight, y);
  t.attach(n, out);
  return out;
}

// ATen/native/cuda/ActivationGluKernel.cu: glu_backward_cuda fills one tensor as large as the input.
void glu_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = t.allocate(n.saved_tensor(0).shape().contiguous(), g[0].dtype(), "glu_backward");
}

// native_group_norm_backward: dX, dgamma, dbeta.
void group_norm_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  for (int i = 0; i < n.input_count; ++i) {
    if (n.needs(i)) r[i] = t.allocate(n.input_shapes[i], n.input_dtypes[i], "group_norm_backward");
  }
}

}  // namespace

Tensor convolution(Tensor x_in, Tensor weight_in, Tensor bias_in, std::initializer_list<Dim> places) {
  const Tensor argument = std::move(x_in);
  Tensor bias = std::move(bias_in);
  if (bias.defined()) bias = lower_precision(std::move(bias));
  const Tensor weight = lower_precision(std::move(weight_in));
  const Tensor x = lower_precision(argument);
  Shape y = x.shape();
  std::copy(places.begin(), places.end(), y.dims + 2);
  return convolved(x, weight, bias, y);
}

Tensor patch_convolution(Tensor x_in, Tensor weight_in, Tensor bias_in) {
  Tensor bias = std::move(bias_in);
  if (bias.defined()) bias = lower_precision(std::move(bias));
  // A batch's pictures lie on the first card, a tower may not (device_map).
  x_in = to_card(std::move(x_in), weight_in.tape().card_of(weight_in));
  const Tensor weight = lower_precision(std::move(weight_in));
  const Tensor x = lower_precision(std::move(x_in));
  Shape y = x.shape();
  for (int d = 2; d < y.rank; ++d) y.dims[d] = Dim(x.size(d) / weight.size(d));
  return convolved(x, weight, bias, y);
}

Tensor gated_channels(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("glu", glu_backward, {&x});
  t.save(n, x);
  Shape half = x.shape();
  half.dims[1] = Dim(x.size(1) / 2);
  half.make_contiguous();
  Tensor out = t.allocate(half, x.dtype(), "glu");
  t.attach(n, out);
  return out;
}

Tensor group_norm(Tensor x_in, Tensor weight_in, Tensor bias_in, Count count) {
  const Tensor argument = std::move(x_in);
  Tensor x = argument;
  Tensor weight = std::move(weight_in), bias = std::move(bias_in);
  Tape& t = x.tape();
  if (t.autocast()) {  // on autocast's fp32 list
    x = to(std::move(x), Dtype::kFp32);
    weight = to(std::move(weight), Dtype::kFp32);
    bias = to(std::move(bias), Dtype::kFp32);
  }
  Node* n = t.record("group_norm", group_norm_backward, {&x, &weight, &bias});
  t.save(n, x);
  t.save(n, weight);
  Tensor out = t.allocate(x.shape(), x.dtype(), "group_norm");
  const Shape groups{x.dim(0), Dim(count)};
  const Tensor mean = t.allocate(groups, x.dtype(), "group_norm mean");
  const Tensor rstd = t.allocate(groups, x.dtype(), "group_norm rstd");
  t.attach(n, out);
  t.save(n, mean);
  t.save(n, rstd);
  return out;
}

}  // namespace tidemark
