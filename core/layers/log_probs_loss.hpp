#pragma once

#include "core/layers/heads.hpp"

namespace tidemark {

/// The loss of LLaMA-Factory's own loop: of the logits that the model has returned, beside the loss that it has
/// computed itself, as the batch names the labels. Both live until this one is there. Source: LLaMA-Factory ff6d4d12
/// src/llamafactory/v1/core/base_trainer.py: compute_log_probs; trainers/sft_trainer.py: compute_loss.
Tensor log_probs_loss(Net& net, Outputs outputs);

}  // namespace tidemark
