#pragma once

#include <vector>

#include "core/state/quantised_weight.hpp"

/// Autograd functions that run several adapted linear layers as one node, forward and backward: Unsloth's LoRA_MLP,
/// LoRA_QKV and LoRA_W (unsloth/kernels/fast_lora.py), and Axolotl's of them (src/axolotl/kernels/lora.py).
namespace tidemark {

/// What the projects and their releases do differently.
struct FusedLora {
  bool overwrites_input = false;   ///< backward writes the input's gradient over the input that was saved (out=X)
  bool adds_in_product = true;     ///< out.addmm_(X @ A, B); else the update is made whole and added to `out`
  bool casts_ahead = true;         ///< the factors are saved in the input's dtype; else backward casts them, all first
  bool keeps_input_twice = false;  ///< X is saved again as what the factors multiply
  bool reuses_gradients = true;    ///< grad @ B lives on until the input's gradient needs it
  bool unpacks_into_buffer = false;  ///< matmul_lora unpacks into a buffer that stands (use_global_buffer)
  bool makes_scales_first = false;   ///< block scales are unpacked before there is room for the weight
  bool unpacks_scales = true;        ///< into a tensor of their own; else the kernel that unpacks the weight reads them
};

/// A linear layer of such a function.
struct FusedLinear {
  Dim in_features, out_features;
  Tensor weight;                  ///< [out, in], frozen; undefined where it is packed
  QuantisedWeight packed;         ///< of bitsandbytes' four bits
  Dtype unpacked = Dtype::kBf16;  ///< what the packed weight becomes
  Tensor bias;                    ///< frozen, or undefined; added in place
  Tensor a, b;                    ///< [r, in], [out, r]; undefined where the layer has no adapter
};

/// The layers that share the input x [B, S, in]: [B, S, out] of each. `dropped` is what dropout made of x for the
/// adapters; undefined: they see x itself.
std::vector<Tensor> fused_projections(const FusedLora& how, Tensor x, Tensor dropped,
                                      const std::vector<FusedLinear>& layers);

/// A gated feed-forward: down(activation(gate(x)) * up(x)), the activation being one kernel that writes over gate, up
/// and the gradient in backward.
struct FusedMlp {
  FusedLinear gate, up, down;
};
Tensor fused_mlp(const FusedLora& how, Tensor x, Tensor dropped, const FusedMlp& mlp);

}  // namespace tidemark
