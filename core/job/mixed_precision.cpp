#include "core/job/mixed_precision.hpp"

namespace tidemark {

MixedPrecision mixed_precision(const TrainingJob& job) {
  const Fsdp& fsdp = job.data_parallel.fsdp;
  MixedPrecision own;
  if (job.recipe.name == "fsdp_bf16") {
    own = {Dtype::kBf16, Dtype::kFp32};
  } else if (job.recipe.autocast && !job.pipeline.is_used()) {
    // accelerate's. It has no pipelines, and fully_shard's own MixedPrecisionPolicy() changes no dtype.
    own = {job.recipe.autocast, job.recipe.autocast};
  }
  return {fsdp.param ? fsdp.param : own.gathered, fsdp.reduce ? fsdp.reduce : own.reduced};
}

FsdpGroups fsdp_groups(const TrainingJob& job) {
  const FsdpGroups groups = job.data_parallel.fsdp.groups;
  const bool divided = job.pipeline.is_used() || job.tensor.has_dtensors();
  return divided && groups != FsdpGroups::kSeparate ? FsdpGroups::kRoot : groups;
}

bool widens_trained(const TrainingJob& job) {
  return job.recipe.autocast.has_value() && job.framework.name != "pytorch";
}

Dtype computing_dtype(const TrainingJob& job) {
  if (job.recipe.autocast) return *job.recipe.autocast;
  const DataParallel& how = job.data_parallel;
  if (!how.is_sharded() || how.sharding >= Sharding::kZero1) return job.recipe.weights;
  return mixed_precision(job).gathered.value_or(job.recipe.weights);
}

Issue of_mixed_dtypes() {
  return {"INVALID_VALUE", Severity::kError, "/precision",
          "A layer's weight and its input are of two dtypes, which torch refuses without autocast "
          "(\"expected scalar type\").",
          "bf16_amp"};
}

}  // namespace tidemark
