#pragma once

#include "core/tape/ops.hpp"

namespace tidemark {

/// What Megatron-Core's layers do with tensors that tensor-parallel GPUs share, sequence first: [S, B, …].
/// Source: megatron_core 0.16.1 tensor_parallel/{layers, mappings, cross_entropy}.py; Transformer Engine 2.11
/// pytorch/module/{linear, layernorm_linear}.py.

/// F.linear of [S/shards, B, H], gathered for the product and again in backward: only this GPU's part is kept. With
/// `fused` the weight's gradient is added to its buffer, and what autograd gets in its place is counted elsewhere; with
/// `to_buffer` all of x is gathered into one that stays (get_global_memory_buffer), which is counted elsewhere, too.
/// Of a frozen weight nothing of x is kept, and what is gathered goes with the product (linear_with_frozen_weight).
Tensor gathered_linear(Tensor x, Tensor weight, Tensor bias, Count shards, bool fused, bool to_buffer);
/// Rows sorted by expert, [N, in], with weights [E, out, in] (Transformer Engine's GroupedLinear); `fused` as above.
Tensor grouped_linear(Tensor x, Tensor weight, bool fused);
/// [S, B, H], a sum's addend → [S/shards, B, H] (reduce_scatter_to_sequence_parallel_region).
Tensor reduce_scattered(Tensor x, Count shards);
/// All GPUs' rows; in backward the sum of this one's (gather_from_sequence_parallel_region).
Tensor all_gathered(Tensor x, Count shards);
/// All GPUs' columns: gathered behind one another, then joined (gather_from_tensor_model_parallel_region); in backward
/// this one's columns of the gradient.
Tensor all_gathered_last(Tensor x, Count shards);
/// A softmax whose gradient is written over the one that comes (scaled_upper_triang_masked_softmax_cuda: backward).
Tensor softmax_over_gradient(Tensor x);
/// silu of the first half times the second; both are kept (fused_bias_swiglu.py: SwiGLUFunction).
Tensor bias_swiglu(Tensor x);
/// swiglu(x) times a weight for each row, which it keeps beside x; compiled (fused_bias_swiglu.py: weighted_swiglu).
Tensor weighted_swiglu(Tensor x, Tensor weights);
/// Logits [S, B, V/t] and targets → losses [S, B]. The softmax takes the place of an fp32 copy of the logits; with
/// `in_place` (Transformer Engine's kernel) that of the logits themselves. The gradient takes the softmax's place, but
/// where it is `compiled`.
Tensor vocab_parallel_cross_entropy(Tensor logits, Tensor target, bool in_place, bool compiled);
/// A tensor of one number with x's place in the graph: deallocate_output_tensor once x is sent.
Tensor without_data(const Tensor& x);

}  // namespace tidemark
