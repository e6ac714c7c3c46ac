// torchao 0.18 float8/float8_linear.py matmul_with_hp_or_float8_args, as it runs without torch.compile.
#include "core/tape/float8_ops.hpp"

namespace tidemark {
namespace {

/// A tensor in 8 bits, and what it is scaled by.
struct Narrow {
  Tensor scale, bits;
};

constexpr bool kFastAccumulation = true;

Shape scales_of(const Shape& shape, int along, bool rowwise) {
  return rowwise ? Shape{shape.dim(along == 0 ? 1 : 0)} : Shape{};
}

// float8_utils.py tensor_to_scale and to_fp8_saturated, float8_training_tensor.py _ToFloat8ConstrFunc: the largest
// magnitude; then a wide copy, scaled, clamped and made narrow. `along`: the dimension that a scale is for.
Narrow narrowed(Tape& t, const Shape& shape, Dtype dtype, int along, bool rowwise) {
  Narrow made;
  const Shape scales = scales_of(shape, along, rowwise);
  {
    Tensor magnitudes = t.allocate(shape, dtype, "abs");
    const Tensor largest = t.allocate(scales, dtype, "amax");
    magnitudes.reset();
    const Bytes doubles = 2 * scales.numel() * size_of(Dtype::kFp32);
    t.scratch({{doubles, "amax (fp64)"}, {doubles, "clamp"}, {doubles, "max / amax"}});
    made.scale = t.allocate(scales, Dtype::kFp32, "scale");
  }
  Tensor wide;
  if (dtype != Dtype::kFp32) wide = t.allocate(shape, Dtype::kFp32, "tensor.to(float32)");
  const Tensor scaled = t.allocate(shape, Dtype::kFp32, "tensor_scaled");
  wide.reset();
  const Tensor clamped = t.allocate(shape, Dtype::kFp32, "clamp");
  made.bits = t.allocate(shape, Dtype::kFp8, "bits_fp8");
  return made;
}

// float8_ops.py addmm_float8_unwrapped: rows are scaled behind the product unless it accumulates fast, and its output
// is bf16 then.
Tensor scaled_product(Tape& t, const Shape& shape, Dtype dtype, bool rowwise, bool fast, const char* op) {
  Tensor factors;
  if (rowwise && !fast) factors = t.allocate(shape, Dtype::kFp32, "post_inverse_scale");
  Tensor out = t.allocate(shape, rowwise && dtype != Dtype::kBf16 ? Dtype::kBf16 : dtype, op);
  return to(std::move(out), dtype);
}

// Inputs of the node: 0 = x, 1 = the weight. Names of Python's backward hold every narrow copy until it returns.
void backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const bool rowwise = n.attributes[0] != 0;
  const Tensor rows = reshape(g[0], flat(g[0].shape()));
  const Dtype dtype = rows.dtype();
  const Shape input = flat(n.input_shapes[0]), weight = n.input_shapes[1];
  const Narrow gradient = narrowed(t, rows.shape(), dtype, 1, rowwise);
  const Narrow by_columns = narrowed(t, weight, n.input_dtypes[1], 0, rowwise);
  Tensor made_input;
  {
    const Tensor turned = t.allocate(weight, Dtype::kFp8, "b_data.t().contiguous().t()");
    made_input = scaled_product(t, input, dtype, rowwise, !kFastAccumulation, "_scaled_mm (input gradient)");
  }
  const Narrow again = narrowed(t, rows.shape(), dtype, 0, rowwise);
  const Narrow kept = narrowed(t, input, n.input_dtypes[0], 0, rowwise);
  Tensor made;
  {
    const Tensor turned = t.allocate(rows.shape(), Dtype::kFp8, "a_data.contiguous()");
    const Tensor other = t.allocate(input, Dtype::kFp8, "b_data.t().contiguous().t()");
    made = scaled_product(t, weight, dtype, rowwise, !kFastAccumulation, "_scaled_mm (weight gradient)");
  }
  if (n.needs(0)) r[0] = view(std::move(made_input), n.input_shapes[0]);
  if (!n.needs(1)) return;
  r[1] = std::move(made);
}

}  // namespace

Tensor float8_linear(Tensor x_in, Tensor weight_in, Tensor bias_in, bool rowwise) {
  Tape& t = x_in.tape();
  const Tensor x = t.autocast() ? to(std::move(x_in), *t.autocast()) : std::move(x_in);
  const Tensor weight = std::move(weight_in), bias = std::move(bias_in);
  Node* n = t.record("matmul_with_hp_or_float8_args", backward, {&x, &weight});
  if (n != nullptr) n->attributes[0] = rowwise ? 1 : 0;
  Tensor out;
  {
    const Shape rows = flat(x.shape());
    const Narrow a = narrowed(t, rows, x.dtype(), 1, rowwise);
    const Narrow b = narrowed(t, weight.shape(), weight.dtype(), 1, rowwise);
    out = scaled_product(t, Shape{rows.dim(0), weight.dim(0)}, x.dtype(), rowwise, kFastAccumulation, "_scaled_mm");
  }
  out = view(std::move(out), x.shape().with_last(weight.dim(0)));
  t.save(n, x);
  t.save(n, weight);
  t.attach(n, out);
  if (!bias.defined()) return out;
  const Tensor added = to(bias, out.dtype());
  return add(std::move(out), added);
}

}  // namespace tidemark
