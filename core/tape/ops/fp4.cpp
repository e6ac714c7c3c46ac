// torchao 0.18 prototype/qat/{mx,nvfp4}.py and prototype/mx_formats/{mx_tensor,nvfp4_tensor,kernels}.py,
// prototype/custom_fp_utils.py, as they run without torch.compile. Of what is there at a time the most is allocated.
#include "core/tape/fp4_ops.hpp"

#include "core/units/fp4_blocks.hpp"

namespace tidemark {
namespace {

/// A tensor in 4 bits, and the scales of its blocks.
struct Narrow {
  Tensor bits, scale;
};

// to_mx and to_nvfp4: the largest magnitude of each block, scaled numbers, and _f32_to_floatx_unpacked.
Narrow narrowed(Tape& t, const Shape& shape, Dtype dtype, Fp4 format) {
  const Count numbers = shape.numel(), blocks = numbers / (format == Fp4::kMx ? kMxBlock : kNvBlock);
  const Bytes wide = numbers * size_of(Dtype::kFp32), scales = blocks * size_of(Dtype::kFp32);
  Narrow made;
  made.scale = t.allocate(Shape{Dim(blocks)}, Dtype::kUint8, "scale");
  Tensor copy;
  if (dtype != Dtype::kFp32) copy = t.allocate(shape, Dtype::kFp32, "_to_copy");
  const Tensor scaled = t.allocate(shape, Dtype::kFp32, "clamp");
  // Of NVFP4's scales five copies, of MXFP4's one.
  t.scratch({{format == Fp4::kMx ? scales : 5 * scales, "amax"},
             {wide, "sign"},
             {wide, "bitwise_xor"},
             {3 * numbers, "saturate_mask, denormal_mask, normal_mask"},
             {numbers, "denormal_x"},
             {wide, "mant_odd"},
             {wide, "normal_x"},
             {numbers, "normal_x"}});
  made.bits = t.allocate(Shape{Dim(numbers / 2)}, Dtype::kUint8, "pack_uint4");
  return made;
}

// dequantize: unpack_uint4, _floatx_unpacked_to_f32.
Tensor widened(Tape& t, const Shape& shape, Dtype dtype) {
  const Count numbers = shape.numel();
  const Bytes wide = numbers * size_of(Dtype::kFp32);
  const Tensor bits = t.allocate(shape, Dtype::kUint8, "unpack_uint4");
  const Tensor value = t.allocate(shape, Dtype::kFp32, "bitwise_or");
  t.scratch({{2 * numbers, "sign, bitwise_xor"},
             {2 * numbers, "zero_mask, denormal_mask"},
             {numbers, "exp_biased_lp"},
             {wide, "exp_biased_f32"},
             {wide, "mantissa_lp_int32"},
             {wide, "mantissa_f32"},
             {wide, "result"},
             {wide, "sign_f32"}});
  return t.allocate(shape, dtype, "dequantize");
}

// Python's names hold both wide copies until it returns.
void backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor rows = lower_precision(reshape(g[0], flat(g[0].shape())));
  const Shape input = flat(n.input_shapes[0]), weight = n.input_shapes[1];
  const Tensor x = widened(t, input, n.input_dtypes[0]);
  const Tensor w = widened(t, weight, n.input_dtypes[1]);
  Tensor made_input, made;
  {
    const Tensor narrow = lower_precision(w);
    made_input = t.allocate(input, rows.dtype(), "mm (input gradient)");
  }
  {
    const Tensor narrow = lower_precision(x);
    made = t.allocate(weight, rows.dtype(), "mm (weight gradient)");
  }
  if (n.needs(0)) r[0] = view(std::move(made_input), n.input_shapes[0]);
  if (n.needs(1)) r[1] = std::move(made);
}

// _addmm_mx_dispatch, emulated: both are widened first. _addmm_nvfp4_dispatch: the tensors' own scales behind the
// product, then the bias.
Tensor product(Tape& t, const Tensor& x, const Tensor& weight, const Tensor& bias, Fp4 format) {
  const Shape rows = flat(x.shape()), out{rows.dim(0), weight.dim(0)};
  if (format == Fp4::kMx) {
    const Tensor wide_x = lower_precision(widened(t, rows, x.dtype()));
    const Tensor wide_weight = lower_precision(widened(t, weight.shape(), weight.dtype()));
    return t.allocate(out, wide_x.dtype(), bias.defined() ? "addmm" : "mm");
  }
  Tensor made = t.allocate(out, x.dtype(), "_scaled_mm");
  made = t.allocate(out, x.dtype(), "mul");
  if (bias.defined()) made = t.allocate(out, x.dtype(), "add");
  return made;
}

}  // namespace

Tensor fp4_linear(Tensor x_in, Tensor weight_in, Tensor bias_in, Fp4 format) {
  const Tensor x = std::move(x_in), weight = std::move(weight_in), bias = std::move(bias_in);
  Tape& t = x.tape();
  Node* n = t.record("fp4_linear", backward, {&x, &weight});
  const Narrow rows = narrowed(t, flat(x.shape()), x.dtype(), format);
  const Narrow columns = narrowed(t, weight.shape(), weight.dtype(), format);
  t.save(n, rows.bits);
  t.save(n, rows.scale);
  t.save(n, columns.bits);
  t.save(n, columns.scale);
  Tensor out = product(t, x, weight, bias, format);
  out = view(std::move(out), x.shape().with_last(weight.dim(0)));
  t.attach(n, out);
  return out;
}

}  // namespace tidemark
