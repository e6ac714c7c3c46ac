#include "core/state/packed_linear.hpp"

namespace tidemark {
namespace {

constexpr Count kWordBits = 32;
constexpr Count kWordBytes = 4;
constexpr Count kIndexBytes = 8;
constexpr Dtype kTwoBytes = Dtype::kFp16;  // int16, in which AutoGPTQ unpacks codes of 8 bits
// hqq 0.2.8 core/bitpack.py pack_3bit_32: ten codes in a word.
constexpr Count kCodesOfThree = 10;

Count parts_of(Count whole, Count part) {
  return (whole + part - 1) / part;
}

Count groups_of(const PackedLinear& layer, Count columns) {
  return layer.group_size > 0 ? parts_of(columns, layer.group_size) : 1;
}

Bytes words_of(Count codes, int bits) {
  return parts_of(codes * bits, kWordBits) * kWordBytes;
}

Tensor of_weight(Tape& t, Dim out_features, Dim in_features, Dtype dtype, const char* op) {
  Tensor w = t.allocate(Shape{in_features, out_features}, dtype, op);
  t.set_category(w, Category::kWorkspace);
  return w;
}

// -- GPTQ -----------------------------------------------------------------------------------------------------------

// gptqmodel 7.7 nn_modules/qlinear/torch.py TorchLinear, auto_gptq 0.7.1 qlinear_cuda_old.py and qlinear_cuda.py: the
// packed weight's shifts, which are a tensor of their own.
void add_gptq_parts(const PackedLinear& layer, Count rows, Count columns, QuantisedWeight& w) {
  const Count groups = groups_of(layer, columns);
  w.packed = words_of(columns, layer.bits) * rows;
  const Bytes shifts = layer.bits == 3 ? 36 * kWordBytes : kWordBits / layer.bits * kWordBytes;
  w.state[0] = {"qzeros", groups * words_of(rows, layer.bits)};
  w.state[1] = {"scales", groups * rows * size_of(layer.scales)};
  w.state[2] = {"g_idx", columns * kWordBytes};
  w.state[3] = {"wf", shifts};
}

// auto_gptq 0.7.1 qlinear_cuda_old.py QuantLinear.forward, and where columns name their groups qlinear_cuda.py's:
// PyTorch's own operations one by one, from words of 32 bits to the dtype of the scales.
Tensor unpacked_by_auto_gptq(Tape& t, Dim out_features, Dim in_features, const PackedLinear& layer) {
  const Dtype code = layer.bits == 8 ? kTwoBytes : Dtype::kInt8;
  const auto weight = [&](Dtype dtype, const char* op) { return of_weight(t, out_features, in_features, dtype, op); };
  Tensor shifted = weight(Dtype::kInt32, "bitwise_right_shift");
  Tensor codes = weight(code, "_to_copy");
  shifted.reset();
  codes = weight(code, "bitwise_and");
  if (!layer.desc_act) {
    const Tensor centred = weight(code, "sub");
    return weight(layer.scales, "mul");
  }
  Tensor scales;
  {
    t.scratch({{in_features.n() * kIndexBytes, "g_idx"}});
    scales = weight(layer.scales, "index");
  }
  Tensor zeros = weight(code, "index");
  const Tensor centred = weight(code, "sub");
  zeros.reset();
  return weight(layer.scales, "mul");
}

// gptqmodel 7.7 TorchLinear._forward_eager: dequantize_weight is compiled (TorchLinear.optimize) into one kernel that
// writes the weight and nothing else. Neither implementation has an autograd function: the product keeps the weight.
Tensor gptq_linear(const Tensor& x, Dim out_features, const PackedLinear& layer, Tensor bias_in) {
  Tape& t = x.tape();
  const Tensor bias = std::move(bias_in);
  const Dim in_features = x.dim(-1);
  const Tensor rows = reshape(x, flat(x.shape()));
  Tensor zeros, w, local;  // Python's names, which a function keeps until it returns
  if (layer.former) {
    const Shape groups{Dim(groups_of(layer, in_features.n())), out_features};
    const Dtype code = layer.bits == 8 ? kTwoBytes : Dtype::kInt8;
    t.scratch({{groups.numel() * kWordBytes, "bitwise_right_shift"}, {groups.numel() * size_of(code), "_to_copy"}});
    zeros = t.allocate(groups, code, "zeros");
    w = unpacked_by_auto_gptq(t, out_features, in_features, layer);
    local = w;
  } else {
    w = t.allocate(Shape{in_features, out_features}, layer.scales, "dequantised weight");
    w = to(std::move(w), x.dtype());
  }
  const Shape shape = x.shape().with_last(out_features);
  Tensor out = matmul(rows, std::move(w));
  if (layer.former) {
    out = to(std::move(out), x.dtype());
    out = view(std::move(out), shape);
    return bias.defined() ? add(std::move(out), bias) : out;
  }
  out = view(std::move(out), shape);
  if (!bias.defined()) return out;
  const Tensor added = to(bias, out.dtype());
  return add_to_view(std::move(out), added, false);
}

// -- AWQ ------------------------------------------------------------------------------------------------------------

// gptqmodel 7.7 nn_modules/qlinear/__init__.py AWQuantLinear, autoawq 0.2.9 WQLinear_GEMM.
void add_awq_parts(const PackedLinear& layer, Count rows, Count columns, QuantisedWeight& w) {
  const Count groups = groups_of(layer, columns);
  w.packed = columns * words_of(rows, layer.bits);
  w.state[0] = {"qzeros", groups * words_of(rows, layer.bits)};
  w.state[1] = {"scales", groups * rows * size_of(layer.scales)};
}

// gptqmodel 7.7 gemm_awq.py AwqGemmFn.backward, autoawq 0.2.9 gemm.py WQLinearMMFunction.backward: the latter repeats
// the weight for each sequence of the batch.
void awq_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  if (!n.needs(0)) return;
  const Tensor grad = std::move(g[0]);
  const Dim out_features(n.attributes[0]), in_features = n.input_shapes[0].dim(-1);
  Tensor w = of_weight(t, out_features, in_features, static_cast<Dtype>(n.attributes[1]), "dequantised weight");
  w = to(std::move(w), grad.dtype());
  Tensor repeated;
  if (n.attributes[2] != 0) {
    const Shape whole{n.input_shapes[0].dim(0), out_features, in_features};
    repeated = t.allocate(whole, grad.dtype(), "repeat");
  }
  Tensor made = t.allocate(n.input_shapes[0], grad.dtype(), "mm (input gradient)");
  w.reset();
  repeated.reset();
  r[0] = to(std::move(made), n.input_dtypes[0]);  // the engine's cast, behind the function
}

// A matrix of many rows is multiplied by the unpacked weight, one of few by a kernel that adds up eight partial
// products (gptqmodel_ext/awq/quantization/gemm_cuda_gen.cu gemm_forward_cuda: in fp32; AutoAWQ_kernels: in fp16).
Tensor awq_product(const Tensor& x, Dim out_features, const PackedLinear& layer) {
  Tape& t = x.tape();
  constexpr Count kDense = 1024, kSplits = 8;
  const Tensor rows = reshape(x, flat(x.shape()));
  const Count count = x.numel() / x.size(-1);
  if (t.above(count, layer.former ? kDense - 1 : kDense)) {
    Tensor w = of_weight(t, out_features, x.dim(-1), layer.former ? Dtype::kFp16 : x.dtype(), "dequantised weight");
    return matmul(rows, std::move(w));
  }
  const Dtype partial = layer.former ? x.dtype() : Dtype::kFp32;
  const Tensor parts = t.allocate(Shape{Dim(kSplits), rows.dim(0), out_features}, partial, "partial products");
  // AutoAWQ's kernel ends in Tensor.sum, which autocast has return fp32.
  const Dtype sum = layer.former && t.autocast() ? Dtype::kFp32 : x.dtype();
  return t.allocate(Shape{rows.dim(0), out_features}, sum, "gemm_forward");
}

Tensor awq_linear(const Tensor& argument, Dim out_features, const PackedLinear& layer, Tensor bias_in) {
  Tape& t = argument.tape();
  const Tensor bias = std::move(bias_in);
  const bool kept_half = is_half(argument.dtype()) && !layer.former;
  Tensor x = to(argument, kept_half ? argument.dtype() : Dtype::kFp16);
  if (!layer.former) x = contiguous(std::move(x));
  Node* n = t.record("AwqGemmFn", awq_backward, {&x});
  if (n != nullptr) {
    n->attributes[0] = out_features.n();
    n->attributes[1] = static_cast<Count>(x.dtype());
    n->attributes[2] = layer.former ? 1 : 0;
  }
  const Shape shape = x.shape().with_last(out_features);
  Tensor out = awq_product(detach(x), out_features, layer);
  if (bias.defined()) out = add(std::move(out), bias);
  out = view(std::move(out), shape);
  // save_for_backward takes hold when forward is through. gptqmodel keeps packed tensors alone, for which a checkpoint
  // runs the layer again all the same.
  t.save(n, layer.former ? x : t.part_of_buffer(Shape{out_features}, layer.scales));
  t.attach(n, out);
  return to(std::move(out), argument.dtype());
}

// -- HQQ ------------------------------------------------------------------------------------------------------------

Bytes hqq_codes(const PackedLinear& layer, Count elements) {
  if (layer.bits != 3) return elements * layer.bits / 8;
  const Count group = layer.group_size;
  return parts_of(elements / group, kCodesOfThree) * group * kWordBytes;
}

// hqq 0.2.8 core/quantize.py Quantizer.quantize: of each group a scale and a zero in the compute dtype.
void add_hqq_parts(const PackedLinear& layer, Count rows, Count columns, QuantisedWeight& w) {
  const Count elements = rows * columns;
  const Bytes one = parts_of(elements, layer.group_size) * size_of(layer.scales);
  w.packed = hqq_codes(layer, elements);
  w.state[0] = {"scale", one};
  w.state[1] = {"zero", one};
}

// Quantizer.dequantize: codes are unpacked piece by piece (core/bitpack.py: masked, shifted, copied), then two
// operations on all of them.
Tensor hqq_unpacked(Tape& t, Dim out_features, Dim in_features, const PackedLinear& layer) {
  const auto weight = [&](const char* op) { return of_weight(t, out_features, in_features, layer.scales, op); };
  Tensor codes;
  if (layer.bits == 3) {
    const Count rows = hqq_codes(layer, out_features.n() * in_features.n()) / kWordBytes / layer.group_size;
    codes = t.allocate(Shape{Dim(rows * kCodesOfThree), Dim(layer.group_size)}, layer.scales, "unpacked codes");
  } else {
    codes = weight("unpacked codes");
  }
  if (layer.bits != 8) {
    const Bytes piece = hqq_codes(layer, out_features.n() * in_features.n());
    t.scratch({{piece, "bitwise_and"}, {piece, "__rshift__"}});
  }
  const Tensor centred = weight("sub");
  return weight("mul");
}

PackedLinear hqq_layer_of(const Node& n) {
  PackedLinear layer{QuantType::kHqq};
  layer.bits = static_cast<int>(n.attributes[1]);
  layer.group_size = n.attributes[2];
  layer.scales = static_cast<Dtype>(n.attributes[3]);
  return layer;
}

void hqq_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  if (!n.needs(0)) return;
  Tensor w = hqq_unpacked(t, Dim(n.attributes[0]), n.input_shapes[0].dim(-1), hqq_layer_of(n));
  Tensor rows = reshape(g[0], flat(g[0].shape()));
  Tensor made = t.allocate(n.input_shapes[0], rows.dtype(), "mm (input gradient)");
  w.reset();
  r[0] = to(std::move(made), n.input_dtypes[0]);
}

