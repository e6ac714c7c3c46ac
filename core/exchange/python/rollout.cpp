// What generates the answers that are trained on.
#include "core/exchange/python/topics.hpp"

namespace tidemark::exchange {
namespace {

/// Unsloth's vLLM beside the model, of which it shares the weights.
void say_fast_inference(PyJob& job, const PyValue& fast) {
  job.say("rollout.mode", of("colocate"), fast);
  job.say("rollout.shared_weights", of(true), fast);
  if (const PyValue* share = job.load_option("gpu_memory_utilization"); share != nullptr)
    job.say("rollout.gpu_memory_utilization", *share);
}

void read_vllm(PyJob& job, const PyValue* fast) {
  job.say("rollout.engine", of("vllm"), *job.argument("use_vllm"));
  if (const PyValue* mode = job.argument("vllm_mode"); mode != nullptr)
    job.say("rollout.mode", *mode);
  else if (const PyValue* device = job.argument("vllm_device"); device != nullptr)
    job.say("rollout.mode", of("server"), device->places, "trl before 0.17: vLLM has a GPU of its own");
  job.copy("rollout.gpu_memory_utilization", {"vllm_gpu_memory_utilization"});
  job.copy("rollout.sleep", {"vllm_enable_sleep_mode"});
  job.copy("rollout.tensor_parallel", {"vllm_tensor_parallel_size"});
  // unsloth 2026.8.19 models/rl.py: the engine that from_pretrained made is the trainer's.
  if (job.unsloth && is_true(fast)) say_fast_inference(job, *fast);
  if (!job.told("rollout.mode")) job.unknown("rollout.mode: colocate in trl 1, server before");
}

}  // namespace

void read_rollout(PyJob& job) {
  if (!generates_answers(job.task) && job.task != "online_dpo") return;
  if (job.on("use_vllm")) return read_vllm(job, job.unsloth ? job.load_option("fast_inference") : nullptr);
  if (job.argument("ds3_gather_for_generation") != nullptr)
    return job.copy("rollout.gather_weights", {"ds3_gather_for_generation"});
  if (const PyValue* fast = job.load_option("fast_inference"); is_true(fast)) {
    job.say("rollout.engine", of("vllm"), *fast);
    say_fast_inference(job, *fast);
  }
}

}  // namespace tidemark::exchange
