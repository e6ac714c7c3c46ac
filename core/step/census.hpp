#pragma once

#include <cstddef>
#include <vector>

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/model/module.hpp"

namespace tidemark {

/// The modules of a model, by the kinds of its layers.
struct LayerCensus {
  Census modules;                          ///< outside the layers, and of one layer of each kind
  std::vector<std::size_t> kind_of_layer;  ///< index into modules.layers
};

/// Runs the model's forward once, on a handful of tokens and with one layer of each kind, and notes what it uses. The
/// architecture must be supported.
LayerCensus take_census(const Architecture& architecture, const Framework& framework);

}  // namespace tidemark