// HQQMatmulNoCacheMul, the backend unless another is set: the weight is unpacked in forward and in backward. What it
// keeps is its input, of which backward asks nothing.
Tensor hqq_linear(const Tensor& x, Dim out_features, const PackedLinear& layer) {
  Tape& t = x.tape();
  Node* n = t.record("HQQMatmulNoCacheMul", hqq_backward, {&x});
  if (n != nullptr) {
    n->attributes[0] = out_features.n();
    n->attributes[1] = layer.bits;
    n->attributes[2] = layer.group_size;
    n->attributes[3] = static_cast<Count>(layer.scales);
  }
  Tensor out;
  {
    Tensor w = hqq_unpacked(t, out_features, x.dim(-1), layer);
    out = matmul(detach(x), std::move(w));
  }
  t.save(n, x);  // setup_context comes behind forward
  t.attach(n, out);
  return out;
}

// -- quanto ---------------------------------------------------------------------------------------------------------

// optimum-quanto 0.2.7 tensor/weights/qbytes.py WeightQBytesTensor: a byte an element, a scale for each row.
void add_quanto_parts(const PackedLinear& layer, Count rows, Count columns, QuantisedWeight& w) {
  w.packed = rows * columns;
  w.state[0] = {"_scale", rows * size_of(layer.scales)};
}

