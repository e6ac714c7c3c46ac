#pragma once

#include "core/tape/ops.hpp"

namespace tidemark {

/// What Megatron-Core's layers do with tensors that tensor-parallel GPUs share, sequence first: [S, B, …].
/// Source: megatron_core 0.16.1 tensor_parallel/{layers, mappings, cross_entropy}.py; Transformer Engine 2.11
/// pytorch/module/{linear, layernorm_linear}.py.

/// F.linear of [S/shards, B, H], gathered for the product and again in backward: only this GPU's part is kept. With
/// `fused` the weight's gradient is added to its buffer, and what autograd gets in its place is counted elsewhere.
Tensor gathered_linear(Tensor x, Tensor weight, Tensor bias, Count shards, bool fused);
/// [S, B, H], a sum's addend → [S/shards, B, H] (reduce_scatter_to_sequence_parallel_region).
Tensor reduce_scattered(Tensor x, Count shards);
/// Logits [S, B, V/t] and targets → losses [S, B]. The softmax takes the place of an fp32 copy of the logits; with
/// `copies` 2 (compiled, which writes no argument) that of another, with 0 (Transformer Engine's kernel) that of the
/// logits themselves. The gradient takes the softmax's place.
Tensor vocab_parallel_cross_entropy(Tensor logits, Tensor target, int copies);
/// A tensor of one number with x's place in the graph: deallocate_output_tensor once x is sent.
Tensor without_data(const Tensor& x);

}  // namespace tidemark
