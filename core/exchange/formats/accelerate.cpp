// accelerate's YAML (accelerate 1.14.0 commands/config/config_args.py, utils/dataclasses.py:
// FullyShardedDataParallelPlugin, DeepSpeedPlugin, ParallelismConfig).
#include "core/exchange/accelerate_keys.hpp"

#include <algorithm>
#include <utility>

#include "core/exchange/formats/shared.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_accelerate(const Look& look) {
  if (!look.is_map()) return 0;
  if (look.has("distributed_type") || look.has("compute_environment")) return 95;
  return look.has("num_processes") && look.has("mixed_precision") ? 80 : 0;
}

/// `no` without quotes is YAML's false.
std::string word_of(const Node* node) {
  if (node == nullptr) return {};
  return node->is_bool() ? "no" : lower_case(node->text);
}

/// The size of one axis, 1 where it is not given.
const Node* axis(Keys& keys, const char* name) {
  return keys[std::string{"parallelism_config.parallelism_config_"} + name + "_size"];
}

std::int64_t size_of(const Node* node) {
  return node == nullptr || !node->is_number() ? 1 : node->integer;
}

void read_axes(Keys& keys, const Node* processes) {
  const Node* replicate = axis(keys, "dp_replicate");
  const Node* shard = axis(keys, "dp_shard");
  const Node* tensor = axis(keys, "tp");
  const Node* context = axis(keys, "cp");
  if (axis(keys, "sp") != nullptr) not_counted(keys.reading, "sequence parallelism (parallelism_config_sp_size)");
  keys.touch("parallelism_config");
  const std::int64_t model = size_of(tensor) * size_of(context);
  if (processes != nullptr && processes->is_number() && model > 0) {
    keys.state("parallelism.data", of(processes->integer / model), {processes, shard, replicate});
  }
  if (size_of(tensor) > 1) keys.state("parallelism.tensor", to_value(*tensor), {tensor});
  if (size_of(context) > 1) keys.state("parallelism.context", to_value(*context), {context});
  if (replicate != nullptr) keys.state("parallelism.data_replicate", to_value(*replicate), {replicate});
  if (shard != nullptr) keys.state("parallelism.data_shard", to_value(*shard), {shard});
}

void read_topology(Keys& keys) {
  const Node* processes = keys["num_processes"];
  const Node* machines = keys["num_machines"];
  const bool counted = processes != nullptr && processes->is_number();
  if (counted) {
    keys.state("world_size", to_value(*processes), {processes});
  } else {
    keys.unknown("world size");
  }
  if (machines != nullptr) {
    keys.state("nodes", to_value(*machines), {machines});
  } else {
    keys.assume("nodes", of(1), "default 1 (commands/config/config_args.py)");
  }
  read_axes(keys, processes);
  const std::int64_t nodes = size_of(machines);
  if (counted && nodes > 0) {
    keys.state("parallelism.gpus_per_node", of(processes->integer / nodes), {processes, machines});
  }
}

void read_deepspeed_section(Keys& keys, const Node* mixed) {
  if (const Node* file = keys["deepspeed_config.deepspeed_config_file"]; file != nullptr) {
    keys.unknown("the DeepSpeed JSON: " + file->text);
    keys.unknown("precision: in the DeepSpeed JSON");
    keys.reading.companions.push_back(file->text);
  } else {
    if (!keys.copy("parallelism.zero_stage", "deepspeed_config.zero_stage")) {
      keys.assume("parallelism.zero_stage", of(2), "default 2 (utils/dataclasses.py: DeepSpeedPlugin)");
    }
    const std::string word = word_of(mixed);
    const char* precision = word == "bf16" ? "deepspeed_bf16" : word == "fp16" ? "deepspeed_fp16" : "fp32";
    keys.state("precision", of(precision), {mixed});
  }
  for (const auto& [path, name] :
       {std::pair{"offload.optimizer", "offload_optimizer_device"}, {"offload.parameters", "offload_param_device"}}) {
    const Node* device = keys[std::string{"deepspeed_config."} + name];
    if (device != nullptr) keys.state(path, of(device->text), {device});
  }
  keys.copy("zero3_init", "deepspeed_config.zero3_init_flag");
  keys.copy("gradient_accumulation_steps", "deepspeed_config.gradient_accumulation_steps");
  keys.copy("max_grad_norm", "deepspeed_config.gradient_clipping");
}

