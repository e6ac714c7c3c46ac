#pragma once

#include <functional>

#include "core/plan/sharded.hpp"
#include "core/step/simulation.hpp"

namespace tidemark {

/// One GPU of a pipeline: each call records all micro-batches of a step. With a placement of its own (null: none) that
/// wants to know all parameters beforehand they are declared first.
std::function<void()> pipeline_rank(Net& net, const Program& program, const Architecture& architecture, Count rank,
                                    Sharded* sharded);

}  // namespace tidemark
