#pragma once

#include "core/layers/program.hpp"

/// What modelling files that lie beside weights on the Hugging Face Hub have in common.
namespace tidemark {

/// Their own loss, whatever transformers is: a shifted copy of logits, made fp32 before and turned back behind as
/// Program::own_loss says.
Outputs own_causal_lm(Net& net, const Program& program, Tensor hidden);

}  // namespace tidemark
