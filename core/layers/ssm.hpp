#pragma once

#include <vector>

#include "core/layers/heads.hpp"
#include "core/layers/net.hpp"

/// Layers that hand a state from token to token: what gated delta nets, Mamba's and their like share.
namespace tidemark {

/// apply_mask_to_padding_states: hidden states times the padding mask.
Tensor mask_padding(Net& net, Tensor hidden);
/// A depthwise convolution over the tokens before, and silu unless not `activated`: x is [B, channels, S].
/// `by_function`: causal_conv1d_fn of the files of transformers 5.15 on, which casts x to the weight's dtype and back.
Tensor causal_convolution(Net& net, const char* name, Tensor x, bool bias, bool activated = true,
                          bool by_function = true);
/// Norm before gate, over the last dimension of rows: Qwen3NextRMSNormGated, or fla's kernel for it.
Tensor norm_then_gate(Net& net, const char* name, Tensor x, Tensor gate, bool by_fla = true);

/// chunk_size of the delta rules' torch paths.
constexpr Count kDeltaChunk = 64;
/// x.transpose(1, 2).contiguous().to(torch.float32)
Tensor heads_first(Tensor x);
/// The inverse of a triangular matrix per chunk [outer, chunks, 64, 64], row by row in place.
Tensor solved_rows(Tensor attn);
/// l2norm: x * rsqrt((x * x).sum(-1, keepdim=True) + eps)
Tensor l2norm(Tensor x);
/// torch_chunk_gated_delta_rule of transformers 5.17 on: as below, but q and k may have fewer heads.
Tensor solved_delta_rule(Net& net, Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta);
/// torch_chunk_gated_delta_rule, or fla's kernel for it: q and k [B, S, heads, D] normalised, v [B, S, heads, D], g and
/// beta [B, S, heads].
Tensor gated_delta_rule(Net& net, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g,
                        const Tensor& beta);
/// -A_log.float().exp() * F.softplus(a.float() + dt_bias); `wide`: A_log is made in fp32.
Tensor delta_decay(Net& net, const Tensor& a, bool wide);
/// The same of parameters made elsewhere; `rate` is A_log.float().
Tensor delta_decay(Tensor rate, const Tensor& a, const Tensor& dt_bias);

/// What a gated delta net's projections make.
struct DeltaInputs {
  Tensor mixed;                    ///< [B, channels, S]: queries, keys and values before their convolution
  Tensor z;                        ///< [B, S, heads, D]
  Tensor b, a;                     ///< [B, S, heads]
  std::vector<Tensor> apart = {};  ///< what `mixed` was joined of, which has names until it is convolved
};
/// Qwen3NextGatedDeltaNet.forward and Qwen3_5GatedDeltaNet.forward behind their projections.
Tensor gated_delta_net(Net& net, const char* source, DeltaInputs inputs);

/// Mamba2Mixer.forward and its like, all in a module of that name. `norm` is what stands between scan and out_proj.
struct Mamba2Form {
  const char* module = "mixer";                                     ///< path of the mixer
  const char *in_proj = "mixer.in_proj", *conv1d = "mixer.conv1d";  ///< of its modules
  const char *norm = "mixer.norm", *out_proj = "mixer.out_proj";    ///< of its modules
  const char* source = "";                                          ///< its torch_forward
  Tensor (*scale_input)(Net& net, Tensor hidden) = nullptr;         ///< before in_proj
  Tensor (*scale_projected)(Net& net, Tensor projected) = nullptr;  ///< behind it
  Tensor (*gated_norm)(Net& net, const char* name, Tensor y, Tensor gate) = nullptr;
};
Tensor mamba2_mixer(Net& net, const Mamba2Form& form, Tensor hidden);
/// MambaRMSNormGated.forward, Zamba2RMSNormGated.forward: the gate's silu first, then the norm, of each group of
/// columns.
Tensor gate_then_norm(Net& net, const char* name, Tensor y, Tensor gate);

/// Classes that return logits in fp32: the causal loss on these.
Outputs wide_causal_lm(Net& net, const Program& program, Tensor hidden);

}  // namespace tidemark
