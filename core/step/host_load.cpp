#include "core/step/host_load.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace tidemark {
namespace {

// from_pretrained puts the model where a device_map says, or else on the CPU. TRL 1.9 trainer/utils.py
// create_model_from_path says "auto" unless processes of DDP or DeepSpeed load it.
bool loads_on_cpu(const TrainingJob& job) {
  const DataParallel& data = job.data_parallel;
  if (job.method == Method::kQlora || job.pipeline.is_used() || data.sharding == Sharding::kZero3) return false;
  if (job.framework.name == "trl") return data.is_used() && !data.is_one_process() && !is_fsdp(data.sharding);
  constexpr std::string_view kPlain[] = {"transformers", "pytorch", "accelerate", "autotrain"};
  return std::find(std::begin(kPlain), std::end(kPlain), job.framework.name) != std::end(kPlain);
}

// Of safetensors the tensors are views of the mapped file until another dtype is asked for: transformers from 4.51 on,
// modeling_utils.py _load_pretrained_model; before, they were copied into a model that had been made already. Seen with
// transformers 5.12.1 and safetensors 0.8: of 637 MiB in bf16, loaded in bf16, none was the process's own; loaded in
// fp32, 1,274 MiB.
bool maps_files(const TrainingJob& job) {
  return job.framework.at_least(4, 51) && job.stored.value_or(job.recipe.weights) == job.recipe.weights;
}

// transformers 5.12 modeling_utils.py _move_missing_keys_from_meta_to_device: ranks but a node's first have zeros,
// which no one writes to.
Count readers(const TrainingJob& job) {
  const DataParallel& data = job.data_parallel;
  if (data.is_one_process() || (is_fsdp(data.sharding) && data.fsdp.cpu_ram_efficient_loading)) return 1;
  return std::min(data.per_node, job.gpus());
}

}  // namespace

Bytes host_at_load(const TrainingJob& job, Count parameters) {
  if (!loads_on_cpu(job) || maps_files(job)) return 0;
  const bool twice = has_reference(job.preference) && job.reference == Reference::kCopy;
  return parameters * size_of(job.recipe.weights) * (twice ? 2 : 1) * readers(job);
}

}  // namespace tidemark
