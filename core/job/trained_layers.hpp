#pragma once

#include "core/job/request.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// Adds the layers that LLaMA Pro grows as the model is loaded, each a copy of the one before it.
void add_new_layers(Count added, Architecture& architecture, Issues& issues);
/// Writes which layers are trained as the names that `freeze` keeps from training, once the model's layers are counted.
void settle_trained_layers(Count layers, const Foreign& foreign, TrainingJob& job, Issues& issues);

}  // namespace tidemark
