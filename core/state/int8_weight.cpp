#include "core/state/int8_weight.hpp"

namespace tidemark {
namespace {

/// A tensor's rows as int8 and an fp32 scale for each.
struct QuantisedRows {
  Tensor scales;
  Tensor codes;
};

// bitsandbytes 0.50 backends/cuda/ops.py int8_vectorwise_quant. transformers asks for outliers (llm_int8_threshold is
// 6.0); which columns have some is data, and we take it that none has.
QuantisedRows quantised_rows(const Tensor& rows) {
  Tape& t = rows.tape();
  const Tensor half = to(rows, Dtype::kFp16);
  QuantisedRows q;
  q.scales = t.allocate(Shape{rows.dim(0)}, Dtype::kFp32, "row scales");
  q.codes = t.allocate(rows.shape(), Dtype::kInt8, "int8 codes");
  Tensor magnitudes = t.allocate(rows.shape(), Dtype::kFp16, "abs");
  const Tensor outliers = t.allocate(rows.shape(), Dtype::kBool, "outliers");
  return q;
}

// backends/default/ops.py int8_scaled_mm: products in int32, then in fp16 (the kernel of backends/cuda/ops.py
// int8_mm_dequant knows no other), then in the input's dtype. A bias is added in place.
Tensor scaled_product(const Tensor& rows, Dim out_features, Dtype dtype) {
  Tape& t = rows.tape();
  const QuantisedRows quantised = quantised_rows(rows);
  const Shape shape{rows.dim(0), out_features};
  const Tensor sums = t.allocate(shape, Dtype::kInt32, "int8 products");
  Tensor half = t.allocate(shape, Dtype::kFp16, "dequantised products");
  return to(std::move(half), dtype);
}

void backward_int8(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Dim out_features(n.attributes[0]), in_features = n.input_shapes[0].dim(-1);
  Tensor rows = reshape(g[0], flat(g[0].shape()));
  rows = contiguous(std::move(rows));
  const Tensor weight = t.allocate(Shape{out_features, in_features}, n.input_dtypes[0], "dequantised weight");
  t.set_category(weight, Category::kWorkspace);
  t.scratch({{out_features.n() * size_of(Dtype::kFp32), "row factors"}});
  r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "mm (input gradient)");
}

}  // namespace

Tensor int8_linear(Tensor x_in, Dim out_features) {
  const Tensor x = std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("MatMul8bitLt", backward_int8, {&x});
  if (n != nullptr) n->attributes[0] = out_features.n();
  const Tensor rows = reshape(detach(x), flat(x.shape()));
  Tensor out = scaled_product(rows, out_features, x.dtype());
  t.hold(n, rows);
  out = view(std::move(out), x.shape().with_last(out_features));
  t.attach(n, out);
  return out;
}

Tensor dequantised_int8_weight(Tape& t, Dim out_features, Dim in_features) {
  const Shape whole{out_features, in_features};
  const Tensor scaled = t.allocate(whole, Dtype::kFp32, "codes by row scales");
  return t.allocate(whole, Dtype::kFp32, "dequantised weight");
}

}  // namespace tidemark
