// verl's Hydra overrides (verl b178a3cd verl/trainer/config/*.yaml) and OpenRLHF's flags (OpenRLHF v0.11 openrlhf/cli).
// Reinforcement learning is read and named; the engine does not estimate it yet.
#include <string>
#include <utility>

#include "core/exchange/args.hpp"
#include "core/exchange/formats/shared.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_rl(const Look& look) {
  if (look.syntax != Look::Syntax::kShell) return 0;
  for (const char* word : {"verl.trainer", "actor_rollout_ref.", "openrlhf.cli", "openrlhf/cli"}) {
    if (look.mentions(word)) return 97;
  }
  return 0;
}

/// What the file says under the first of several keys, or a default.
void option(Args& args, const char* path, std::initializer_list<std::string_view> keys, Value standard,
            const char* why) {
  if (!args.copy(path, keys) && !standard.is_null()) args.assume(path, std::move(standard), why);
}

void read_verl(Args& args, const Look& look) {
  const char* why = "verl's default (verl/trainer/config)";
  const bool megatron = look.mentions("megatron");
  args.assume("framework.name", of(megatron ? "megatron" : "transformers"), "verl's backend");
  const Arg* estimator = args.find("algorithm.adv_estimator");
  const std::string kind = estimator == nullptr ? "gae" : estimator->value.text;
  args.state("task", of(kind == "gae" ? "ppo" : kind), {estimator}, estimator == nullptr ? why : "");
  args.copy("model", {"actor_rollout_ref.model.path"});
  const Arg* rank = args.find("actor_rollout_ref.model.lora_rank");
  args.state("method", of(rank != nullptr && rank->value.integer > 0 ? "lora" : "full"), {rank},
             rank == nullptr ? "lora_rank default 0" : "");
  args.copy("micro_batch_size", {"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"});
  args.copy("ppo_mini_batch_size", {"actor_rollout_ref.actor.ppo_mini_batch_size"});
  args.copy("train_batch_size", {"data.train_batch_size"});
  option(args, "max_prompt_length", {"data.max_prompt_length"}, of(512), why);
  option(args, "max_completion_length", {"data.max_response_length"}, of(512), why);
  const Finding* prompt = find(args.reading, "max_prompt_length");
  const Finding* answer = find(args.reading, "max_completion_length");
  if (prompt != nullptr && answer != nullptr) {
    std::vector<Origin> places = prompt->origins;
    places.insert(places.end(), answer->origins.begin(), answer->origins.end());
    state(args.reading, "sequence_length", of(prompt->value.integer + answer->value.integer), std::move(places),
          "prompt and response");
  }
  option(args, "num_generations", {"actor_rollout_ref.rollout.n"}, of(1), why);
  const Arg* kept = args.find("actor_rollout_ref.model.enable_gradient_checkpointing");
  args.state("gradient_checkpointing", of(kept == nullptr || args.on(kept->key) ? "full" : "none"), {kept},
             kept == nullptr ? why : "");
  args.state("padding", of(false), {args.find("actor_rollout_ref.model.use_remove_padding")}, "use_remove_padding");
  args.copy("rollout.engine", {"actor_rollout_ref.rollout.name"});
  args.assume("rollout.mode", of("colocate"), "verl's hybrid engine");
  option(args, "rollout.gpu_memory_utilization", {"actor_rollout_ref.rollout.gpu_memory_utilization"}, of(0.5), why);
  option(args, "rollout.tensor_parallel", {"actor_rollout_ref.rollout.tensor_model_parallel_size"}, of(2), why);
  option(args, "rollout.free_cache", {"actor_rollout_ref.rollout.free_cache_engine"}, of(true), why);
  for (const auto& [path, key] : {std::pair{"parallelism.tensor", "tensor_model_parallel_size"},
                                  {"parallelism.pipeline", "pipeline_model_parallel_size"},
                                  {"parallelism.expert", "expert_model_parallel_size"},
                                  {"parallelism.expert_tensor", "expert_tensor_parallel_size"},
                                  {"parallelism.context", "context_parallel_size"}}) {
    args.copy(path, {std::string{"actor_rollout_ref.actor.megatron."} + key});
  }
  if (!megatron) args.assume("parallelism.fsdp", of("full_shard"), "actor.strategy fsdp");
  args.assume("precision", of(megatron ? "megatron_bf16" : "fsdp_bf16"), why);
  const bool reference = args.on("actor_rollout_ref.actor.use_kl_loss") || args.on("algorithm.use_kl_in_reward");
  args.state("reference_model.present", of(reference), {args.find("actor_rollout_ref.actor.use_kl_loss")},
             "with use_kl_loss or use_kl_in_reward");
  const Arg* moved = args.find("actor_rollout_ref.ref.fsdp_config.param_offload");
  args.state("reference_model.offloaded", of(args.on("actor_rollout_ref.ref.fsdp_config.param_offload")), {moved},
             moved == nullptr ? why : "");
  if (kind == "gae") {
    args.state("critic.present", of(true), {estimator}, "adv_estimator=gae");
    args.copy("critic.model", {"critic.model.path"});
  }
  args.copy("reward_model", {"reward_model.model.path"});
  option(args, "parallelism.gpus_per_node", {"trainer.n_gpus_per_node"}, of(8), why);
  const Finding* gpus = find(args.reading, "parallelism.gpus_per_node");
  const Arg* nodes = args.find("trainer.nnodes");
  if (gpus != nullptr && gpus->value.is_integer()) {
    args.state("world_size",
               of(gpus->value.integer * (nodes == nullptr || !nodes->value.is_integer() ? 1 : nodes->value.integer)),
               {args.find("trainer.n_gpus_per_node"), nodes}, "GPUs of a node x nodes");
  }
  args.assume("optimizer", of(megatron ? "adamw_torch_fused" : "adamw_torch"), why);
}

