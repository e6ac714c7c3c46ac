#pragma once

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"

namespace tidemark {

/// Whether they are so by what Unsloth puts in their place, of whatever release of transformers.
bool listed_by_unsloth(const Architecture& architecture, const TrainingJob& job);

/// Are experts lists of linear layers, which bitsandbytes packs and adapters reach? (Until transformers 4.57, where the
/// model's own code has them, and where unsloth makes them of gpt-oss in 4 bits.)
bool lists_experts(const Architecture& architecture, const TrainingJob& job);

}  // namespace tidemark
