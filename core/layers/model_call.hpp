#pragma once

#include "core/layers/program.hpp"

namespace tidemark {

/// torch.no_grad() as long as it lives.
class WithoutGradients {
 public:
  explicit WithoutGradients(Tape& tape) : tape_(tape), before_(tape.grad_enabled()) { tape.set_grad_enabled(false); }
  ~WithoutGradients() { tape_.set_grad_enabled(before_); }
  WithoutGradients(const WithoutGradients&) = delete;
  WithoutGradients& operator=(const WithoutGradients&) = delete;

 private:
  Tape& tape_;
  bool before_;
};

/// `model(**batch)` as a loop calls it: forward and head under autocast, outputs in fp32 where accelerate converts
/// them. They keep their graph where the loop makes its loss of them. `prepared`: accelerate has put autocast around
/// it.
Outputs call_model(Net& net, const Program& program, bool prepared = true);

/// Logits that a loop's own loss is made of.
Tensor logits_outside(Tensor logits);

/// The same call without gradients.
Outputs call_without_gradients(Net& net, const Program& program, bool prepared = true);

}  // namespace tidemark
