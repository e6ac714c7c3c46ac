// Matrix products. A linear keeps its input when its weight is trained, and its weight when its input needs a gradient.
#include "core/tape/ops.hpp"

namespace tidemark {
namespace {

// Of a linear's node: deepspeed 0.19 runtime/zero/linear.py LinearFunctionForZeroStage3.
constexpr int kOfZero3 = 1;

// autocast_mode.h WrapFunction_: `(*F)(cached_cast(to_type, args)...)`. The order of a call's arguments is the
// compiler's choice; GCC, which builds PyTorch, starts with the last one, so that the first argument's cast is the
// youngest node.
// FunctionsManual.cpp mm_mat2_backward, mm_mat1_backward: the weight's gradient first, then the input's.
// Inputs of the node: 0 = x [T, in], 1 = weight ([out, in] when attributes[0], else [in, out]), 2 = bias.
void linear_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const bool has_bias = n.input_count > 2, of_zero3 = n.attributes[kOfZero3] != 0;
  // addmm computes mat1, mat2, self (its order in derivatives.yaml), as ZeRO-3's does; mm computes mat2 before self.
  const bool input_first = has_bias || of_zero3;
  if (input_first && n.needs(0)) r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "mm (input gradient)");
  if (n.needs(1)) {
    r[1] = t.allocate(n.input_shapes[1], n.input_dtypes[1], "mm (weight gradient)");
    t.set_category(r[1], Category::kGradients);
    // derivatives.yaml: t() of the product with the transposed weight; ZeRO-3's own function multiplies the other way.
    r[1].change().is_view = !of_zero3;
  }
  if (!input_first && n.needs(0)) r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "mm (input gradient)");
  if (has_bias && n.needs(2)) {
    r[2] = g[0];  // the engine sums it to the bias's shape; ZeRO-3's does while what was saved is there
    if (of_zero3) r[2] = sum_to(std::move(r[2]), n.input_shapes[2]);
  }
}

Tensor product(const Tensor& x, const Tensor& weight, const Tensor& bias, Dim out_features, const char* op,
               const Tensor& kept = {}, bool transposed = false) {
  Tape& t = x.tape();
  Node* n = bias.defined() ? t.record(op, linear_backward, {&x, &weight, &bias})
                           : t.record(op, linear_backward, {&x, &weight});
  if (n != nullptr) n->attributes[kOfZero3] = kept.defined() ? 1 : 0;
  if (kept.defined()) {
    // ctx.save_for_backward: python_function.cpp keeps the tensors when forward() has returned, and what stops a
    // recomputation there comes behind the product.
    Tensor out = t.allocate(Shape{x.dim(0), out_features}, x.dtype(), op);
    if (n != nullptr) {
      t.save(n, kept);
      t.save(n, weight);
    }
    t.attach(n, out);
    return out;
  }
  if (n != nullptr) {
    // mm's mat2 is the weight's t(), which tells where saved tensors are packed.
    const bool tells = transposed && !t.keeps_saved();
    if (x.requires_grad()) t.save(n, tells ? transpose(detach(weight), 0, 1) : weight);
    if (weight.requires_grad()) t.save(n, x);
  }
  Tensor out = t.allocate(Shape{x.dim(0), out_features}, x.dtype(), op);
  t.attach(n, out);
  return out;
}

Tensor unflatten(Tensor y, const Shape& like) {
  if (like.rank == 2) return y;
  const Shape s = like.with_last(y.dim(-1));
  return view(std::move(y), s);
}

// FunctionsManual.cpp: bmm's mat2 first, then self.
void bmm_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  if (n.needs(1)) {
    Shape s = n.input_shapes[1];
    s.make_contiguous();
    r[1] = t.allocate(s, n.input_dtypes[1], "bmm_backward");
  }
  if (n.needs(0)) {
    Shape s = n.input_shapes[0];
    s.make_contiguous();
    r[0] = t.allocate(s, n.input_dtypes[0], "bmm_backward");
  }
}

// baddbmm(input, a, b): batch1, batch2, self.
void baddbmm_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  for (int i = 1; i <= 2; ++i) {
    if (!n.needs(i)) continue;
    Shape s = n.input_shapes[i];
    s.make_contiguous();
    r[i] = t.allocate(s, n.input_dtypes[i], "baddbmm_backward");
  }
  if (n.needs(0)) r[0] = g[0];
}

Tensor bmm(Tensor a_in, Tensor b_in) {
  const Tensor a = std::move(a_in);
  const Tensor b = std::move(b_in);
  Tape& t = a.tape();
  Node* n = t.record("bmm", bmm_backward, {&a, &b});
  if (n != nullptr) {
    if (a.requires_grad()) t.save(n, b);
    if (b.requires_grad()) t.save(n, a);
  }
  Tensor out = t.allocate(Shape{a.dim(0), a.dim(1), b.dim(2)}, a.dtype(), "bmm");
  t.attach(n, out);
  return out;
}

}  // namespace

