#pragma once

#include "core/job/training_job.hpp"
#include "core/layers/layer_plan.hpp"
#include "core/plan/host_memory.hpp"
#include "core/tape/tape.hpp"

namespace tidemark {

/// What the one process that has KTransformers' backend keeps of experts in host memory: their weights, and their
/// adapters with gradients and the states of the optimizer.
HostMemory experts_on_host(const Tape& tape, const LayerPlan& plan, const TrainingJob& job);

}  // namespace tidemark
