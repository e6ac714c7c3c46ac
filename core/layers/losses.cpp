#include "core/layers/losses.hpp"
#include "core/job/framework.hpp"
#include "core/layers/rows_loss.hpp"

#include "core/layers/tensor_parallel.hpp"

namespace tidemark {
namespace {

constexpr const char* kLoss = "transformers 5.12 loss/loss_utils.py: ForCausalLMLoss";
constexpr const char* kLiger = "Liger-Kernel 0.8 ops/fused_linear_cross_entropy.py: fused_linear_cross_entropy_forward";

Tensor flat(Net& net, Tensor logits) {
  const Shape rows{
      Dim(logits.numel() / logits.size(-1), logits.size(-2) == net.S.n() ? Symbol::kTokens : Symbol::kNone),
      logits.dim(-1)};
  return view(std::move(logits), rows);
}

// [B, S-1, V] made contiguous: the shifted copy of releases before 4.50.
Tensor shifted_copy(Net& net, Tensor logits_in) {
  Tensor logits = std::move(logits_in);
  Tensor part = narrow(std::move(logits), 1, 0, Dim(net.S.n() - 1, Symbol::kSequence));
  return contiguous(std::move(part));
}

void fused_backward(Tape&, Node& n, Tensor*, Tensor* r) {
  r[0] = n.saved_tensor(0);
  if (n.needs(1)) r[1] = n.saved_tensor(1);
}

constexpr const char* kCut = "apple/ml-cross-entropy cut_cross_entropy/cce.py, cce_backward.py";

// cce_backward.py: zeros_like(e), zeros_like(c); logits exist only inside the kernel's tiles.
void cut_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "gradient of the hidden states");
  if (n.needs(1)) {
    r[1] = t.allocate(n.input_shapes[1], n.input_dtypes[1], "head gradient");
    t.set_category(r[1], Category::kGradients);
  }
}

// What the loss starts from: both in autocast's dtype, the hidden states as rows of tokens.
void lower_and_flatten(Net& net, Tensor& hidden, Tensor& weight) {
  Tape& t = net.tape;
  if (t.autocast()) {
    hidden = t.autocast_cast(std::move(hidden), *t.autocast());
    weight = t.autocast_cast(std::move(weight), *t.autocast());
  }
  const Shape flattened{net.T, hidden.dim(-1)};
  hidden = reshape(std::move(hidden), flattened);
}

}  // namespace

Tensor cut_cross_entropy(Net& net, Tensor hidden_in, Tensor weight_in) {
  Scope in(net.tape, "loss", kCut);
  Tape& t = net.tape;
  Tensor hidden = std::move(hidden_in);
  Tensor weight = std::move(weight_in);
  lower_and_flatten(net, hidden, weight);
  Node* n = t.record("cut_cross_entropy", cut_backward, {&hidden, &weight});
  t.save(n, hidden);
  t.save(n, weight);
  Tensor lse = t.allocate(Shape{net.T}, Dtype::kFp32, "logsumexp");
  Tensor dot = t.allocate(Shape{net.T}, Dtype::kFp32, "label logits");
  Tensor out = t.allocate(Shape{}, Dtype::kFp32, "loss");
  t.attach(n, out);
  t.save(n, lse);
  return out;
}

Tensor mean_square(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "loss", "a training loop's own: outputs.last_hidden_state.float().pow(2).mean()");
  Tensor hidden = to(std::move(hidden_in), Dtype::kFp32);
  hidden = power(std::move(hidden));
  return mean_all(std::move(hidden));
}

// trl 1.9 trainer/grpo_trainer.py _get_per_token_logps_and_entropies: logits_to_keep.
Tensor kept_tokens(Net& net, Tensor hidden) {
  if (!net.job.generates() || net.job.has_critic()) return hidden;
  const Count kept = std::min(net.S.n(), net.job.answer_length() + 1);
  return narrow(std::move(hidden), 1, net.S.n() - kept, Dim(kept));
}

bool returns_fp32_logits(const Framework& framework, OwnLoss own) {
  switch (own) {
    case OwnLoss::kFp32:
      return !framework.at_least(4, 46);
    case OwnLoss::kModelDtype:
      return false;
    case OwnLoss::kFp32Head:
    case OwnLoss::kFp32AndBack:
      return !framework.at_least(5, 0);
  }
  return false;
}

Tensor causal_lm_loss(Net& net, Tensor logits_in, OwnLoss own) {
  if (net.job.has_outer_loss()) return {};  // the model was handed no labels
  Scope in(net.tape, "loss", kLoss);
  Tensor logits = std::move(logits_in);
  Tape& t = net.tape;
  // With 4.49 the last families called ForCausalLMLoss, and it shifted the labels in place of the logits (PR #35646).
  const bool shifts_labels = net.job.framework.at_least(4, 49);
  if (shifts_labels || own != OwnLoss::kModelDtype) logits = to(std::move(logits), Dtype::kFp32);
  Tensor target;
  if (shifts_labels) {
    Tensor padded = t.allocate(Shape{net.B, Dim(net.S.n() + 1)}, Dtype::kInt64, "labels padded");
    target = t.allocate(Shape{net.B, net.S}, Dtype::kInt64, "shift_labels");
    padded.reset();
    logits = flat(net, std::move(logits));
    return loss_of(net, std::move(logits), view(std::move(target), Shape{net.T}));
  }
  return shifted_cross_entropy(net, std::move(logits));
}

Tensor shifted_cross_entropy(Net& net, Tensor logits) {
  if (net.job.has_outer_loss()) return {};
  const Tensor whole = std::move(logits);  // keeps its name while the shifted copy is made and used
  Tensor shift = shifted_copy(net, whole);
  Tensor target = net.tape.allocate(Shape{net.B, Dim(net.S.n() - 1)}, Dtype::kInt64, "shift_labels");
  shift = flat(net, std::move(shift));
  return loss_of(net, std::move(shift), std::move(target));
}

