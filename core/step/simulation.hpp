#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/tape/tape.hpp"

namespace tidemark {

class Net;
struct Program;

/// Which layers of the model the tape ran, and which of them stand for many.
/// Layers repeat with a period p (Gemma 3: 6; most: 1). With more than four periods, the tape runs four: the first,
/// the second, one that stands for all others in the middle, and the last.
struct LayerPlan {
  Count layers = 0;                ///< of the model
  Count period = 1;                ///< p
  std::vector<Count> tape_layers;  ///< model layer that each layer on the tape is
  Count repeat_begin = 0;          ///< first tape layer of the repeated period
  Count repeat_end = 0;            ///< one past its last; equal to begin when nothing repeats
  Count repeats = 1;               ///< how often that period occurs in the model

  /// How many model layers a tape layer stands for.
  Count multiplicity(std::int16_t instance) const {
    return instance >= repeat_begin && instance < repeat_end ? repeats : 1;
  }
};

/// One recorded training step and where its parts begin, as indices into Tape::segments().
struct Simulation {
  std::unique_ptr<Tape> tape;
  LayerPlan plan;
  std::vector<std::size_t> micro_steps;  ///< first segment of each recorded micro-step
  bool accumulates = false;              ///< a step is more than one micro-step
  bool gradients_stay = false;    ///< zero_grad leaves them: from the second step on they are there from the start
  std::size_t create_states = 0;  ///< first segment of the first step's state creation
  std::size_t optimizer = 0;      ///< first segment of the step's temporaries
  std::size_t zero_grad = 0;      ///< first segment of zero_grad
  Bytes paged = 0;                ///< managed memory of paged optimizers
  Bytes offloaded = 0;            ///< checkpointed inputs that wait in host memory
  Count adapted_modules = 0;      ///< modules with an adapter
  Count saved_modules = 0;        ///< modules trained in full beside them
  std::string attention_kernel;   ///< what the attention ran

  /// Which of the recorded micro-steps a step plays, in order; steps count from 1.
  std::vector<std::size_t> played_in(int step) const;
};

/// Forward and backward of one micro-batch, on the layers of the plan.
void record_micro_step(Net& net, const Program& program, const LayerPlan& plan);

/// Whether the engine models this architecture.
bool is_supported(const Architecture& architecture);

/// Runs the step on a tape. The architecture must be supported and its dimensions positive.
Simulation simulate(const Architecture& architecture, const TrainingJob& job);

}  // namespace tidemark
