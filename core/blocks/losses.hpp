#pragma once

#include "core/blocks/net.hpp"

namespace tidemark {

/// The loss of a causal language model, from logits: transformers loss/loss_utils.py ForCausalLMLoss, and what older
/// releases did (framework.version). The logits may stay alive in the caller's `outputs`.
Tensor causal_lm_loss(Net& net, Tensor logits);

/// CrossEntropyLoss on the logits as they are: masked language models and classifiers.
Tensor plain_cross_entropy(Net& net, Tensor logits);

/// A body without a head: the mean of its last hidden state in fp32, as benchmarks of bare encoders take it.
Tensor body_loss(Net& net, Tensor hidden);

/// Whether the loss works on an fp32 copy of the logits. The model files of the GPT generation fed the model's own
/// dtype to CrossEntropyLoss until they, too, called the shared loss function (4.49; transformers 4.48
/// models/gpt_bigcode/modeling_gpt_bigcode.py: GPTBigCodeForCausalLM.forward and its like).
bool upcasts_logits(const Net& net);

/// Liger's fused linear cross entropy, from hidden states and the head's weight.
Tensor liger_fused_loss(Net& net, Tensor hidden, Tensor weight);

/// TRL's chunked loss: logits of 256 tokens at a time, under checkpointing.
Tensor chunked_loss(Net& net, Tensor hidden, Tensor weight);

/// Apple's cut cross entropy: no logits in memory at all.
Tensor cut_cross_entropy(Net& net, Tensor hidden, Tensor weight);

}  // namespace tidemark
