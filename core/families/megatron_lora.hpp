#pragma once

#include "core/layers/net.hpp"

namespace tidemark {

/// LoRA on Megatron-Core's layers, as Megatron-Bridge puts it there (NeMo's and verl's adapters, too).
/// Source: Megatron-Bridge 0.3.1 src/megatron/bridge/peft/{lora, lora_layers, utils, recompute}.py.

/// A layer whose output (linear_qkv, linear_fc1) or input (linear_proj, linear_fc2) tensor-parallel GPUs divide.
struct DividedLayer {
  const char* name;
  Dim out_features;      ///< of this GPU where the output is divided, else all
  bool divides_columns;  ///< the output is
  Count experts = 0;     ///< whose layer it is, all in one product (0: none's)
};

/// The layer's result and what its adapter makes of the same input.
Tensor with_adapter(Net& net, const DividedLayer& layer, Tensor result, Tensor x);

/// With nothing but adapters trained and all layers computed again, the first layer's input is made to require a
/// gradient: else no backward reaches the checkpoints (recompute.py: maybe_enable_recompute_inputs_grad).
bool begins_graph(const Net& net);
Tensor as_leaf(Net& net, Tensor hidden);

}  // namespace tidemark
