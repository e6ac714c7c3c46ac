#include "core/layers/log_probs_loss.hpp"

#include "core/layers/model_call.hpp"

namespace tidemark {

Tensor log_probs_loss(Net& net, Outputs outputs) {
  Scope in(net.tape, "loss", "LLaMA-Factory ff6d4d12 src/llamafactory/v1/core/base_trainer.py: compute_log_probs");
  Tape& t = net.tape;
  Tensor log_probs;
  {
    const Tensor logits = to(logits_outside(outputs.rest.front()), Dtype::kFp32);
    const Dim others(net.S.n() - 1, Symbol::kSequence);
    Tensor shift_logits = contiguous(narrow(logits, 1, 0, others));
    const Shape rows{Dim(net.B.n() * others.n(), Symbol::kTokens), logits.dim(-1)};
    const Tensor shift_labels = t.allocate(Shape{rows.dim(0)}, Dtype::kInt64, "shift_labels");
    // reduction="none"
    log_probs = neg(cross_entropy(view(std::move(shift_logits), rows), shift_labels));
    outputs = {};
  }
  return mul_scalar(std::move(log_probs));
}

}  // namespace tidemark
