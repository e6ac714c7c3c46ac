#pragma once

#include <utility>
#include <vector>

#include "core/plan/sharded.hpp"

namespace tidemark {

/// Megatron-Core's DistributedDataParallel and its optimizers: gradients lie in buffers that stay, of one element per
/// trained parameter; weights have fp32 copies. With the distributed optimizer each of the GPUs that have the same
/// weights (data and context parallel) keeps a part of copies and states.
/// Source: megatron_core 0.16.1 distributed/param_and_grad_buffer.py, optimizer/{optimizer, distrib_optimizer}.py.
///
/// Of FSDP, which stands on its sources' words alone (megatron_core 0.16.1 distributed/fsdp/src/megatron_fsdp): parts
/// of weights and gradients, and beside them what lies outside the layers, two layers' weights and one's gradients
/// whole. Under DeepSpeed (BigScience's fork) bf16 gradients stay beside their fp32 sums until the next backward.
class MainGrads : public Sharded {
 public:
  MainGrads(Tape& tape, const TrainingJob& job) : tape_(tape), job_(job) {}

  void collect() override {}
  void end_micro_steps() override;
  void create_states(OptimizerRun& optimizer) override;
  void prepare_step() override;
  void step(OptimizerRun& optimizer) override;
  HostMemory host_memory(const LayerPlan& plan) const override;

  void declare(Parameter& p) override;
  void take_gradient(std::int32_t /*parameter*/, Tensor /*grad*/) override {}

 private:
  Count part_of(const Parameter& p) const;
  bool divides_weights() const;
  bool divides_gradients() const;
  void keep_units();
  bool steps_here() const;
  /// Elements of a part that is stepped on the device.
  Count stepped_here(Count part) const;

  Tape& tape_;
  const TrainingJob& job_;
  std::vector<std::pair<std::int16_t, Count>>
      on_host_;  // elements that are stepped there, of each parameter's instance
};

/// An error for each thing about a job of Megatron-Core that is not modelled.
void check_megatron(const Architecture& architecture, const TrainingJob& job, Issues& issues);

}  // namespace tidemark
