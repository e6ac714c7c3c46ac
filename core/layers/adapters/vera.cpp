// VeRA: peft/tuners/vera/layer.py Linear.forward, model.py _find_dim; for packed bases peft/tuners/vera/bnb.py
// (peft 0.18). All modules use parts of one pair of random matrices, which nobody trains.
#include "core/layers/adapter.hpp"

namespace tidemark {
namespace {

Tensor behind(Net& net, const Net::Base& base, Tensor result_in, const Tensor& x_in) {
  Tensor result = std::move(result_in);
  Tape& t = net.tape;
  const Dim r(net.rank_of(base.name), Symbol::kRank);
  const Tensor scale_b = net.adapter_weight(base.name, "vera_lambda_b", Shape{base.out_features});
  const Tensor scale_d = net.adapter_weight(base.name, "vera_lambda_d", Shape{r});
  if (!x_in.defined()) return result;
  const Dtype dtype = result.dtype(), input_dtype = x_in.dtype();
  const bool convert = !base.quantised || !t.autocast();
  if (base.quantised && !net.quantised_to_int8()) result = clone(std::move(result));
  Tensor x = x_in;
  if (convert) x = to(std::move(x), scale_d.dtype());
  const Tensor a = t.part_of_buffer(Shape{r, base.in_features}, scale_d.dtype());
  const Tensor b = t.part_of_buffer(Shape{base.out_features, r}, scale_d.dtype());
  Tensor y = to(x, scale_d.dtype());
  y = dropout(std::move(y), net.job.adapter.lora_dropout);
  const Tensor kept = base.quantised ? y : Tensor();
  y = linear(std::move(y), a);
  y = mul(scale_d, std::move(y));
  y = linear(std::move(y), b);
  y = mul(scale_b, std::move(y));
  if (base.quantised && convert) y = to(std::move(y), dtype);
  result = add(std::move(result), std::move(y));
  return to(std::move(result), base.quantised ? x.dtype() : input_dtype);
}

void keep(Net& net) {
  const Bytes size = size_of(net.job.adapter.dtype) * net.job.adapter.r;
  net.tape.further_buffer("vera_A", size * net.treatments->widest_in, Category::kWeights);
  net.tape.further_buffer("vera_B", size * net.treatments->widest_out, Category::kWeights);
}

constexpr AdapterLayer kRows[] = {{AdapterKind::kVera, nullptr, behind, false, keep}};

}  // namespace

extern const AdapterLayerRows vera_rows;
const AdapterLayerRows vera_rows{kRows};

}  // namespace tidemark