/// FSDP1's strategy by its word or its number.
const char* strategy_of(const Node* node) {
  const std::string word = node == nullptr ? std::string{} : lower_case(node->text);
  if (contains(word, "hybrid") || word == "4") return "hybrid_shard";
  if (word == "shard_grad_op" || word == "2") return "shard_grad_op";
  return word == "no_shard" || word == "3" ? "none" : "full_shard";
}

void read_fsdp_section(Keys& keys, const Node* type, const Node* mixed) {
  const auto option = [&](const char* name) -> const Node* { return keys[std::string{"fsdp_config."} + name]; };
  const Node* version = option("fsdp_version");
  const Node* reshard = option("fsdp_reshard_after_forward");
  if (version != nullptr && (version->integer == 2 || version->text == "2")) {
    keys.state("parallelism.fsdp", of("fsdp2"), {version});
    if (reshard != nullptr && reshard->is_bool())
      keys.state("parallelism.reshard_after_forward", to_value(*reshard), {reshard});
  } else {
    const Node* strategy = option("fsdp_sharding_strategy");
    if (strategy == nullptr) strategy = reshard;
    keys.state("parallelism.fsdp", of(strategy_of(strategy)), {strategy, type});
    state_fsdp1(keys, [&](const char* name) { return option(("fsdp_" + std::string{name}).c_str()); });
  }
  if (const Node* one = option("fsdp_cpu_ram_efficient_loading"); one != nullptr && one->is_bool() && one->boolean) {
    keys.state("parallelism.fsdp_options.cpu_ram_efficient_loading", to_value(*one), {one});
  }
  if (const Node* offload = option("fsdp_offload_params"); offload != nullptr && offload->boolean) {
    keys.state("offload.parameters", of("cpu"), {offload});
    keys.state("offload.optimizer", of("cpu"), {offload});
  }
  if (const Node* kept = option("fsdp_activation_checkpointing"); kept != nullptr && kept->boolean) {
    keys.state("gradient_checkpointing", of("full"), {kept});
  }
  if (const Node* wrap = option("fsdp_auto_wrap_policy"); wrap != nullptr)
    keys.state("fsdp_wrap", of(wrap->text), {wrap});
  if (const Node* wrapped = option("fsdp_transformer_layer_cls_to_wrap"); wrapped != nullptr) {
    keys.state("fsdp_wrap_cls", to_value(*wrapped), {wrapped});
  }
  if (const std::string word = word_of(mixed); word == "bf16" || word == "fp16") {
    keys.state("parallelism.fsdp_mixed_precision", object({{"param", of(word)}, {"reduce", of(word)}}), {mixed},
               "accelerate sets the dtypes of parameters, reductions and buffers to mixed_precision");
  }
}

}  // namespace

void read_accelerate_sharding(Keys& keys) {
  const Node* mixed = keys["mixed_precision"];
  const Node* type = keys["distributed_type"];
  const std::string kind = word_of(type);
  if (kind == "deepspeed" || keys["deepspeed_config"] != nullptr) read_deepspeed_section(keys, mixed);
  if (kind == "fsdp" || kind == "fsdp2") read_fsdp_section(keys, type, mixed);
  if (kind == "multi_gpu") keys.state("parallelism.fsdp", of("none"), {type});
}

namespace {

void read_accelerate(const Look& look, Sources, Reading& reading) {
  Keys keys(look.document.root, look.source.name, reading);
  const Node* mixed = keys["mixed_precision"];
  if (mixed != nullptr) {
    keys.state("mixed_precision", of(word_of(mixed)), {mixed});
  } else {
    keys.assume("mixed_precision", of("no"), "not given");
  }
  read_topology(keys);
  read_accelerate_sharding(keys);
  keys.unknown("model, method, batch, length: in the training script or its YAML");
  keys.unknown("gpu");
  keys.tell_unread();
}

const Format kRows[] = {
    {"accelerate", "accelerate configuration", recognise_accelerate, read_accelerate, 55},
};

}  // namespace

extern const FormatRows accelerate_rows;
const FormatRows accelerate_rows = kRows;

}  // namespace tidemark::exchange