// tensor/function.py QuantizedLinearFunction.backward: the product's other operand is dequantised (qfallback).
void quanto_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  if (!n.needs(0)) return;
  const Tensor rows = reshape(g[0], flat(g[0].shape()));
  const Dtype scales = static_cast<Dtype>(n.attributes[1]);
  Tensor w = of_weight(t, Dim(n.attributes[0]), n.input_shapes[0].dim(-1), scales, "dequantize");
  Tensor made = t.allocate(n.input_shapes[0], rows.dtype(), "mm (input gradient)");
  w.reset();
  r[0] = to(std::move(made), n.input_dtypes[0]);
}

// WeightQBytesLinearFunction, library/qbytes_mm.py qbytes_mm: the weight in the dtype of its scales while it
// multiplies.
Tensor quanto_linear(const Tensor& x, Dim out_features, const PackedLinear& layer, Tensor bias_in) {
  Tape& t = x.tape();
  const Tensor bias = std::move(bias_in);
  Node* n = t.record("WeightQBytesLinearFunction", quanto_backward, {&x});
  if (n != nullptr) {
    n->attributes[0] = out_features.n();
    n->attributes[1] = static_cast<Count>(layer.scales);
  }
  Tensor out;
  {
    Tensor rows = to(reshape(detach(x), flat(x.shape())), layer.scales);
    Tensor w = of_weight(t, out_features, x.dim(-1), layer.scales, "output_scales * weights");
    out = matmul(std::move(rows), std::move(w));
  }
  out = view(std::move(out), x.shape().with_last(out_features));
  if (bias.defined()) out = add(std::move(out), detach(bias));
  t.save(n, x);
  t.attach(n, out);
  return out;
}

