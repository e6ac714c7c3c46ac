#pragma once

#include <vector>

#include "core/plan/sharded.hpp"

namespace tidemark {

/// nn.DataParallel: one process, whose first GPU has the module, every row of the batch and, gathered, every output.
/// Broadcast is one node of the graph: it waits for the gradients of all parameters, of frozen ones gets zeros, and
/// adds those of all GPUs up in pieces.
/// Source: torch 2.14 nn/parallel/{data_parallel, replicate, _functions, comm}.py.
class Replicas : public Sharded {
 public:
  Replicas(Tape& tape, const TrainingJob& job) : tape_(tape), gpus_(job.data_parallel.degree) {}

  void collect() override {}
  void scatter(const std::vector<Tensor>& batch) override;
  void join(std::vector<Tensor>& outputs) override;
  void take_gradient(std::int32_t parameter, Tensor grad) override;
  void after_backward() override;

 private:
  template <typename Visit>
  void for_each(Visit visit);
  std::vector<std::vector<std::size_t>> pieces_of(std::int16_t instance) const;
  void add_up(const std::vector<std::size_t>& piece, std::vector<Tensor>& sums);

  Tape& tape_;
  Count gpus_;
  std::vector<Tensor> batch_;      // other GPUs' rows
  std::vector<Tensor> gradients_;  // of the first GPU's replica, by parameter
};

}  // namespace tidemark
