// Convolutions with any stride and padding. cuDNN's own workspaces are not modelled.
#include "core/tape/ops/convolution.hpp"

#include <algorithm>

#include "core/tape/ops.hpp"

namespace tidemark {
namespace {

// convolution_backward: input, weight, bias, where each needs one.
void convolution_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  for (int i = 0; i < n.input_count; ++i) {
    if (!n.needs(i)) continue;
    Shape s = n.input_shapes[i];
    s.make_contiguous();
    r[i] = t.allocate(s, g[0].dtype(), "convolution_backward");
    if (i > 0) t.set_category(r[i], Category::kGradients);
  }
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
  Tape& t = x.tape();
  Node* n = bias.defined() ? t.record("convolution", convolution_backward, {&x, &weight, &bias})
                           : t.record("convolution", convolution_backward, {&x, &weight});
  t.save(n, x);
  t.save(n, weight);
  Shape s = x.shape();
  s.dims[1] = weight.dim(0);
  std::copy(places.begin(), places.end(), s.dims + 2);
  s.make_contiguous();
  Tensor out = t.allocate(s, x.dtype(), "convolution");
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