// -- torchao --------------------------------------------------------------------------------------------------------

// torchao 0.17 dtypes/affine_quantized_tensor.py from_hp_to_intx, uintx/plain_layout.py PlainAQTTensorImpl: zeros, of
// which a symmetric weight has no use, are there, too.
void add_torchao_parts(const PackedLinear& layer, Count rows, Count columns, QuantisedWeight& w) {
  w.packed = rows * columns;
  w.state[0] = {"scale", rows * size_of(layer.scales)};
  w.state[1] = {"zero_point", rows * kIndexBytes};
}

// uintx/plain_layout.py _linear_fp_act_int8_weight_impl: no autograd function, so that the product keeps the weight.
Tensor torchao_linear(const Tensor& x, Dim out_features, Tensor bias_in) {
  const Tensor bias = std::move(bias_in);
  Tensor rows = reshape(x, flat(x.shape()));
  Tensor w = x.tape().allocate(Shape{x.dim(-1), out_features}, x.dtype(), "_to_copy");
  Tensor out = matmul(std::move(rows), std::move(w));
  out = mul_scalar(std::move(out));
  out = view(std::move(out), x.shape().with_last(out_features));
  return bias.defined() ? add_to_view(std::move(out), to(bias, x.dtype()), false) : out;
}

// -- AQLM -----------------------------------------------------------------------------------------------------------

// aqlm 1.1.7 inference.py QuantizedLinear, of one codebook of 2^16 vectors of 8 weights.
void add_aqlm_parts(const PackedLinear& layer, Count rows, Count columns, QuantisedWeight& w) {
  constexpr Count kVector = 8, kCodeBytes = 2, kVectors = 65536;
  w.packed = rows * (columns / kVector) * kCodeBytes;
  w.state[0] = {"codebooks", kVectors * kVector * size_of(layer.scales)};
  w.state[1] = {"scales", rows * size_of(layer.scales)};
}

// inference_kernels/cuda_kernel.cpp code1x16_matmat_dequant_transposed
void aqlm_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  if (!n.needs(0)) return;
  const Dtype scales = static_cast<Dtype>(n.attributes[1]);
  const Tensor scaled = t.allocate(g[0].shape(), g[0].dtype(), "input * scales");
  const Tensor w = of_weight(t, Dim(n.attributes[0]), n.input_shapes[0].dim(-1), scales, "weight");
  r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "mm (input gradient)");
}

