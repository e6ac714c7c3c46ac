#pragma once

#include "core/step/simulation.hpp"

namespace tidemark {

/// All micro-batches of one GPU's step of a pipeline.
void record_pipeline(Net& net, const Program& program, const Architecture& architecture, Count rank);

}  // namespace tidemark
