// Elementwise kernels: type promotion, output layout, and what each keeps for backward (derivatives.yaml).
#include "core/tape/ops.hpp"

#include "core/tape/ops/unary.hpp"

namespace tidemark {
namespace {

Dtype autocast_fp32(const Tensor& x) {
  return x.tape().autocast() && is_floating(x.dtype()) ? Dtype::kFp32 : x.dtype();
}

// mul_tensor_backward: grad * other, in the promoted dtype; the engine reduces and casts it afterwards.
void mul_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  // Saved in this order: self (when other needs a gradient), other (when self does); computed other first.
  int at = 0;
  const Tensor* self = n.needs(1) ? &n.saved_tensor(at++) : nullptr;
  const Tensor* other = n.needs(0) ? &n.saved_tensor(at++) : nullptr;
  if (self != nullptr) r[1] = t.allocate(elementwise_shape({&g[0], self}), promote(g[0], *self), "mul_backward");
  if (other != nullptr) r[0] = t.allocate(elementwise_shape({&g[0], other}), promote(g[0], *other), "mul_backward");
}

void div_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor& other = n.saved_tensor(n.needs(1) ? 1 : 0);
  if (n.needs(1)) {
    const Tensor& self = n.saved_tensor(0);
    // -grad * ((self / other) / other)
    Tensor negated = t.allocate(elementwise_shape({&g[0]}), g[0].dtype(), "div_backward");
    Tensor q = t.allocate(elementwise_shape({&self, &other}), promote(self, other), "div_backward");
    Tensor q2 = t.allocate(q.shape(), q.dtype(), "div_backward");
    r[1] = t.allocate(elementwise_shape({&g[0], &q2}), promote(g[0], q2), "div_backward");
  }
  if (n.needs(0)) r[0] = t.allocate(elementwise_shape({&g[0], &other}), promote(g[0], other), "div_backward");
}

void add_backward(Tape&, Node& n, Tensor* g, Tensor* r) {
  if (n.needs(0)) r[0] = g[0];
  if (n.input_count > 1 && n.needs(1)) r[1] = g[0];
}

void sub_backward(Tape&, Node& n, Tensor* g, Tensor* r) {
  if (n.needs(1)) r[1] = neg(g[0]);
  if (n.needs(0)) r[0] = g[0];
}

void scale_backward(Tape& t, Node&, Tensor* g, Tensor* r) {
  r[0] = t.allocate(elementwise_shape({&g[0]}), g[0].dtype(), "mul_backward");
}

// pow_backward: grad * (exponent * self.pow(exponent - 1)).
void pow_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor& self = n.saved_tensor(0);
  Tensor lower = t.allocate(elementwise_shape({&self}), self.dtype(), "pow_backward");
  Tensor scaled = t.allocate(lower.shape(), self.dtype(), "pow_backward");
  r[0] = t.allocate(elementwise_shape({&g[0], &scaled}), promote(g[0], scaled), "pow_backward");
}

// rsqrt: -0.5 * grad * result.pow(3)
void rsqrt_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor& result = n.saved_tensor(0);
  Tensor half = t.allocate(elementwise_shape({&g[0]}), g[0].dtype(), "rsqrt_backward");
  Tensor cube = t.allocate(elementwise_shape({&result}), result.dtype(), "rsqrt_backward");
  r[0] = t.allocate(elementwise_shape({&g[0], &result}), g[0].dtype(), "rsqrt_backward");
}

// FunctionsManual.cpp std_backward, var_backward: (2 / n · grad) · (self - mean).
void std_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor& self = n.saved_tensor(0);
  const Tensor variance = t.allocate(g[0].shape(), g[0].dtype(), "std_backward");
  const Tensor centred = t.allocate(elementwise_shape({&self}), self.dtype(), "std_backward");
  r[0] = t.allocate(centred.shape(), promote(variance, centred), "std_backward");
}

// One fused kernel from (grad, saved) to the input's gradient: silu, gelu, tanh, sigmoid, relu, dropout, softmax.
void fused_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = t.allocate(elementwise_shape({&g[0], &n.saved_tensor(0)}), g[0].dtype(), n.name);
}

void dropout_backward(Tape& t, Node&, Tensor* g, Tensor* r) {
  r[0] = t.allocate(elementwise_shape({&g[0]}), g[0].dtype(), "native_dropout_backward");
}

void masked_fill_backward(Tape& t, Node&, Tensor* g, Tensor* r) {
  r[0] = t.allocate(elementwise_shape({&g[0]}), g[0].dtype(), "masked_fill_backward");
}

void where_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  for (int i = 0; i < 2; ++i) {
    if (n.needs(i)) r[i] = t.allocate(elementwise_shape({&g[0]}), g[0].dtype(), "where_backward");
  }
}

