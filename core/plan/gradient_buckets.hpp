#pragma once

#include <vector>

#include "core/job/training_job.hpp"
#include "core/layers/layer_plan.hpp"
#include "core/tape/tape.hpp"

namespace tidemark {

/// The buckets in which DistributedDataParallel reduces the gradients of a recorded backward, in bytes each. They hold
/// one element per trained parameter in its gradient's dtype and stay from the second step on.
/// Source: torch 2.14 csrc/distributed/c10d/reducer.cpp: Reducer::rebuild_buckets, compute_bucket_assignment_by_size.
std::vector<Bytes> gradient_buckets(const Tape& tape, const LayerPlan& plan, const DataParallel& how);

}  // namespace tidemark