// code1x16_matmat_dequant, scale_bias_unflatten_output
Tensor aqlm_linear(const Tensor& x, Dim out_features, const PackedLinear& layer) {
  Tape& t = x.tape();
  Node* n = t.record("_QuantizedMatmul", aqlm_backward, {&x});
  if (n != nullptr) {
    n->attributes[0] = out_features.n();
    n->attributes[1] = static_cast<Count>(layer.scales);
  }
  Tensor out;
  {
    Tensor rows = reshape(detach(x), flat(x.shape()));
    Tensor w = of_weight(t, out_features, x.dim(-1), layer.scales, "weight");
    out = matmul(std::move(rows), w);
  }
  const Shape shape = x.shape().with_last(out_features);
  out = view(clone(std::move(out)), shape);
  t.save(n, x);
  t.attach(n, out);
  return out;
}

// -- EETQ -----------------------------------------------------------------------------------------------------------

// transformers 5.12 integrations/eetq.py EetqLinear, which is the package's own.
void add_eetq_parts(Count rows, Count columns, QuantisedWeight& w) {
  w.packed = rows * columns;
  w.state[0] = {"weight_scales", rows * size_of(kTwoBytes)};
}

// EetqLinearMMFunction.backward: the weight is what an identity matrix becomes. The gradient of more than one sequence
// gets a dimension too many, which the engine sums away.
void eetq_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  if (!n.needs(0)) return;
  const Dim out_features(n.attributes[0]), in_features = n.input_shapes[0].dim(-1);
  const Dtype dtype = n.input_dtypes[0];
  {
    Tensor wide = t.allocate(Shape{in_features, in_features}, Dtype::kFp32, "identity");
    const Tensor identity = to(std::move(wide), dtype);
    const Tensor w = of_weight(t, out_features, in_features, dtype, "w8_a16_gemm");
    r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "mm (input gradient)");
  }
  if (n.input_shapes[0].rank > 2 && n.input_shapes[0].size(0) > 1) r[0] = clone(std::move(r[0]));
}

Tensor eetq_linear(const Tensor& x, Dim out_features, Tensor bias_in) {
  Tape& t = x.tape();
  const Tensor bias = std::move(bias_in);
  Node* n = t.record("EetqLinearMMFunction", eetq_backward, {&x});
  if (n != nullptr) n->attributes[0] = out_features.n();
  Tensor out = t.allocate(x.shape().with_last(out_features), x.dtype(), "w8_a16_gemm");
  if (bias.defined()) out = add(std::move(out), detach(bias));
  t.save(n, x);
  t.attach(n, out);
  return out;
}

}  // namespace

QuantisedWeight packed_parts(const PackedLinear& layer, Count rows, Count columns) {
  QuantisedWeight w;
  if (layer.type == QuantType::kGptq) add_gptq_parts(layer, rows, columns, w);
  if (layer.type == QuantType::kAwq) add_awq_parts(layer, rows, columns, w);
  if (layer.type == QuantType::kHqq) add_hqq_parts(layer, rows, columns, w);
  if (layer.type == QuantType::kQuanto) add_quanto_parts(layer, rows, columns, w);
  if (layer.type == QuantType::kTorchao) add_torchao_parts(layer, rows, columns, w);
  if (layer.type == QuantType::kAqlm) add_aqlm_parts(layer, rows, columns, w);
  if (layer.type == QuantType::kEetq) add_eetq_parts(rows, columns, w);
  return w;
}

Tensor packed_linear(Tensor x_in, Dim out_features, const PackedLinear& layer, Tensor bias) {
  const Tensor x = std::move(x_in);
  if (layer.type == QuantType::kGptq) return gptq_linear(x, out_features, layer, std::move(bias));
  if (layer.type == QuantType::kAwq) return awq_linear(x, out_features, layer, std::move(bias));
  if (layer.type == QuantType::kQuanto) return quanto_linear(x, out_features, layer, std::move(bias));
  if (layer.type == QuantType::kTorchao) return torchao_linear(x, out_features, std::move(bias));
  if (layer.type == QuantType::kAqlm) return aqlm_linear(x, out_features, layer);
  if (layer.type == QuantType::kEetq) return eetq_linear(x, out_features, std::move(bias));
  return hqq_linear(x, out_features, layer);  // which adds a bias in place
}

}  // namespace tidemark