// mean_backward: the expanded gradient divided by the count: a whole tensor.
void mean_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = zeros(t, n.input_shapes[0], g[0].dtype(), "mean_backward");
}

// sum_backward: the gradient expanded, a view.
void sum_backward(Tape&, Node& n, Tensor* g, Tensor* r) {
  r[0] = expand(unsqueeze(g[0], 1), n.input_shapes[0]);
}

}  // namespace

Tensor unary(Tensor x_in, const char* name, BackwardFn backward, bool save_input, bool save_output) {
  const Tensor x = std::move(x_in);
  Node* n = x.tape().record(name, backward, {&x});
  if (save_input) x.tape().save(n, x);
  Tensor out = x.tape().allocate(elementwise_shape({&x}), x.dtype(), name);
  x.tape().attach(n, out);
  if (save_output) x.tape().save(n, out);
  return out;
}

Dtype promote(const Tensor& a, const Tensor& b) {
  if (!b.defined() || a.dtype() == b.dtype()) return a.dtype();
  // A zero-dimensional tensor does not widen one that has dimensions.
  if (b.shape().rank == 0 && a.shape().rank > 0 && is_floating(a.dtype())) return a.dtype();
  if (a.shape().rank == 0 && b.shape().rank > 0 && is_floating(b.dtype())) return b.dtype();
  if (!is_floating(a.dtype())) return b.dtype();
  if (!is_floating(b.dtype())) return a.dtype();
  return Dtype::kFp32;
}

Shape elementwise_shape(std::initializer_list<const Tensor*> operands) {
  // Most calls: one contiguous operand, or two of the same sizes.
  const Tensor& leading = **operands.begin();
  if (leading.shape().is_contiguous()) {
    bool alike = true;
    for (const Tensor* t : operands) alike = alike && (t == &leading || t->shape().same_sizes(leading.shape()));
    if (alike) return leading.shape();
  }
  Shape s;
  for (const Tensor* t : operands) {
    if (t->shape().rank > s.rank) s.rank = t->shape().rank;
  }
  const Tensor* first = nullptr;  // whose stride order the output takes
  for (int i = 0; i < s.rank; ++i) s.dims[i] = Dim(1);
  for (const Tensor* t : operands) {
    const int offset = s.rank - t->shape().rank;
    for (int i = 0; i < t->shape().rank; ++i) {
      if (t->shape().dims[i].n() > s.dims[i + offset].n() ||
          (t->shape().dims[i].n() == s.dims[i + offset].n() && s.dims[i + offset].symbol() == Symbol::kNone)) {
        s.dims[i + offset] = t->shape().dims[i];
      }
    }
  }
  // Operands of full size decide the order; a broadcast one only when there is no other.
  const Count full = s.numel();
  for (const Tensor* t : operands) {
    if (t->numel() == full && t->shape().rank == s.rank) {
      bool broadcast = false;
      for (int i = 0; i < s.rank; ++i)
        broadcast = broadcast || (t->shape().strides[i] == 0 && t->shape().dims[i].n() != 1);
      if (broadcast) continue;
      first = t;
      break;
    }
  }
  if (first == nullptr || first->shape().is_contiguous()) {
    s.make_contiguous();
    return s;
  }
  int order[kMaxRank];
  first->shape().sorted_by_stride(order);
  Count step = 1;
  for (int k = s.rank - 1; k >= 0; --k) {
    s.strides[order[k]] = step;
    step *= s.dims[order[k]].n();
  }
  return s;
}

namespace {
Tensor binary(Tensor a_in, Tensor b_in, const char* name, BackwardFn backward, bool saves) {
  const Tensor a = std::move(a_in);
  const Tensor b = std::move(b_in);
  Tape& t = a.tape();
  Node* n = t.record(name, backward, {&a, &b});
  if (n != nullptr && saves) {
    if (b.requires_grad()) t.save(n, a);
    if (a.requires_grad()) t.save(n, b);
  }
  Tensor out = t.allocate(elementwise_shape({&a, &b}), promote(a, b), name);
  t.attach(n, out);
  return out;
}
}  // namespace

Tensor add(Tensor a, Tensor b) {
  return binary(std::move(a), std::move(b), "add", add_backward, false);
}
Tensor sub(Tensor a, Tensor b) {
  return binary(std::move(a), std::move(b), "sub", sub_backward, false);
}
Tensor mul(Tensor a, Tensor b) {
  return binary(std::move(a), std::move(b), "mul", mul_backward, true);
}

