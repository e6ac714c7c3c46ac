#pragma once

#include "core/tape/ops.hpp"

/// What state-space layers compute with besides: the operations of their torch paths. Rules as in ops.hpp.
namespace tidemark {

Tensor exp(Tensor x);       ///< keeps its result; autocast: fp32
Tensor log(Tensor x);       ///< keeps its input; autocast: fp32
Tensor softplus(Tensor x);  ///< keeps its input; autocast: fp32
Tensor erf(Tensor x);       ///< keeps its input
Tensor tril(Tensor x);      ///< keeps nothing; nor does triu
/// x.cumsum(dim), whose gradient is flipped, summed up and flipped back.
Tensor cumsum(Tensor x);
/// F.pad by `extra` at the end of one dimension: a copy, also by nothing.
Tensor pad(Tensor x, int dim, Count extra);
/// torch.linalg.solve_triangular: keeps a and its result, whose columns lie one behind another.
Tensor solve_triangular(const Tensor& a, const Tensor& b);
/// x[…] = value, where `part` is the shape of that view of x.
Tensor copy_into(Tensor x, const Shape& part, Tensor value);
/// x.repeat_interleave(times, dim): [B, S, heads, D] by the heads.
Tensor repeat_heads(Tensor x, Count times);

// -- fused kernels of other libraries: what their Python allocates around the kernels ---------------------------------

/// causal_conv1d_interface.py CausalConv1dFn with its activation: x [B, channels, S]; bias may be undefined.
Tensor causal_conv1d(Tensor x, Tensor weight, Tensor bias);
/// fla 0.4 modules/fused_norm_gate.py: rows normalised, times the gate's silu.
Tensor gated_rms_norm(Tensor x, Tensor gate, Tensor weight);
/// fla 0.4 ops/gated_delta_rule/chunk.py: q, k [B, S, heads, dk], v [B, S, heads, dv], g and beta [B, S, heads]. Of 0.6
/// heads of keys may be fewer than those of values, and one kernel makes and solves a chunk's system.
Tensor chunk_gated_delta_rule(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, bool solves_at_once = false);

/// transformers 5.12 models/rwkv/modeling_rwkv.py RwkvLinearAttention: key and value [B, S, A].
Tensor wkv(Tensor decay, Tensor first, Tensor key, Tensor value);
/// mamba-ssm 2 ops/triton/ssd_combined.py mamba_split_conv1d_scan_combined: all of Mamba-2 behind its first projection.
struct SplitScan {
  Tensor conv_weight, conv_bias, dt_bias, a, d, norm_weight, out_weight, out_bias;  ///< some may be undefined
  Count head_dim = 0, groups = 0, state = 0, chunk = 0;
};
Tensor split_conv1d_scan(Tensor projected, const SplitScan& scan);
/// mamba-ssm 2 ops/selective_scan_interface.py selective_scan_fn: u, delta and z [B, D, S], a [D, N], b and c [B, N,
/// S], in the model's dtype; a, d and the bias, which gets no gradient, in fp32.
struct SelectiveScan {
  Tensor u, delta, a, b, c, d, z, delta_bias;
};
Tensor selective_scan(const SelectiveScan& scan);
/// mamba-ssm 2 ops/selective_scan_interface.py mamba_inner_fn: all of Mamba behind its first projection, xz [B, 2D, S].
struct InnerScan {
  Tensor conv_weight, conv_bias, x_weight, dt_weight, out_weight, out_bias, a, d, dt_bias;  ///< some may be undefined
  bool unit = false;  ///< Falcon-Mamba's norms without weights over B, C and time steps
};
Tensor mamba_inner(Tensor xz, const InnerScan& scan);

}  // namespace tidemark
