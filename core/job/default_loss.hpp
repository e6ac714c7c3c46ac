#pragma once

#include "core/job/request.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// The loss that a request leaves to its framework. A note among the issues says which one it is, where it is not the
/// model's own. `open`: nobody stated one. What a framework has under the word of another one's is stood for.
void settle_loss(bool open, const Architecture& architecture, TrainingJob& job, Issues& issues);

/// Whether an adapter of its own lies on the head, which TRL's loss in chunks refuses.
bool adapts_head(const TrainingJob& job);

}  // namespace tidemark
