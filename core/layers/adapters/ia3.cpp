// IA3: peft/tuners/ia3/layer.py Linear.forward; for packed bases peft/tuners/ia3/bnb.py (peft 0.18).
#include "core/layers/adapter.hpp"

namespace tidemark {
namespace {

bool is_feedforward(const Net& net, const Net::Base& base) {
  const Treatment* how = net.treatment(base.name);
  return how != nullptr && how->feedforward;
}

Tensor vector(Net& net, const Net::Base& base, bool feedforward) {
  return feedforward ? net.adapter_weight(base.name, "ia3_l", Shape{Dim(1), base.in_features})
                     : net.adapter_weight(base.name, "ia3_l", Shape{base.out_features, Dim(1)});
}

// `ia3_scaling *= self.ia3_l[...].flatten()`, from 1
Tensor scaling(Tensor l, Dim features) {
  return mul_scalar(view(std::move(l), Shape{features}));
}

AdapterInput before(Net& net, const Net::Base& base, const Tensor& x_in) {
  AdapterInput in{x_in, {}};
  const bool feedforward = is_feedforward(net, base);
  Tensor l;
  if (feedforward) l = vector(net, base, true);
  if (!x_in.defined()) return {};
  if (base.quantised && !net.tape.autocast()) in.x = to(std::move(in.x), Dtype::kFp32);
  in.kept = in.x;
  if (!feedforward) return in;
  const Dtype dtype = x_in.dtype();
  if (!base.quantised) in.kept = to(std::move(in.x), l.dtype());
  const Tensor by = scaling(std::move(l), base.in_features);
  in.x = mul(in.kept, by);
  if (!base.quantised) in.x = to(std::move(in.x), dtype);
  return in;
}

Tensor behind(Net& net, const Net::Base& base, Tensor result_in, const Tensor& x) {
  Tensor result = std::move(result_in);
  const Dtype dtype = x.defined() ? result.dtype() : Dtype::kFp32;
  if (!is_feedforward(net, base)) {
    Tensor l = vector(net, base, false);
    if (!x.defined()) return result;
    const Tensor by = scaling(std::move(l), base.out_features);
    result = mul(std::move(result), by);
  }
  if (base.quantised && x.defined()) {
    if (!net.quantised_to_int8()) result = clone(std::move(result));
    return net.tape.autocast() ? result : to(std::move(result), dtype);
  }
  return x.defined() ? to(std::move(result), dtype) : result;
}

constexpr AdapterLayer kRows[] = {{AdapterKind::kIa3, before, behind}};

}  // namespace

extern const AdapterLayerRows ia3_rows;
const AdapterLayerRows ia3_rows{kRows};

}  // namespace tidemark
