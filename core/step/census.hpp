#pragma once

#include <cstddef>
#include <vector>

#include "core/job/training_job.hpp"
#include "core/layers/layer_plan.hpp"
#include "core/model/architecture.hpp"
#include "core/model/module.hpp"

namespace tidemark {

/// The modules of a model, by the kinds of its layers.
struct LayerCensus {
  std::vector<LayerPlan::Stack> stacks;    ///< in the order in which the forward comes to them
  Census modules;                          ///< outside the layers, and of one layer of each kind
  std::vector<std::size_t> kind_of_layer;  ///< of all stacks' layers one after the other: index into modules.layers
};

/// Runs the model's forward once, on a handful of tokens and with one layer of each kind, and notes what it uses. The
/// architecture must be supported.
LayerCensus take_census(const Architecture& architecture, const Framework& framework);

}  // namespace tidemark