Tensor lower_precision(Tensor x) {
  Tape& t = x.tape();
  if (!t.autocast()) return x;
  return t.autocast_cast(std::move(x), *t.autocast());
}

Shape flat(const Shape& s) {
  Dim rows(1);
  if (s.rank == 3) {
    rows = Dim(s.dims[0].n() * s.dims[1].n(), product_symbol(s.dims[0].symbol(), s.dims[1].symbol()));
  } else {
    Count n = 1;
    for (int i = 0; i + 1 < s.rank; ++i) n *= s.dims[i].n();
    rows = Dim(n);
  }
  return Shape{rows, s.dims[s.rank - 1]};
}

Tensor linear(Tensor x_in, Tensor weight_in, Tensor bias_in) {
  const Tensor argument = std::move(x_in);  // alive until the call returns, whatever is made of it
  Tape& t = argument.tape();
  Tensor bias = std::move(bias_in);
  if (bias.defined()) bias = lower_precision(std::move(bias));
  Tensor weight = lower_precision(std::move(weight_in));
  Tensor x = lower_precision(argument);
  const Dim out_features = weight.dim(0);
  const Shape outer = x.shape();
  if (bias.defined() && outer.rank >= 3 && !x.shape().is_contiguous()) {
    // at::linear: no flattening; matmul, then the bias in place.
    Tensor y = linear(std::move(x), std::move(weight), {});
    return add_in_place(std::move(y), std::move(bias));
  }
  Tensor kept;
  if (t.placement() != nullptr && t.placement()->linear_keeps_input()) kept = x;
  Tensor rows = outer.rank == 2 ? std::move(x) : reshape(std::move(x), flat(outer));
  Tensor y = product(rows, weight, bias, out_features, bias.defined() ? "addmm" : "mm", kept, true);
  rows.reset();
  return unflatten(std::move(y), outer);
}

Tensor conv1d_addmm(Tensor x_in, Tensor weight_in, Tensor bias_in) {
  const Tensor argument = std::move(x_in);  // alive until the call returns, whatever is made of it
  Tensor weight = lower_precision(std::move(weight_in));
  Tensor x = lower_precision(argument);
  Tensor bias = lower_precision(std::move(bias_in));
  const Dim out_features = weight.dim(1);
  const Shape outer = x.shape();
  Tensor rows = reshape(std::move(x), flat(outer));
  Tensor y = product(rows, weight, bias, out_features, "addmm");
  rows.reset();
  return unflatten(std::move(y), outer);
}

Tensor matmul(Tensor a_in, Tensor b_in) {
  const Tensor first = std::move(a_in), second = std::move(b_in);
  Tensor b = lower_precision(second);
  Tensor a = lower_precision(first);
  if (b.shape().rank == 2) {  // folded into one product: should_fold
    const Shape outer = a.shape();
    Tensor rows = reshape(std::move(a), flat(outer));
    const Dim columns = b.dim(1);
    Tensor y = product(rows, b, {}, columns, "mm");
    rows.reset();
    return unflatten(std::move(y), outer);
  }
  if (a.shape().rank == 3 && b.shape().rank == 3) return bmm(std::move(a), std::move(b));
  // ATen/native/LinearAlgebra.cpp _matmul_impl: expand, reshape to three dimensions (a clone where strides do not
  // allow a view), bmm.
  const Dim batch = a.dim(0), heads = a.dim(1), rows = a.dim(2), inner = a.dim(3), columns = b.dim(3);
  const Dim outer(batch.n() * heads.n());
  Tensor a3 = reshape(std::move(a), Shape{outer, rows, inner});
  if (b.size(0) != batch.n() || b.size(1) != heads.n()) b = expand(std::move(b), Shape{batch, heads, inner, columns});
  Tensor b3 = reshape(std::move(b), Shape{outer, inner, columns});
  Tensor y = bmm(std::move(a3), std::move(b3));
  return view(std::move(y), Shape{batch, heads, rows, columns});
}

Tensor baddbmm(Tensor input_in, Tensor a_in, Tensor b_in) {
  const Tensor b = lower_precision(std::move(b_in));
  const Tensor a = lower_precision(std::move(a_in));
  const Tensor input = lower_precision(std::move(input_in));
  Tape& t = a.tape();
  Node* n = t.record("baddbmm", baddbmm_backward, {&input, &a, &b});
  if (n != nullptr) {
    if (a.requires_grad()) t.save(n, b);
    if (b.requires_grad()) t.save(n, a);
  }
  Tensor out = t.allocate(Shape{a.dim(0), a.dim(1), b.dim(2)}, a.dtype(), "baddbmm");
  t.attach(n, out);
  return out;
}

}  // namespace tidemark