Tensor div(Tensor a_in, Tensor b_in) {
  const Tensor a = std::move(a_in);
  const Tensor b = std::move(b_in);
  Tape& t = a.tape();
  Node* n = t.record("div", div_backward, {&a, &b});
  if (b.requires_grad()) t.save(n, a);
  t.save(n, b);
  Tensor out = t.allocate(elementwise_shape({&a, &b}), promote(a, b), "div");
  t.attach(n, out);
  return out;
}

Tensor add_in_place(Tensor a_in, Tensor b_in) {
  Tensor a = std::move(a_in);
  const Tensor b = std::move(b_in);
  Node* n = a.tape().record("add_", add_backward, {&a, &b});
  Tensor out = a;
  out.leave_graph();
  a.tape().attach(n, out);
  return out;
}

Tensor scale_in_place(Tensor x_in) {
  Tensor x = std::move(x_in);
  Node* n = x.tape().record("mul_", scale_backward, {&x});
  x.leave_graph();
  x.tape().attach(n, x);
  return x;
}

Tensor add_scalar(Tensor x) {
  return unary(std::move(x), "add", add_backward, false, false);
}
Tensor mul_scalar(Tensor x) {
  return unary(std::move(x), "mul", scale_backward, false, false);
}
Tensor neg(Tensor x) {
  return unary(std::move(x), "neg", scale_backward, false, false);
}

Tensor power(Tensor x) {
  const Tensor argument = std::move(x);
  return unary(to(argument, autocast_fp32(argument)), "pow", pow_backward, true, false);
}
Tensor rsqrt(Tensor x) {
  const Tensor argument = std::move(x);
  return unary(to(argument, autocast_fp32(argument)), "rsqrt", rsqrt_backward, false, true);
}
Tensor sqrt(Tensor x) {
  return unary(std::move(x), "sqrt", fused_backward, false, true);
}
Tensor silu(Tensor x) {
  return unary(std::move(x), "silu", fused_backward, true, false);
}
Tensor gelu(Tensor x) {
  return unary(std::move(x), "gelu", fused_backward, true, false);
}
Tensor relu(Tensor x) {
  return unary(std::move(x), "relu", fused_backward, false, true);
}
Tensor tanh(Tensor x) {
  return unary(std::move(x), "tanh", fused_backward, false, true);
}
Tensor sigmoid(Tensor x) {
  return unary(std::move(x), "sigmoid", fused_backward, false, true);
}

Tensor dropout(Tensor x_in, double p) {
  if (p <= 0.0) return x_in;
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("native_dropout", dropout_backward, {&x});
  t.tell_saved();
  Tensor out = t.allocate(elementwise_shape({&x}), x.dtype(), "dropout");
  Tensor mask = t.allocate(elementwise_shape({&x}), Dtype::kBool, "dropout mask");
  t.attach(n, out);
  t.save(n, mask);
  return out;
}

// pytorch v2.6.0 aten/src/ATen/native/TensorAdvancedIndexing.cpp: a clone in MemoryFormat::Contiguous, filled in place.
Tensor masked_fill(Tensor x_in, Tensor mask_in) {
  const Tensor x = std::move(x_in);
  const Tensor mask = std::move(mask_in);
  Tape& t = x.tape();
  Node* n = t.record("masked_fill", masked_fill_backward, {&x});
  t.save(n, mask);
  Shape shape = elementwise_shape({&x, &mask});
  shape.make_contiguous();
  Tensor out = t.allocate(shape, x.dtype(), "masked_fill");
  t.attach(n, out);
  return out;
}

Tensor where(Tensor mask_in, Tensor x_in, Tensor other_in) {
  const Tensor mask = std::move(mask_in);
  const Tensor x = std::move(x_in);
  const Tensor other = std::move(other_in);
  Tape& t = x.tape();
  Node* n = t.record("where", where_backward, {&x, &other});
  t.save(n, mask);
  Tensor out = t.allocate(elementwise_shape({&mask, &x, &other}), promote(x, other), "where");
  t.attach(n, out);
  return out;
}

Tensor sum_rows(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Node* n = x.tape().record("sum", sum_backward, {&x});
  Tensor out = x.tape().allocate(Shape{x.dim(0), x.dim(2)}, x.dtype(), "sum");
  x.tape().attach(n, out);
  return out;
}

namespace {
Tensor reduce_last(const Tensor& x, const char* name, BackwardFn backward, bool saves) {
  Tape& t = x.tape();
  Node* n = t.record(name, backward, {&x});
  if (saves) t.save(n, x);
  Tensor out = t.allocate(x.shape().with_last(Dim(1)), x.dtype(), name);
  t.attach(n, out);
  if (saves) t.save(n, out);
  return out;
}
}  // namespace

Tensor mean_last(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return reduce_last(x, "mean", mean_backward, false);
}

Tensor std_last(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return reduce_last(x, "std", std_backward, true);
}

}  // namespace tidemark
