#include "core/step/host_experts.hpp"

#include "core/plan/sharded.hpp"

namespace tidemark {
namespace {

// kt-kernel/python/sft/lora.py _create_fused_expert_lora_buffers: gradients beside the factors. The Trainer's optimizer
// has them among its parameters.
Bytes adapter_bytes(Parameter p, const TrainingJob& job) {
  p.reached = true;
  return 2 * p.shape.numel() * size_of(p.dtype) + states_on_host(p, job);
}

}  // namespace

HostMemory experts_on_host(const Tape& tape, const LayerPlan& plan, const TrainingJob& job) {
  HostMemory sum;
  if (!job.has_experts_on_host()) return sum;
  const Bytes of_number = job.experts == ExpertsKernel::kHostInt8 ? 1 : size_of(Dtype::kBf16);
  for (const Parameter& p : tape.parameters()) {
    if (p.storage_bytes != kOnHost) continue;
    sum.add(p.is_adapter ? adapter_bytes(p, job) : p.shape.numel() * of_number, plan.multiplicity(p.instance));
  }
  return sum;
}

}  // namespace tidemark
