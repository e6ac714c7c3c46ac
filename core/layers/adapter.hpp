#pragma once

#include <span>

#include "core/layers/net.hpp"

/// PEFT's adapters beside LoRA, each on one linear layer. A file of core/layers/adapters defines `const AdapterRows
/// <file>_rows`; the build collects them (cmake/registry.cmake), so that a kind is one file.
namespace tidemark {

/// What a wrapped module hands to its base instead of its input, and what its forward keeps by name until it returns.
struct AdapterInput {
  Tensor x;
  Tensor kept;
};

/// A kind of adapter, as the forward method of PEFT's class has it. Both functions declare the weights that they use,
/// always the same ones; where `x` is undefined the adapter is there but idle, and nothing else happens.
struct AdapterLayer {
  AdapterKind kind;                                                                             ///< which one
  AdapterInput (*before)(Net& net, const Net::Base& base, const Tensor& x) = nullptr;           ///< its base runs
  Tensor (*behind)(Net& net, const Net::Base& base, Tensor result, const Tensor& x) = nullptr;  ///< its base has run
  bool instead = false;              ///< `behind` does what its base would: the base is not called
  void (*keep)(Net& net) = nullptr;  ///< what all modules share, outside the layers
  Tensor (*add_to_loss)(Net& net, Tensor loss) = nullptr;  ///< what the model's forward does to its loss
};

using AdapterLayerRows = std::span<const AdapterLayer>;

/// All rows, in the order of the files' names.
std::span<const AdapterLayer* const> all_adapter_layers();

/// The row of a kind; null for LoRA.
const AdapterLayer* adapter_layer(AdapterKind kind);

}  // namespace tidemark
