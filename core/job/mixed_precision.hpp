#pragma once

#include <optional>

#include "core/job/training_job.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// torch's MixedPrecision and MixedPrecisionPolicy, where there is one.
struct MixedPrecision {
  std::optional<Dtype> gathered;  ///< of whole weights, and so of computing
  std::optional<Dtype> reduced;   ///< in which gradients are reduced
};

/// As the request states it; else what torchtitan sets (fsdp_bf16: bf16, reduced in fp32), or accelerate under
/// autocast. Source: accelerate 1.14 utils/dataclasses.py: FullyShardedDataParallelPlugin.set_mixed_precision.
MixedPrecision mixed_precision(const TrainingJob& job);

/// FSDP 2's units outside the layers: accelerate's know neither pipelines nor tensor parallelism.
FsdpGroups fsdp_groups(const TrainingJob& job);

/// Under mixed precision accelerate makes what is trained fp32 as it divides it by FSDP 1: accelerate 1.14
/// accelerator.py: prepare_model.
bool widens_trained(const TrainingJob& job);

/// What is said of a layer whose weight has another dtype than its input, where nothing casts.
Issue of_mixed_dtypes();

/// The dtype in which matrix products and attention run: autocast's, else that of the weights as FSDP gathers them.
Dtype computing_dtype(const TrainingJob& job);

}  // namespace tidemark
