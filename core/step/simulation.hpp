#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/job/training_job.hpp"
#include "core/layers/layer_plan.hpp"
#include "core/model/architecture.hpp"
#include "core/plan/host_memory.hpp"
#include "core/tape/tape.hpp"

namespace tidemark {

class Net;
struct Program;

/// One recorded training step and where its parts begin, as indices into Tape::segments().
struct Simulation {
  std::unique_ptr<Tape> tape;
  LayerPlan plan;
  std::vector<std::size_t> micro_steps;  ///< first segment of each recorded micro-step
  bool accumulates = false;              ///< a step is more than one micro-step
  bool gradients_stay = false;         ///< zero_grad leaves them: from the second step on they are there from the start
  std::size_t create_states = 0;       ///< first segment of the first step's state creation
  std::size_t optimizer = 0;           ///< first segment of the step's temporaries
  std::size_t zero_grad = 0;           ///< first segment of zero_grad
  std::size_t evaluation = 0;          ///< first segment of evaluation, which follows it
  std::size_t generation = 0;          ///< first segment in which answers are generated
  std::size_t scoring = 0;             ///< first segment in which they are scored
  std::size_t scored = 0;              ///< the one behind
  double activations_factor = 1.0;     ///< by which activations were scaled
  HostMemory on_host;                  ///< of a node: paged states and what is offloaded
  std::size_t own_parameters = 0;      ///< the tape's parameters behind these are a reference model's
  Count adapted_modules = 0;           ///< modules with an adapter
  Count saved_modules = 0;             ///< modules trained in full beside them
  Count picture_tokens = 0;            ///< of a sample's sequence that pictures take
  Count rank = 0;                      ///< of a pipeline
  std::vector<Count> further_ranks;    ///< Sharded::further_ranks
  std::string attention_kernel;        ///< what the attention ran
  bool has_float8_products = false;    ///< a linear layer was converted (torchao)
  bool experts_stay_unpacked = false;  ///< Net::experts_stay_unpacked
  bool has_mixed_dtypes = false;       ///< Tape::tell_mixed_dtypes
  bool has_batch_norm = false;         ///< Tape::tell_batch_norm
  bool mixes_dtypes = false;           ///< Sharded::mixes_dtypes

  /// Which of the recorded micro-steps a step plays, in order; steps count from 1.
  std::vector<std::size_t> played_in(int step) const;
  /// The phase that a segment counts as: forwards beside training's have phases of their own.
  Phase phase_of(std::size_t segment) const;
};

/// The batch reaches the device.
void take_batch(Net& net, const Program& program);
/// Its names go.
void let_batch_go(Net& net);

/// Forward and backward of one micro-batch.
void record_micro_step(Net& net, const Program& program, bool is_last = true);

/// Whether the engine models this architecture.
bool is_supported(const Architecture& architecture);

/// Runs the step on a tape. The architecture must be supported and its dimensions positive. Of a pipeline: the step of
/// the rank that the job names, else of that which needs most.
Simulation simulate(const Architecture& architecture, const TrainingJob& job);

}  // namespace tidemark
