#include "core/state/quantised_weight.hpp"

namespace tidemark {
namespace {

// bitsandbytes functional.py: 16 fp32 values of the NF4/FP4 code, 256 of the 8-bit code for the scales.
constexpr Bytes kCodeBytes = 16 * 4;
constexpr Bytes kNestedCodeBytes = 256 * 4;
// functional.py quantize_4bit with compress_statistics: the scales are quantised in blocks of 256.
constexpr Count kNestedBlock = 256;

Tensor dequantise(Tape& t, Dim out_features, Dim in_features, Count blocks, bool double_quant, Dtype dtype) {
  Tensor absmax;
  if (double_quant) absmax = t.allocate(Shape{Dim(blocks)}, Dtype::kFp32, "dequantised scales");
  return t.allocate(Shape{out_features, in_features}, dtype, "dequantised weight");
}

// F.dequantize_4bit(B, state).to(A.dtype)
Tensor unpack(Tape& t, Dim out_features, Dim in_features, const Count* blocks, Dtype through, Dtype dtype) {
  const Tensor w = dequantise(t, out_features, in_features, blocks[0], blocks[1] != 0, through);
  t.set_category(w, Category::kWorkspace);
  if (through == dtype) return w;
  Tensor converted = t.allocate(w.shape(), dtype, "dequantised weight (converted)");
  t.set_category(converted, Category::kWorkspace);
  return converted;
}

void backward_4bit(Tape& t, Node& n, Tensor* g, Tensor* r) {
  if (t.placement() != nullptr) t.placement()->backward_reads(static_cast<std::int32_t>(n.attributes[4]));
  if (!n.needs(0)) return;
  const Dtype through = n.attributes[3] != 0 ? static_cast<Dtype>(n.attributes[3] - 1) : g[0].dtype();
  const Tensor w = unpack(t, Dim(n.attributes[0]), n.input_shapes[0].dim(-1), n.attributes + 1, through, g[0].dtype());
  Tensor rows = reshape(g[0], Shape{Dim(g[0].numel() / g[0].size(-1)), g[0].dim(-1)});
  r[0] = t.allocate(n.input_shapes[0], g[0].dtype(), "mm (input gradient)");
}

}  // namespace

QuantisedWeight quantised_weight(const Quantization& q, Count rows, Count columns) {
  QuantisedWeight w;
  const Count elements = rows * columns;
  if (q.quant_type == QuantType::kInt8) {
    w.packed = elements;
    w.state[0] = {"SCB", rows * size_of(Dtype::kFp32)};
    return w;
  }
  w.packed = (elements + 1) / 2;
  w.block_count = (elements + q.group_size - 1) / q.group_size;
  w.double_quant = q.double_quant;
  w.state[0] = {"quant_state.code", kCodeBytes};
  if (q.double_quant) {
    w.state[1] = {"quant_state.absmax", w.block_count};
    w.state[2] = {"quant_state.state2.absmax", (w.block_count + kNestedBlock - 1) / kNestedBlock * 4};
    w.state[3] = {"quant_state.state2.code", kNestedCodeBytes};
    w.state[4] = {"quant_state.offset", 4};
  } else {
    w.state[1] = {"quant_state.absmax", w.block_count * 4};
  }
  return w;
}

Tensor dequantised_weight(Tape& t, Dim out_features, Dim in_features, const QuantisedWeight& weight, Dtype dtype) {
  return dequantise(t, out_features, in_features, weight.block_count, weight.double_quant, dtype);
}

Tensor dequantised_linear(Tensor x_in, Dim out_features, const QuantisedWeight& weight, Tensor bias_in,
                          const Unpacking& unpacking) {
  const Tensor x = std::move(x_in);
  Tensor bias = std::move(bias_in);
  Tape& t = x.tape();
  Node* n = t.record("MatMul4Bit", backward_4bit, {&x});
  const Count blocks[] = {weight.block_count, weight.double_quant ? 1 : 0};
  if (n != nullptr && !t.stopped()) {
    n->attributes[0] = out_features.n();
    n->attributes[1] = blocks[0];
    n->attributes[2] = blocks[1];
    n->attributes[3] = unpacking.through ? static_cast<Count>(*unpacking.through) + 1 : 0;
    n->attributes[4] = weight.storage;
  }
  // ctx.tensors = (None, B): a view of the codes, out of checkpointing's sight.
  if (t.placement() != nullptr) {
    const Tensor codes = t.placement()->gathered(weight.storage);
    if (codes.defined()) t.hold(n, codes);
  }
  if (unpacking.keeps_input) t.hold(n, x);
  const Dtype through = unpacking.in_backward_alone ? x.dtype() : unpacking.through.value_or(x.dtype());
  const Tensor w = unpack(t, out_features, x.dim(-1), blocks, through, x.dtype());
  Tensor b;
  if (bias.defined() && bias.dtype() != x.dtype()) b = t.allocate(bias.shape(), x.dtype(), "bias cast");
  // at::linear folds rows into a matrix, by a copy where they do not lie one behind another.
  Tensor rows;
  if (x.shape().rank > 2 && !x.shape().is_contiguous()) rows = t.allocate(x.shape().contiguous(), x.dtype(), "clone");
  Tensor out = t.allocate(x.shape().with_last(out_features), x.dtype(), "mm");
  t.attach(n, out);
  return out;
}

}  // namespace tidemark
