#pragma once

#include "core/plan/sharded.hpp"

namespace tidemark {

/// Tensor parallelism alone: each GPU keeps, trains and steps its part of every matrix. Gradients of what is whole on
/// every GPU (norms) are addends, that of the token table is the whole table's: both are brought to their parameter's
/// layout as they are used.
/// Source: torch 2.14 torch/distributed/tensor/_dispatch.py: OpDispatcher.redistribute_local_args.
class TensorShards : public Sharded {
 public:
  TensorShards(Tape& tape, const TrainingJob& job) : tape_(tape), job_(job) {}

  void collect() override {}
  void step(OptimizerRun& optimizer) override;
  void take_gradient(std::int32_t parameter, Tensor grad) override;

 private:
  Tape& tape_;
  const TrainingJob& job_;
};

/// A gradient in its parameter's layout: a copy where it has another one, else itself. With sequence parallelism those
/// of parameters that are whole on every GPU are addends.
/// Source: torch 2.14 torch/distributed/tensor/placement_types.py: Shard._replicate_to_shard, Partial._reduce_value.
Tensor in_layout_of(Tape& tape, const Parameter& parameter, const TensorParallel& how, Tensor grad);

}  // namespace tidemark
