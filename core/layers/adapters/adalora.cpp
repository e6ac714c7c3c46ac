// AdaLoRA: peft/tuners/adalora/layer.py SVDLinear.forward; for packed bases peft/tuners/adalora/bnb.py (peft 0.18).
#include <string_view>

#include "core/layers/adapter.hpp"

namespace tidemark {
namespace {

Tensor behind(Net& net, const Net::Base& base, Tensor result_in, const Tensor& x_in) {
  Tensor result = std::move(result_in);
  const Dim r(net.rank_of(base.name), Symbol::kRank);
  const Tensor a = net.adapter_weight(base.name, "lora_A", Shape{r, base.in_features});
  const Tensor e = net.adapter_weight(base.name, "lora_E", Shape{r, Dim(1)});
  const Tensor b = net.adapter_weight(base.name, "lora_B", Shape{base.out_features, r});
  const Tensor number = net.adapter_weight(base.name, "ranknum", Shape{Dim(1)}, false);
  if (!x_in.defined()) return result;
  Tensor x = x_in;
  const Dtype dtype = result.dtype();
  const bool convert = !base.quantised || !net.tape.autocast();
  if (base.quantised && !net.quantised_to_int8()) result = clone(std::move(result));
  const Tensor rank = add_scalar(number);
  if (convert) x = to(std::move(x), a.dtype());
  Tensor update = dropout(x, net.job.adapter.lora_dropout);
  {
    Tensor product = mul(a, e);
    update = matmul(std::move(update), transpose(std::move(product), 0, 1));
  }
  update = matmul(std::move(update), transpose(b, 0, 1));
  if (base.quantised && convert) update = to(std::move(update), dtype);
  update = mul_scalar(std::move(update));
  update = div(std::move(update), rank);
  if (net.quantised_to_int8() && base.quantised) return add(std::move(result), std::move(update));
  return add_in_place(std::move(result), std::move(update));
}

// linalg_vector_norm_backward: tensors as small as its input.
void norm_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], promote(n.saved_tensor(0), g[0]), "linalg_vector_norm_backward");
}

Tensor norm(Tensor x_in) {
  const Tensor x = x_in.tape().autocast() ? to(std::move(x_in), Dtype::kFp32) : std::move(x_in);
  Tape& t = x.tape();
  Node* n = t.record("linalg_vector_norm", norm_backward, {&x});
  t.save(n, x);
  Tensor out = t.allocate(Shape{}, x.dtype(), "linalg_vector_norm");
  t.attach(n, out);
  return out;
}

// model.py AdaLoraModel.forward: how far A's rows and B's columns are from orthogonal.
Tensor add_orthogonality(Net& net, Tensor loss) {
  Tape& t = net.tape;
  if (!t.grad_enabled() || !loss.requires_grad()) return loss;
  Scope in(t, "", "peft 0.18 tuners/adalora/model.py: AdaLoraModel.forward");
  const Phase phase = t.phase();
  Tensor sum;
  for (std::size_t i = 0; i < t.parameters().size(); ++i) {
    const Parameter& p = t.parameters()[i];
    const bool is_a = std::string_view{p.leaf} == "lora_A";
    if (!is_a && std::string_view{p.leaf} != "lora_B") continue;
    const std::int16_t instance = p.instance;
    t.begin_segment(phase, instance);
    t.resume_parameters_of(instance);
    const Tensor factor = t.existing_parameter(static_cast<std::int32_t>(i));
    Tensor covariance = is_a ? matmul(factor, transpose(factor, 0, 1)) : matmul(transpose(factor, 0, 1), factor);
    const Tensor eye = t.allocate(covariance.shape(), covariance.dtype(), "eye");
    Tensor distance = norm(sub(covariance, eye));
    sum = sum.defined() ? add_in_place(std::move(sum), std::move(distance)) : add_scalar(std::move(distance));
  }
  t.begin_segment(phase, -1);
  t.resume_parameters_outside_layers();
  if (!sum.defined()) return loss;
  sum = mul_scalar(std::move(sum));
  sum = mul_scalar(std::move(sum));
  return add_in_place(std::move(loss), std::move(sum));
}

constexpr AdapterLayer kRows[] = {{AdapterKind::kAdaLora, nullptr, behind, false, nullptr, add_orthogonality}};

}  // namespace

extern const AdapterLayerRows adalora_rows;
const AdapterLayerRows adalora_rows{kRows};

}  // namespace tidemark
