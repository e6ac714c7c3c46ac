// DoRA: peft/tuners/lora/dora.py and the forward methods of peft/tuners/lora/variants.py (peft 0.18 and 0.21). At each
// step the norm of the merged weight is made anew; it is detached, so that only the magnitude's ratio to it enters the
// graph.
#include "core/layers/net.hpp"

namespace tidemark {
namespace {

Tensor as_factor(Tape& tape, Tensor x) {
  return tape.autocast() ? tape.autocast_cast(std::move(x), *tape.autocast()) : x;
}

/// B(A), the update to a weight. Autograd follows its making though nobody asks for its gradient: what the products
/// keep for that lives as long as it does.
struct Update {
  Tensor kept[2];
  Tensor update;
};

// `lora_B(lora_A(x_eye)).T`: an identity matrix is sent through both. A's weight keeps its input, B's weight A's
// output.
Update update_of_identity(const Tensor& eye, const Tensor& weight_a, const Tensor& weight_b) {
  Tape& t = eye.tape();
  Update u;
  const Tensor a = detach(as_factor(t, weight_a));
  Tensor within = as_factor(t, eye);
  if (t.keeps_saved()) u.kept[0] = within;
  within = linear(std::move(within), a);
  if (t.keeps_saved()) u.kept[1] = within;
  const Tensor b = detach(as_factor(t, weight_b));
  Tensor product = linear(std::move(within), b);
  u.update = transpose(std::move(product), 0, 1);
  return u;
}

// `(lora_A @ lora_B).T`: each factor is kept for the other, in autocast's dtype.
Update update_of_table(const Tensor& embedding_a, const Tensor& embedding_b) {
  Tape& t = embedding_a.tape();
  Update u;
  Tensor b = as_factor(t, detach(embedding_b));
  Tensor a = as_factor(t, detach(embedding_a));
  if (t.keeps_saved()) {
    u.kept[0] = a;
    u.kept[1] = b;
  }
  Tensor product = matmul(std::move(a), std::move(b));
  u.update = transpose(std::move(product), 0, 1);
  return u;
}

// DoraLinearLayer.get_weight_norm. Autocast makes fp32 what linalg_vector_norm returns, not what it gets
// (autocast_mode.h: AT_FORALL_FP32_SET_OPT_DTYPE; ReduceOpsUtils.h make_reduction reads 16 bits as they are).
Tensor weight_norm(const Tensor& weight, const Tensor& update) {
  Tape& t = weight.tape();
  Tensor scaled = mul_scalar(update);
  const Tensor merged = add(weight, std::move(scaled));
  const Dtype wide = t.autocast() ? Dtype::kFp32 : merged.dtype();
  Tensor norm = t.allocate(Shape{merged.dim(0)}, wide, "linalg_vector_norm");
  return to(std::move(norm), merged.dtype());
}

}  // namespace

// DoraLinearVariant.forward: with dropout the base's product is made again, from what dropout has left of the input.
Tensor Net::dora(const Base& base, const AdapterWeights& weights, const Tensor& result, Tensor x_in) {
  const Tensor argument = std::move(x_in);
  const bool drops = job.adapter.lora_dropout > 0.0;
  const Tensor x = dropout(argument, job.adapter.lora_dropout);
  Tensor extra = dora_extra(base, weights, drops ? Tensor() : result, x);
  return add(result, std::move(extra));
}

// DoraLinearLayer.forward: (scale - 1) * base + scale * B(A(x)) * scaling. Its locals live until it returns.
Tensor Net::dora_extra(const Base& base, const AdapterWeights& weights, Tensor base_result_in, const Tensor& x) {
  Tensor base_result = std::move(base_result_in);
  Tensor eye = tape.allocate(Shape{base.in_features, base.in_features}, x.dtype(), "eye");
  Update update = update_of_identity(eye, weights.a, weights.b);
  // get_lora_weight, whose local the identity is.
  if (job.framework.peft >= kPeftOfDoraFunction) {
    eye.reset();
    update.update = to(std::move(update.update), x.dtype());
  }
  Tensor weight = detach(plain_weight(base));
  weight = to(std::move(weight), x.dtype());
  const Tensor norm = weight_norm(weight, update.update);
  Tensor scale = div(weights.magnitude, norm);
  scale = view(std::move(scale), Shape{Dim(1), base.out_features});
  Tensor lora_result = tidemark::linear(x, weights.a);
  lora_result = tidemark::linear(std::move(lora_result), weights.b);
  if (!base_result.defined()) {
    base_result = tidemark::linear(x, weight);
  } else if (base.bias.defined()) {
    base_result = sub(std::move(base_result), base.bias);
  }
  Tensor first = add_scalar(scale);
  first = mul(std::move(first), base_result);
  Tensor second = mul(scale, lora_result);
  second = mul_scalar(std::move(second));
  return add(std::move(first), std::move(second));
}

// DoraEmbeddingLayer.forward
Net::DoraEmbedding Net::dora_embedding(const AdapterWeights& weights, const Tensor& table, Tensor ids) {
  DoraEmbedding result;
  const Update update = update_of_table(weights.a, weights.b);
  const Tensor columns = transpose(detach(table), 0, 1);
  const Tensor norm = weight_norm(columns, update.update);
  result.scale = div(weights.magnitude, norm);
  Tensor rows = tidemark::embedding(std::move(ids), weights.a);
  rows = matmul(std::move(rows), weights.b);
  rows = mul(result.scale, std::move(rows));
  result.update = mul_scalar(std::move(rows));
  return result;
}

}  // namespace tidemark
