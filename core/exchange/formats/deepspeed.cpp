// DeepSpeed's JSON (DeepSpeed edaa7221 deepspeed/runtime/config.py, runtime/zero/config.py); "auto" as transformers and
// accelerate fill it in (transformers 4.56.2 integrations/deepspeed.py: HfTrainerDeepSpeedConfig).
#include "core/exchange/deepspeed_keys.hpp"

#include <algorithm>
#include <utility>

#include "core/exchange/formats/shared.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_deepspeed(const Look& look) {
  if (!look.is_map() || look.has("distributed_type")) return 0;
  for (const char* key : {"zero_optimization", "train_micro_batch_size_per_gpu", "zero_allow_untested_optimizer"}) {
    if (look.has(key)) return 90;
  }
  return look.has("train_batch_size") && (look.has("fp16") || look.has("bf16") || look.has("optimizer")) ? 80 : 0;
}

bool is_auto(const Node* node) {
  return node != nullptr && node->is_string() && node->text == "auto";
}

/// A word in capitals where a number belongs: a template that a script fills in.
bool is_placeholder(const Node* node) {
  return node != nullptr && node->is_string() && !is_auto(node);
}

void list_autos(const Node& node, const std::string& prefix, std::vector<Value>& autos) {
  for (std::size_t at = 0; at < node.keys.size(); ++at) {
    const std::string path = prefix + node.keys[at];
    if (is_auto(&node.items[at])) autos.push_back(of(path));
    if (node.items[at].is_map()) list_autos(node.items[at], path + ".", autos);
  }
}

void read_precision(Keys& keys) {
  const Node* bf16 = keys["bf16.enabled"] != nullptr ? keys["bf16.enabled"] : keys["bfloat16.enabled"];
  const Node* fp16 = keys["fp16.enabled"];
  // DeepSpeed edaa7221 runtime/config.py: _do_error_check: both cannot be enabled.
  refuse_both_halves(keys.reading, bf16 != nullptr && bf16->boolean, fp16 != nullptr && fp16->boolean);
  if (bf16 != nullptr && bf16->boolean) {
    keys.state("precision", of("deepspeed_bf16"), {bf16});
  } else if (fp16 != nullptr && fp16->boolean) {
    keys.state("precision", of("deepspeed_fp16"), {fp16});
  } else if (is_auto(bf16) || is_auto(fp16)) {
    keys.unknown("precision: auto, TrainingArguments.bf16 or fp16 decides");
  } else if (is_placeholder(bf16) || is_placeholder(fp16)) {
    keys.unknown("precision: a placeholder");
  } else {
    keys.state("precision", of("fp32"), {fp16, bf16}, "neither bf16 nor fp16 is enabled");
  }
  keys.touch("fp16");
  keys.touch("bf16");
}

/// A number, or what the question is when it is "auto" or a placeholder.
void read_number(Keys& keys, const char* path, const char* key) {
  const Node* node = keys[key];
  if (node == nullptr) return;
  if (node->is_number()) {
    keys.state(path, tidy_number(*node), {node});
  } else {
    keys.unknown(std::string{path} + ": " + node->text);
  }
}

void read_offload(Keys& keys, const char* path, const std::string& section, const char* old) {
  const std::string here = "zero_optimization." + section + ".";
  if (const Node* device = keys[here + "device"]; device != nullptr) {
    keys.state(path, of(device->text), {device});
  } else if (const Node* flag = keys[std::string{"zero_optimization."} + old]; flag != nullptr && flag->boolean) {
    keys.state(path, of("cpu"), {flag});
  }
  for (const char* size : {"buffer_count", "buffer_size"}) {
    if (const Node* node = keys[here + size]; node != nullptr && node->is_number()) {
      keys.state(std::string{path} + "_" + size, tidy_number(*node), {node});
    }
  }
  for (const char* own : {"max_in_cpu", "pin_memory"}) {
    if (const Node* node = keys[here + own]; node != nullptr) {
      keys.state(std::string{"offload."} + own, node->is_number() ? tidy_number(*node) : to_value(*node), {node});
    }
  }
  keys.touch("zero_optimization." + section);
}

void read_optimizer(Keys& keys) {
  const Node* type = keys["optimizer.type"];
  keys.touch("optimizer");
  keys.touch("scheduler");
  if (type == nullptr) return keys.unknown("optimizer: the training script's");
  const std::string name = lower_case(type->text);
  if (name == "adam" || name == "adamw") {
    keys.state("optimizer", of("adamw_torch"), {type},
               "DeepSpeed builds FusedAdam, or DeepSpeedCPUAdam when the optimizer is offloaded");
  } else {
    keys.state("optimizer", of(name == "onebitadam" ? "onebit_adam" : name), {type});
  }
}

void read_zero(Keys& keys) {
  const Node* stage = keys["zero_optimization.stage"];
  if (stage != nullptr && stage->is_number()) {
    keys.state("parallelism.zero_stage", tidy_number(*stage), {stage});
  } else {
    keys.assume("parallelism.zero_stage", of(0), "default 0 (runtime/zero/config.py: DeepSpeedZeroConfig.stage)");
  }
  read_offload(keys, "offload.optimizer", "offload_optimizer", "cpu_offload");
  read_offload(keys, "offload.parameters", "offload_param", "cpu_offload_params");
  for (const char* name :
       {"reduce_bucket_size", "allgather_bucket_size", "stage3_prefetch_bucket_size",
        "stage3_param_persistence_threshold", "stage3_max_live_parameters", "stage3_max_reuse_distance",
        "sub_group_size", "overlap_comm", "contiguous_gradients", "round_robin_gradients", "zero_hpz_partition_size",
        "zero_quantized_weights", "zero_quantized_gradients", "mics_shard_size"}) {
    const Node* node = keys[std::string{"zero_optimization."} + name];
    if (node != nullptr) keys.state(std::string{"deepspeed."} + name, tidy_number(*node), {node});
  }
}

}  // namespace

void read_deepspeed_keys(Keys& keys) {
  read_zero(keys);
  read_precision(keys);
  read_number(keys, "micro_batch_size", "train_micro_batch_size_per_gpu");
  read_number(keys, "gradient_accumulation_steps", "gradient_accumulation_steps");
  read_number(keys, "max_grad_norm", "gradient_clipping");
  if (const Node* global = keys["train_batch_size"]; global != nullptr && global->is_number()) {
    keys.state("global_batch_size", tidy_number(*global), {global});
  }
  read_optimizer(keys);
  if (const Node* tensor = keys["tensor_parallel.autotp_size"]; tensor != nullptr) {
    keys.state("parallelism.tensor", to_value(*tensor), {tensor});
  }
}

namespace {

void read_deepspeed(const Look& look, Sources, Reading& reading) {
  Keys keys(look.document.root, look.source.name, reading);
  read_deepspeed_keys(keys);
  std::vector<Value> autos;
  list_autos(look.document.root, "", autos);
  if (!autos.empty()) {
    keys.state("auto", of(std::move(autos)), {});
    keys.note("\"auto\" is filled in from TrainingArguments and the model's hidden_size");
  }
  for (const char* question : {"model, method, length", "gpu", "world size"}) keys.unknown(question);
  keys.tell_unread();
}

const Format kRows[] = {
    {"deepspeed", "DeepSpeed configuration", recognise_deepspeed, read_deepspeed, 60},
};

}  // namespace

extern const FormatRows deepspeed_rows;
const FormatRows deepspeed_rows = kRows;

}  // namespace tidemark::exchange
