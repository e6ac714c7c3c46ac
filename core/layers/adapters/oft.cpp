// OFT and BOFT: peft/tuners/oft/layer.py OFTRotationModule.forward, Linear.forward, for packed bases
// peft/tuners/oft/bnb.py; peft/tuners/boft/layer.py Linear.forward (peft 0.18 to 0.21).
#include <array>

#include "core/layers/adapter.hpp"
#include "core/tape/adapter_ops.hpp"

namespace tidemark {
namespace {

constexpr Bytes kIndex = 8;  // int64

// adjust_oft_parameters: the nearest divisor.
Count fitting(Count features, Count wanted) {
  if (wanted >= features) return features;
  Count higher = wanted, lower = wanted;
  while (higher <= features && features % higher != 0) ++higher;
  while (lower > 1 && features % lower != 0) --lower;
  return wanted - lower <= higher - wanted ? lower : higher;
}

/// The blocks of a module's inputs.
struct Blocks {
  Count number = 0;
  Count size = 0;
};

// OFTLayer.update_layer
Blocks blocks_of(const Adapter& adapter, Count features) {
  if (adapter.block_size > 0) {
    const Count size = fitting(features, adapter.block_size);
    return {features / size, size};
  }
  const Count number = fitting(features, adapter.r);
  return {number, features / number};
}

// _pytorch_skew_symmetric
Tensor skew_symmetric(const Tensor& weight, Dim size) {
  const Tensor matrix = upper_triangle(weight, size);
  return sub(matrix, transpose(matrix, 1, 2));
}

// _cayley_batch, as a series
Tensor cayley_series(const Tensor& weight, Dim size, Count terms) {
  const Tensor skew = skew_symmetric(weight, size);
  Tensor turned;
  {
    const Tensor eye = weight.tape().allocate(Shape{size, size}, weight.dtype(), "eye");
    turned = weight.tape().allocate(skew.shape(), weight.dtype(), "repeat");
  }
  if (terms <= 1) return turned;
  turned = add_scaled_in_place(std::move(turned), skew);
  if (terms == 2) return turned;
  Tensor power = matmul(skew, skew);
  turned = add_scaled_in_place(std::move(turned), power);
  for (Count i = 3; i < terms - 1; ++i) {
    power = matmul(std::move(power), skew);
    turned = add_scaled_in_place(std::move(turned), power);
  }
  power = matmul(std::move(power), skew);
  return add_in_place(std::move(turned), std::move(power));
}

// _cayley_batch, by a solver; BOFT halves the difference.
Tensor cayley(Tensor skew_in, Dim size) {
  const Tensor skew = std::move(skew_in);
  const Tensor eye = skew.tape().allocate(Shape{size, size}, Dtype::kFp32, "eye");
  const Tensor one = expand(unsqueeze(eye, 0), skew.shape());
  Tensor left = add(one, skew);
  Tensor right = sub(one, skew);
  return solve(std::move(left), std::move(right));
}

// peft/tuners/oft/gptq.py, awq.py: the former casts the product in the place of what was turned.
bool is_by_gptq(const TrainingJob& job) {
  const QuantType type = job.quantization.quant_type;
  return type == QuantType::kGptq || (type == QuantType::kAwq && job.framework.at_least(5, 0));
}

AdapterInput turn(Net& net, const Net::Base& base, const Tensor& x_in) {
  Tape& t = net.tape;
  const Adapter& adapter = net.job.adapter;
  const Blocks blocks = blocks_of(adapter, base.in_features.n());
  const Count elements = blocks.size * (blocks.size - 1) / 2;
  const Dim number(blocks.number), size(blocks.size);
  const Tensor weight =
      net.adapter_weight(base.name, "oft_R.weight", Shape{adapter.block_share ? Dim(1) : number, Dim(elements)});
  t.buffer("rows", elements * kIndex, Category::kWeights);
  t.buffer("cols", elements * kIndex, Category::kWeights);
  if (!x_in.defined()) return {};
  const bool convert = !base.quantised || !t.autocast();
  const Dtype outer_dtype = x_in.dtype();
  AdapterInput in{x_in, {}};
  if (convert) in.x = to(std::move(in.x), weight.dtype());
  {
    const Tensor argument = std::move(in.x);
    const Tensor x = to(argument, weight.dtype());
    Tensor turned = adapter.use_cayley_neumann ? cayley_series(weight, size, adapter.num_cayley_neumann_terms)
                                               : cayley(skew_symmetric(weight, size), size);
    const Shape outer = x.shape();
    const Tensor by_block = reshape(x, Shape{flat(outer).dims[0], number, size});
    if (adapter.block_share) turned = repeat_rows(std::move(turned), number);
    Tensor y = matmul(permute(by_block, {1, 0, 2}), turned);
    y = permute(std::move(y), {1, 0, 2});
    const Tensor rotated = reshape(y, outer);
    in.x = to(rotated, argument.dtype());
  }
  in.kept = in.x;
  if (convert && !(base.quantised && is_by_gptq(net.job))) in.x = to(std::move(in.x), outer_dtype);
  if (base.quantised) in.kept = in.x;
  return in;
}

Tensor turned(Net& net, const Net::Base& base, Tensor result, const Tensor& x) {
  const bool convert = x.defined() && (!base.quantised || (is_by_gptq(net.job) && !net.tape.autocast()));
  return convert ? to(std::move(result), x.dtype()) : result;
}

/// What turns the inputs, [in, in], and what scales the outputs, [out, 1]; and the names that PEFT's function keeps.
struct Butterfly {
  Tensor rotation;
  Tensor scale;
  std::array<Tensor, 5> kept;
};

// Without its CUDA extension PEFT takes one butterfly factor: the permutation is the identity, as a matrix.
Butterfly butterfly(Net& net, const Net::Base& base, const Tensor& blocks, const Tensor& scale, Dtype dtype) {
  Tape& t = net.tape;
  const Shape square{base.in_features, base.in_features};
  Tensor rotation = t.allocate(square, dtype, "eye");
  Tensor scaled = t.allocate(Shape{base.out_features, Dim(1)}, dtype, "ones");
  const Dim size = blocks.dim(-1);
  Tensor turned;
  {
    Tensor skew = sub(blocks, transpose(blocks, 1, 2));
    skew = mul_scalar(std::move(skew));
    turned = cayley(std::move(skew), size);
  }
  Tensor diagonal = block_diagonal(turned, base.in_features);
  const Tensor permutation = to(t.part_of_buffer(square, Dtype::kFp32), dtype);
  diagonal = to(std::move(diagonal), dtype);
  const Shape one{Dim(1), base.in_features, base.in_features};
  const Tensor wide = view(std::move(diagonal), one);
  Tensor matrices = matmul(wide, transpose(view(permutation, one), 1, 2));
  matrices = matmul(view(permutation, one), std::move(matrices));
  const Tensor matrix = view(matrices, square);
  rotation = matmul(matrix, std::move(rotation));
  scaled = mul(scale, std::move(scaled));
  return {std::move(rotation), std::move(scaled), {turned, wide, permutation, std::move(matrices), matrix}};
}

// peft 0.18, 0.19: the weight turns.
Tensor through_turned_weight(const Net::Base& base, Butterfly by, const Tensor& x_in) {
  const Dtype dtype = x_in.dtype();
  const Tensor x = to(x_in, base.weight.dtype());
  by.rotation = to(std::move(by.rotation), dtype);
  const Tensor plain = to(transpose(detach(base.weight), 0, 1), dtype);
  Tensor rotated = matmul(by.rotation, plain);
  rotated = transpose(std::move(rotated), 0, 1);
  Tensor result = mul(rotated, by.scale);
  result = to(std::move(result), dtype);
  result = linear(x, result, base.bias);
  return to(std::move(result), dtype);
}

// peft 0.20: the input turns, and the output is scaled without its bias.
Tensor through_turned_input(const Net::Base& base, Butterfly by, const Tensor& x) {
  const Dtype dtype = x.dtype();
  by.rotation = to(std::move(by.rotation), dtype);
  const Tensor rotated = matmul(x, by.rotation);
  Tensor result = linear(rotated, base.weight, base.bias);
  if (base.bias.defined()) result = sub(result, base.bias);
  result = mul(result, view(by.scale, Shape{base.out_features}));
  if (base.bias.defined()) result = add(result, base.bias);
  return to(std::move(result), dtype);
}

Tensor turn_by_butterfly(Net& net, const Net::Base& base, Tensor result, const Tensor& x) {
  const Adapter& adapter = net.job.adapter;
  const Count features = base.in_features.n();
  const Dim number(adapter.block_size > 0 ? features / adapter.block_size : adapter.block_num);
  const Dim size(features / number.n());
  const Tensor weight = net.adapter_weight(base.name, "boft_R", Shape{Dim(1), number, size, size});
  const Tensor scale = net.adapter_weight(base.name, "boft_s", Shape{base.out_features, Dim(1)});
  net.tape.buffer("boft_P", features * features * size_of(Dtype::kFp32), Category::kWeights);
  if (!x.defined()) return result;
  Butterfly by = butterfly(net, base, view(weight, Shape{number, size, size}), scale, x.dtype());
  if (net.job.framework.peft >= kPeftOfTurnedInputs) return through_turned_input(base, std::move(by), x);
  // peft 0.18 boft/layer.py: self.base_layer.bias = self.base_layer.bias.to(previous_dtype)
  if (base.bias.defined() && base.bias.dtype() != x.dtype()) net.tape.tell_mixed_dtypes();
  return through_turned_weight(base, std::move(by), x);
}

constexpr AdapterLayer kRows[] = {{AdapterKind::kOft, turn, turned},
                                  {AdapterKind::kBoft, nullptr, turn_by_butterfly, true}};

}  // namespace

extern const AdapterLayerRows oft_rows;
const AdapterLayerRows oft_rows{kRows};

}  // namespace tidemark
