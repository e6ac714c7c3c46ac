#pragma once

#include "core/job/request.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// Writes which layers are trained as the names that `freeze` keeps from training, once the model's layers are counted.
void settle_trained_layers(Count layers, const Foreign& foreign, TrainingJob& job, Issues& issues);

}  // namespace tidemark
