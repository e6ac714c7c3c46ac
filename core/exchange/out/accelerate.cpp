// accelerate@16cb6eb8 (1.14) utils/dataclasses.py: FullyShardedDataParallelPlugin; commands/config.
#include "core/exchange/out/writer.hpp"

namespace tidemark::exchange {
namespace {

void write_fsdp(const ExportJob& job, Writer& out) {
  const bool second = job.fsdp == "fsdp2";
  out.line("fsdp_config:");
  out.yaml("fsdp_version", Count{second ? 2 : 1}, 2);
  if (second) {
    out.yaml("fsdp_reshard_after_forward", true, 2);
  } else {
    const bool grads = job.fsdp == "shard_grad_op", hybrid = job.fsdp == "hybrid_shard";
    out.yaml("fsdp_sharding_strategy", grads ? "SHARD_GRAD_OP" : hybrid ? "HYBRID_SHARD" : "FULL_SHARD", 2);
    out.yaml("fsdp_use_orig_params", true, 2);
  }
  out.yaml("fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP", 2);
  out.yaml("fsdp_offload_params", job.offload_parameters, 2);
  out.yaml("fsdp_cpu_ram_efficient_loading", job.job.data_parallel.fsdp.cpu_ram_efficient_loading, 2);
  out.yaml("fsdp_activation_checkpointing", checkpoints(job.job), 2);
  out.yaml("fsdp_state_dict_type", "SHARDED_STATE_DICT", 2);
}

}  // namespace

Exported write_accelerate_fsdp(const ExportJob& job) {
  Writer out;
  const TrainingJob& how = job.job;
  out.comment("From Tidemark for accelerate 1.14: how the job lies on its GPUs. accelerate launch --config_file");
  out.comment("accelerate.yaml train.py; the rest of the job is in the script (tidemark export trainer).");
  out.yaml("compute_environment", "LOCAL_MACHINE");
  out.yaml("distributed_type", job.fsdp != "none" ? "FSDP" : job.gpus > 1 ? "MULTI_GPU" : "'NO'");
  if (job.fsdp != "none") write_fsdp(job, out);
  out.yaml("mixed_precision", casts_to(how, Dtype::kBf16) ? "bf16" : casts_to(how, Dtype::kFp16) ? "fp16" : "'no'");
  out.yaml("num_machines", Count{1});
  out.yaml("num_processes", job.gpus);
  out.yaml("machine_rank", Count{0});
  out.lacks("/model", "model, method, batch, length, optimizer: they belong to the script");
  if (job.zero_stage > 0) out.lacks("/parallelism/zero_stage", "ZeRO beside FSDP: `export deepspeed` says it");
  if (how.data_parallel.gradient_as_bucket_view) out.lacks("/parallelism/ddp", "gradient_as_bucket_view");
  return out.finish("accelerate's YAML");
}

}  // namespace tidemark::exchange
