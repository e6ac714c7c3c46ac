#pragma once

#include "core/layers/net.hpp"

namespace tidemark {

/// What a family's causal language model did to its logits in the releases before its file left all of it to the shared
/// function of loss/loss_utils.py. Read from the modelling files of transformers 4.44.2, 4.45.2, 4.46.3, 4.48.1, 4.49.0
/// to 4.57.1 and 5.0.0: ForCausalLM.forward.
enum class OwnLoss : std::uint8_t {
  kFp32,         ///< Llama and most others: returned in fp32 until 4.45, then converted for the loss
  kModelDtype,   ///< GPT-2, GPT-BigCode, GPT-NeoX, OPT, Bloom, Falcon, MPT, StableLM: never converted until 4.48
  kFp32Head,     ///< GPT-J: returned in fp32 until 4.57
  kFp32AndBack,  ///< GPT-Neo: in fp32 for the loss, then back in the hidden states' dtype, until 4.57
};

/// Of the last hidden states those whose logits the loop asks for.
Tensor kept_tokens(Net& net, Tensor hidden);

/// Whether the logits that the class returns are in fp32 before the loss sees them.
bool returns_fp32_logits(const Framework& framework, OwnLoss own);

/// The loss of a causal language model, from logits: transformers loss/loss_utils.py ForCausalLMLoss, and what older
/// releases did (framework.version). The logits may stay alive in the caller's `outputs`.
Tensor causal_lm_loss(Net& net, Tensor logits, OwnLoss own);

/// CrossEntropyLoss on the logits as they are: masked language models and classifiers.
Tensor plain_cross_entropy(Net& net, Tensor logits);

/// CrossEntropyLoss on a contiguous copy of all logits but each row's last.
Tensor shifted_cross_entropy(Net& net, Tensor logits);

/// A body without a head: the mean of the squares of its last hidden state in fp32, as the oracle's records take it.
Tensor mean_square(Net& net, Tensor hidden);

/// Liger's fused linear cross entropy, from hidden states and the head's weight.
Tensor liger_fused_loss(Net& net, Tensor hidden, Tensor weight);

/// TRL's chunked loss: logits of 256 tokens at a time, under checkpointing. `bias`: of the head, or undefined.
Tensor chunked_loss(Net& net, Tensor hidden, Tensor weight, Tensor bias);

/// Apple's cut cross entropy: no logits in memory at all.
Tensor cut_cross_entropy(Net& net, Tensor hidden, Tensor weight);

}  // namespace tidemark
