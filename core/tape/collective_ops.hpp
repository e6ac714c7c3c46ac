#pragma once

#include "core/tape/ops.hpp"

namespace tidemark {

/// What DTensor's Redistribute does with a tensor that tensor-parallel GPUs share: forward one way, backward the other.
/// Source: torch 2.14 torch/distributed/tensor/{_redistribute.py: Redistribute, placement_types.py: Shard}.

/// [B, S/shards, …] → [B, S, …]: Shard(1) → Replicate; gradients are reduced and scattered.
Tensor gather_sequence(Tensor x, Count shards);
/// [B, S, …], a sum's addend → [B, S/shards, …]: Partial → Shard(1); gradients are gathered.
/// `keep`: a checkpoint keeps it (Tape::keep_results).
Tensor scatter_sequence(Tensor x, Count shards, bool keep = false);
/// A sum's addend → the sum: Partial → Replicate; gradients pass.
Tensor all_reduce(Tensor x);
/// Replicate, as it is; gradients are addends and are summed.
Tensor all_reduce_gradient(Tensor x);
/// […, V/shards] → […, V]: Shard(-1) → Replicate; of gradients this GPU's columns are copied.
Tensor gather_columns(Tensor x, Count shards, Dim columns);

/// `rows` rows come for those that are sent; gradients go the other way.
/// Source: torch 2.14 torch/distributed/_functional_collectives.py: all_to_all_single_autograd.
Tensor all_to_all(Tensor x, Dim rows);
/// Where a module begins, and ends, that is a unit of the placement's inside a layer.
Tensor enter_unit(Tensor x);
Tensor leave_unit(Tensor x);

/// A checkpoint computes x again, whether backward needs it or not (early_stop=False).
void compute_to_the_end(const Tensor& x);

/// nn.Embedding on this GPU's `weight`, rows of a table of `rows`: ids outside are masked, and so is their output. The
/// gradient is that of the whole table.
/// Source: torch 2.14 torch/distributed/tensor/_ops/_embedding_ops.py; placement_types.py: _MaskPartial.
Tensor embedding_of_rows(Tensor ids, Tensor weight, Count rows);

/// cross_entropy of logits whose columns are divided.
/// Source: torch 2.14 torch/distributed/tensor/parallel/loss.py: loss_parallel.
Tensor parallel_cross_entropy(Tensor logits, Tensor target);

}  // namespace tidemark
