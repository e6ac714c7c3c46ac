#pragma once

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/step/census.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// The adapter as PEFT from 0.19 on reads it, where transformers 5 has one parameter for what were modules of experts:
/// their names among the targets become adapted parameters. What PEFT refuses is an error among the issues; what it
/// changed, a note.
Adapter with_expert_targets(const Architecture& architecture, const TrainingJob& job, const LayerCensus& census,
                            Issues& issues);

}  // namespace tidemark
