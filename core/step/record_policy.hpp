#pragma once

#include <functional>

#include "core/layers/policy.hpp"
#include "core/step/simulation.hpp"

namespace tidemark {

/// PPOTrainer's micro-batches: each call records one. The policy's parameters are declared first, then those of the
/// model that learns what its answers earn.
std::function<void()> policy_steps(Net& net, const Program& program);

/// Behind a generation: reference, value model and reward model score its answers, so many rows at a time.
void score_policy(Simulation& simulation, Net& trained, const Architecture& architecture, const TrainingJob& job,
                  const Program& program);

/// Rows that PPOTrainer generates and scores at a time.
Count policy_rows(const TrainingJob& job);

}  // namespace tidemark
