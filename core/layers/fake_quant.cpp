// torchao 0.18 quantization/qat/{linear,embedding,fake_quantizer}.py and quantization/quant_primitives.py, operation by
// operation: autograd keeps of each what it needs. What is quantised how follows axolotl 067b021 utils/quantization.py
// _make_qat_config.
#include "core/layers/fake_quant.hpp"

#include <utility>

#include "core/tape/fp4_ops.hpp"
#include "core/tape/rounding_ops.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kInt8Rows =
    "torchao 0.18 quantization/qat/fake_quantizer.py: IntxFakeQuantizer._per_token_forward";
constexpr const char* kInt4 = "torchao 0.18 quantization/qat/fake_quantizer.py: Int4WeightFakeQuantizer.forward";
constexpr const char* kFloat8 = "torchao 0.18 quantization/qat/fake_quantizer.py: Float8FakeQuantizer.forward";

/// amax(dim=-1, keepdim=True), or amin.
Tensor extreme(Tensor x) {
  return unsqueeze(amax_last(std::move(x)), -1);
}

Tensor in_groups(const Tensor& weight, Count size) {
  return view(weight, Shape{weight.dim(0), Dim(weight.dim(1).n() / size), Dim(size)});
}

// _fake_quantize_affine: _quantize_affine_no_dtype_cast, _dequantize_affine_no_dtype_check. `zero`: the zero point as
// it is, then in the dtype that is computed in.
Tensor fake_affine(const Tensor& x, const Tensor& scale, const Tensor& inverse, const Tensor& zero,
                   const Tensor& narrow_zero) {
  Tensor q = mul(x, inverse);
  q = round(std::move(q));
  q = add(std::move(q), zero);
  q = clamp(std::move(q));
  Tensor out = q.dtype() == x.dtype() ? clone(q) : to(q, x.dtype());
  out = sub(std::move(out), narrow_zero);
  out = mul(std::move(out), scale);
  return to(std::move(out), x.dtype());
}

// int8, a scale and a zero point for each token, which choose_qparams_affine makes without a gradient. They stay on the
// module.
Tensor int8_rows(Net& net, Tensor x_in) {
  Scope in(net.tape, "", kInt8Rows);
  const Tensor x = std::move(x_in);
  Tape& t = net.tape;
  const Shape rows = x.shape().with_last(Dim(1));
  const Tensor scale = t.allocate(rows, Dtype::kFp32, "scale"), zero = t.allocate(rows, Dtype::kFp32, "zero_point");
  const Tensor inverse = t.allocate(rows, Dtype::kFp32, "1.0 / scale");
  const Tensor narrow_zero = to(zero, x.dtype());
  return fake_affine(x, scale, inverse, zero, narrow_zero);
}

// _bf16_activations_forward
Tensor int4_groups(Net& net, const Tensor& weight) {
  Scope in(net.tape, "", kInt4);
  const Tensor groups = in_groups(to(weight, Dtype::kFp32), net.job.qat.group_size);
  const Tensor most = extreme(groups), least = extreme(groups);
  const Tensor scale = mul_scalar(clamp(sub(most, least)));
  const Tensor zero = add(least, mul_scalar(scale));
  Tensor out = sub(groups, least);
  out = div(std::move(out), scale);
  out = round(std::move(out));
  out = clamp(std::move(out));
  out = add_scalar(std::move(out));
  out = mul(std::move(out), scale);
  out = add(std::move(out), zero);
  out = view(std::move(out), weight.shape());
  return to(std::move(out), weight.dtype());
}

// _choose_scale_float8, a scale for each row.
Tensor scale_of_rows(const Tensor& x, bool bounded) {
  Tensor most = extreme(abs(x));
  if (bounded) most = clamp(std::move(most));
  return to(mul_scalar(std::move(most)), Dtype::kFp32);
}

// _quantize_affine_float8 and back.
Tensor through_float8(const Tensor& x, const Tensor& scale) {
  Tensor narrow;
  {
    const Tensor wide = to(x, Dtype::kFp32);
    const Tensor scaled = div(wide, scale);
    const Tensor clamped = clamp(scaled);
    narrow = to(clamped, Dtype::kFp8);
  }
  const Tensor wide = to(narrow, Dtype::kFp32);
  Tensor out = mul(wide, scale);
  return to(std::move(out), x.dtype());
}

Tensor float8_rows(Net& net, const Tensor& x, bool bounded) {
  Scope in(net.tape, "", kFloat8);
  const Tensor scale = scale_of_rows(x, bounded);
  return through_float8(x, scale);
}

// _fp8_activations_forward: to 8-bit floats by rows, then to int4 by groups.
Tensor int4_of_float8(Net& net, const Tensor& weight) {
  Scope in(net.tape, "", kInt4);
  const Tensor rows = scale_of_rows(weight, true);
  const Tensor through = through_float8(weight, rows);
  const Tensor groups = in_groups(through, net.job.qat.group_size);
  const Tensor scale = unsqueeze(clamp(mul_scalar(amax_last(abs(groups)))), -1);
  const Tensor zero = net.tape.allocate(scale.shape(), scale.dtype(), "zeros_like");
  const Tensor inverse = mul_scalar(reciprocal(scale));
  return view(fake_affine(groups, scale, inverse, zero, zero), weight.shape());
}

Tensor rounded_weight(Net& net, const Tensor& weight, bool has_int8_inputs) {
  if (net.job.qat.weights == FakeQuant::kFloat8) return float8_rows(net, weight, false);
  return has_int8_inputs ? int4_groups(net, weight) : int4_of_float8(net, weight);
}

}  // namespace

Tensor fake_quantised_linear(Net& net, Tensor x, Tensor weight, Tensor bias) {
  const Qat& how = net.job.qat;
  if (!how.is_used()) return linear(std::move(x), std::move(weight), std::move(bias));
  if (how.weights == FakeQuant::kMxfp4 || how.weights == FakeQuant::kNvfp4) {
    const Fp4 format = how.weights == FakeQuant::kMxfp4 ? Fp4::kMx : Fp4::kNv;
    return fp4_linear(std::move(x), std::move(weight), std::move(bias), format);
  }
  if (how.activations == FakeQuant::kInt8) {
    x = int8_rows(net, std::move(x));
  } else if (how.activations == FakeQuant::kFloat8) {
    x = float8_rows(net, x, false);
  }
  const Tensor rounded = rounded_weight(net, weight, how.activations == FakeQuant::kInt8);
  return linear(std::move(x), rounded, std::move(bias));
}

Tensor fake_quantised_table(Net& net, Tensor weight) {
  const Qat& how = net.job.qat;
  return how.is_used() && how.embeddings ? rounded_weight(net, weight, false) : weight;
}

}  // namespace tidemark
