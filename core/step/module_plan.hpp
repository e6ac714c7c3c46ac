#pragma once

#include "core/job/training_job.hpp"
#include "core/layers/treatments.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// What method, adapter and freeze patterns of a job come to in a model.
struct ModulePlan {
  bool trains_everything = true;  ///< every parameter, without adapters: the treatments are empty
  Treatments treatments;          ///< of each module
  Count adapted = 0;              ///< modules with an adapter, over all layers
  Count saved = 0;                ///< modules that are trained in full beside them
  Issues issues;                  ///< patterns that fit nothing, and what PEFT and torch refuse
};

/// Fits the job's patterns to the modules of the model. The architecture must be supported.
ModulePlan plan_modules(const Architecture& architecture, const TrainingJob& job);

}  // namespace tidemark