void read_openrlhf(Args& args, const Launch& launch) {
  const char* why = "OpenRLHF's default (openrlhf/cli)";
  args.assume("framework.name", of("transformers"), "OpenRLHF trains transformers' models with DeepSpeed");
  std::string task = "ppo";
  for (const char* word : {"sft", "dpo", "kto", "rm", "kd"}) {
    if (contains(launch.program, std::string{"train_"} + word)) task = word;
  }
  args.assume("task", of(task == "rm" ? "reward" : task), "the program's name");
  args.copy("model", {"actor.model_name_or_path", "model.model_name_or_path", "pretrain"});
  const Arg* rank = args.any({"ds.lora.rank", "lora_rank"});
  args.state("method", of(rank != nullptr && rank->value.integer > 0 ? "lora" : "full"), {rank},
             rank == nullptr ? "lora rank default 0" : "");
  option(args, "micro_batch_size", {"train.micro_batch_size", "micro_train_batch_size"}, of(8), why);
  option(args, "global_batch_size", {"train.batch_size", "train_batch_size"}, of(128), why);
  args.copy("rollout_micro_batch_size", {"rollout.micro_batch_size", "micro_rollout_batch_size"});
  option(args, "sequence_length", {"data.max_len", "max_len"}, of(2048), why);
  option(args, "parallelism.zero_stage", {"ds.zero_stage", "zero_stage"}, of(2), why);
  args.state("precision", of("deepspeed_bf16"), {args.any({"ds.param_dtype", "bf16"})}, "param_dtype bf16");
  const Arg* kept = args.any({"actor.gradient_checkpointing_enable", "model.gradient_checkpointing_enable",
                              "train.gradient_checkpointing", "gradient_checkpointing", "ds.gradient_checkpointing"});
  args.state("gradient_checkpointing", of(kept != nullptr ? "full" : "none"), {kept}, kept == nullptr ? why : "");
  args.assume("use_reentrant", of(false), why);
  args.assume("attention", of("flash_attention_2"), why);
  const Arg* packed = args.any({"ds.packing_samples", "packing_samples", "data.packing_samples"});
  args.state("packing", of(packed != nullptr), {packed}, packed == nullptr ? why : "");
  option(args, "max_grad_norm", {"train.max_norm", "max_norm"}, of(1.0), why);
  args.assume("optimizer", of("adamw_torch_fused"), "FusedAdam");
  if (const Arg* moved = args.any({"ds.adam_offload", "adam_offload"}); moved != nullptr)
    args.state("offload.optimizer", of("cpu"), {moved});
  args.copy("num_generations", {"rollout.n_samples_per_prompt", "n_samples_per_prompt"});
  args.copy("actor_gpus", {"actor.num_gpus_per_node", "actor_num_gpus_per_node"});
  args.copy("critic_gpus", {"critic.num_gpus_per_node", "critic_num_gpus_per_node"});
  args.copy("reward_gpus", {"reward.num_gpus_per_node", "reward_num_gpus_per_node"});
  args.copy("vllm_engines", {"vllm.num_engines", "vllm_num_engines"});
  args.copy("vllm_tensor_parallel", {"vllm.tensor_parallel_size", "vllm_tensor_parallel_size"});
  args.copy("vllm_gpu_memory_utilization", {"vllm.gpu_memory_utilization", "vllm_gpu_memory_utilization"});
  args.copy("reward_model", {"reward.model_name_or_path", "reward_pretrain"});
  if (args.on("train.colocate_all") || args.on("colocate_all_models"))
    args.state("colocate_all", of(true), {args.any({"train.colocate_all", "colocate_all_models"})});
  if (args.on("vllm.enable_sleep")) args.state("rollout.sleep", of(true), {args.find("vllm.enable_sleep")});
  if (task == "ppo" || task == "dpo") {
    args.state("reference_model.present", of(true), {args.find("ref.num_gpus_per_node")},
               "the loss compares with a reference model");
    args.copy("reference_model.gpus", {"ref.num_gpus_per_node", "ref_num_gpus_per_node"});
    if (task == "dpo") args.assume("reference_model.offloaded", of(args.on("ref.offload")), why);
  }
}

void read_rl(const Look& look, Sources, Reading& reading) {
  const std::string& file = look.source.name;
  const TrainingScript text = training_script(look);
  const Launch* launch = text.launch;
  if (launch == nullptr) return tell_no_launch(reading, look);
  Args args(reading);
  read_slurm_header(reading, look.head, file);
  add_arguments(args, launch->arguments, file);
  if (look.mentions("openrlhf")) {
    read_openrlhf(args, *launch);
  } else {
    read_verl(args, look);
  }
  const Finding* task = find(reading, "task");
  if (task != nullptr && task->value.string != "sft")
    reading.notes.push_back(task->value.string + " is read and not estimated yet");
  if (!args.told("gpu")) args.unknown("gpu");
  args.tell_unread();
}

const Format kRows[] = {
    {"rl", "verl or OpenRLHF command", recognise_rl, read_rl, 80},
};

}  // namespace

extern const FormatRows rl_rows;
const FormatRows rl_rows = kRows;

}  // namespace tidemark::exchange
