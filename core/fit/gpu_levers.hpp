#pragma once

#include <vector>

#include "core/fit/lever.hpp"

namespace tidemark {

/// What several GPUs may divide further: ZeRO's next stages, FSDP; none of a job on one GPU.
std::vector<Step> sharding_steps(const TrainingJob& job);

/// What divides a job's weights by FSDP 2, with the recipe that it has there: accelerate makes trained weights fp32
/// (core/job/defaults.cpp), else the one that it has.
std::vector<Setting> to_fsdp2(const TrainingJob& job);

/// Data-parallel GPUs that divide the model instead, as many samples in a step as before: tensor, pipeline, context and
/// expert parallelism over at most a host's GPUs.
std::vector<Step> model_parallel_steps(const TrainingJob& job, const Architecture& architecture);

/// What the framework that divides the model can keep in host memory.
std::vector<Step> offload_steps(const TrainingJob& job);

}  // namespace tidemark
