#pragma once

#include <vector>

#include "core/job/training_job.hpp"
#include "core/tape/tape.hpp"

namespace tidemark {

/// The optimizer as an allocator: what it keeps for each trained parameter and what one step makes and drops.
/// Everything happens on the tape, so that the peak sees it.
class OptimizerStates {
 public:
  OptimizerStates(Tape& tape, const TrainingJob& job) : tape_(tape), job_(job) {}

  /// The first `step()`: states for every trained parameter.
  void create();
  /// Gradient clipping and the temporaries of any `step()`.
  void step();
  /// Bytes of states that live in managed memory (paged optimizers): host side, not in torch's statistics.
  Bytes paged_bytes(const Parameter& p) const;

 private:
  void create_for(const Parameter& p);
  template <typename Visit>
  void for_each_trained(Visit visit);

  Tape& tape_;
  const TrainingJob& job_;
  std::vector<Tensor> states_;
};

}  // namespace tidemark
