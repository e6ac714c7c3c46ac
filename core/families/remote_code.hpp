#pragma once

#include "core/layers/program.hpp"

/// What modelling files that lie beside weights on the Hugging Face Hub have in common.
namespace tidemark {

/// Their own loss, whatever transformers is: a shifted copy of logits, made fp32 before and turned back behind as
/// Program::own_loss says.
Outputs own_causal_lm(Net& net, const Program& program, Tensor hidden);

/// Their forwards take no `logits_to_keep`, by which trainers and generate() ask for the last tokens' logits alone
/// (trl 1.9 trainer/grpo_trainer.py: model_kwarg_keys): what they keep instead no record shows.
void check_own_code(const Architecture& architecture, const TrainingJob& job, Issues& issues);

}  // namespace tidemark