Tensor plain_cross_entropy(Net& net, Tensor logits) {
  if (net.job.has_outer_loss()) return {};
  Scope in(net.tape, "loss", "torch.nn: CrossEntropyLoss.forward");
  Tensor target = view(net.labels, Shape{Dim(net.labels.numel())});
  Tensor rows = logits.shape().rank == 2 ? std::move(logits) : flat(net, std::move(logits));
  return loss_of(net, std::move(rows), std::move(target));
}

namespace {

// One chunk's tensors; every chunk makes the same again, without gradients: the forward of an autograd function.
void liger_chunk(Net& net, const Tensor& hidden, const Tensor& weight, Count chunk, bool several) {
  Tape& t = net.tape;
  const bool grad_before = t.grad_enabled();
  t.set_grad_enabled(false);
  const std::optional<Dtype> cast = t.autocast();
  const bool casts = cast && weight.dtype() != *cast;
  const Shape chunk_of_logits{Dim(chunk), net.V};
  const auto cast_for_one_product = [&] { return casts ? t.allocate(weight.shape(), *cast, "weight_cast") : Tensor(); };
  // aten/src/ATen/autocast_mode.cpp cached_cast: only of trained fp32 weights a cast outlives the product that it is
  // for, and of the weight alone, not of weight.t().
  const bool keeps_cast = casts && weight.dtype() == Dtype::kFp32 && weight.requires_grad();
  Tensor kept_cast, previous;
  if (several && keeps_cast) kept_cast = t.autocast_cast(weight, *cast);
  // _can_use_mm_out of 0.8.5: chunk after chunk is written over one tensor.
  const bool in_place = hidden.dtype() == weight.dtype() && !casts;
  if (several && !in_place) previous = t.allocate(chunk_of_logits, hidden.dtype(), "logits of the chunk before");
  Tensor transposed = cast_for_one_product();
  const Tensor logits = t.allocate(chunk_of_logits, hidden.dtype(), "logits of one chunk");
  transposed.reset();
  previous.reset();
  if (!in_place) {
    if (!several && keeps_cast) kept_cast = t.autocast_cast(weight, *cast);
    const Tensor once = keeps_cast ? Tensor() : cast_for_one_product();
    t.allocate(Shape{Dim(chunk), hidden.dim(-1)}, hidden.dtype(), "grad_input of one chunk");
  }
  // ops/fused_linear_cross_entropy.py of 0.8.5 adds the product of 16-bit gradients to grad_weight in place (addmm
  // with out=), from compute capability 8.0 on; before, and where dtypes differ otherwise, a chunk made a copy, and
  // one in fp32. Seen on an H200 (tests/measured/own.jsonl).
  const bool adds_in_place = is_half(hidden.dtype()) && net.job.compute_capability >= 80 &&
                             (weight.dtype() == hidden.dtype() || weight.dtype() == Dtype::kFp32);
  if (weight.requires_grad() && !adds_in_place) {
    const Tensor part = t.allocate(weight.shape(), hidden.dtype(), "grad_weight of one chunk");
    if (part.dtype() != Dtype::kFp32) t.allocate(weight.shape(), Dtype::kFp32, "grad_weight of one chunk (fp32)");
  }
  t.set_grad_enabled(grad_before);
}

}  // namespace

Tensor liger_fused_loss(Net& net, Tensor hidden_in, Tensor weight_in) {
  Scope in(net.tape, "loss", kLiger);
  Tape& t = net.tape;
  Tensor hidden = std::move(hidden_in);
  const Tensor weight = std::move(weight_in);
  const Count rows = net.T.n(), width = hidden.size(-1), vocabulary = weight.size(0);
  const Shape flattened{net.T, hidden.dim(-1)};
  hidden = reshape(std::move(hidden), flattened);
  Tensor padded = t.allocate(Shape{net.B, Dim(net.S.n() + 1)}, Dtype::kInt64, "labels padded");
  Tensor target = t.allocate(Shape{net.B, net.S}, Dtype::kInt64, "shift_labels");
  padded.reset();
  if (t.autocast()) hidden = to(std::move(hidden), *t.autocast());
  // The chunk makes logits about as large as the hidden states: inc_factor = cdiv(V, H).
  const Count factor = (vocabulary + width - 1) / width;
  const Count power = t.power_of_two_from(rows, factor);
  const Count chunk = t.above(rows, power) ? power : rows;
  Node* n = t.record("LigerFusedLinearCrossEntropy", fused_backward, {&hidden, &weight});
  Tensor grad_input = t.allocate(hidden.shape(), hidden.dtype(), "grad_input");
  Tensor grad_weight;
  if (weight.requires_grad()) {
    grad_weight = t.allocate(weight.shape(), weight.dtype(), "grad_weight");
    t.set_category(grad_weight, Category::kGradients);
  }
  Tensor loss_rows = t.allocate(Shape{net.T}, Dtype::kFp32, "loss per token");
  if (is_unsloth_by_rows(net.job.framework) && !weight.requires_grad()) {
    logits_by_rows(net, weight, rows);  // Unsloth's models that its compiler makes (implementations.cpp)
  } else {
    liger_chunk(net, hidden, weight, chunk, t.above(rows, power));
  }
  Tensor out = t.allocate(Shape{}, Dtype::kFp32, "loss");
  t.attach(n, out);
  t.save(n, grad_input);
  if (weight.requires_grad()) t.save(n, grad_weight);
  return out;
}

}  // namespace tidemark
