#pragma once

#include "core/layers/net.hpp"

/// torchtitan's plan for Llama's modules, as torch's parallelize_module carries it out: q, k, v, gate and up divide
/// their rows (ColwiseParallel), o and down their columns (RowwiseParallel), token table and head the vocabulary. With
/// sequence parallelism norms and the residual stream have a part of the sequence (SequenceParallel). Net's dimensions
/// A, Kv, Q, K, F and V are this GPU's; without tensor parallelism all of this does nothing. Nor does it under
/// transformers' own plan: its hooks hand on what they get, and sum it in place (integrations/tensor_parallel.py:
/// _AllReduceForward, _AllReduceBackward).
/// Source: torch 2.14 torch/distributed/tensor/parallel/style.py; torchtitan models/llama3/infra/parallelize.py:
/// apply_tp.
namespace tidemark {

/// The hidden states at the door of attention, feed-forward and head: PrepareModuleInput gathers the sequence.
Tensor enter_divided(Net& net, Tensor hidden);
/// Attention or feed-forward behind that door; the layer has a name for what was before it until the call returns.
Tensor run_divided(Net& net, Tensor hidden, Tensor (*block)(Net& net, Tensor hidden));
/// What a projection that divides its rows gets: without sequence parallelism its input's gradient is summed.
Tensor before_projection(Net& net, std::string_view module, Tensor x);
/// What a projection that divides its columns gives: an addend, which is summed, or reduced and scattered.
/// `keep`: a checkpoint keeps what the reduction gives.
Tensor behind_projection(Net& net, std::string_view module, Tensor x, bool keep = false);
/// Rows of the token table, of which this GPU has a part.
Tensor divided_embedding(Net& net, Tensor ids, Tensor weight);
/// Logits as the head's module returns them: whole, unless the loss is parallel; around transformers' modules
/// torchtitan's are fp32.
Tensor behind_head(Net& net, Tensor logits);
/// cross_entropy, of divided logits where the loss is parallel.
Tensor loss_of(Net& net, Tensor logits, Tensor target);
/// Elements of the whole parameter of which this GPU has so large a part.
Count whole_elements(const Net& net, const Shape& part);

}  // namespace tidemark
