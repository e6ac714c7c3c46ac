#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/exchange/fields.hpp"

namespace tidemark::exchange {

/// What several formats share, because the tools wrap the same libraries.

/// An `optim` word as the request spells it: "adamw_bnb_8bit" is adamw_8bit, "paged_adamw" is paged_adamw_32bit
/// (transformers 5.12.1 training_args.py: OptimizerNames; trainer.py: get_optimizer_cls_and_kwargs).
std::string optimizer_word(std::string_view optim);

/// ZeRO's stage and offloading by the name of a DeepSpeed file, "ds_z3_offload_config.json"; -1 where it says none.
int zero_stage_of_name(std::string_view name);

/// FSDP 1's strategy by its word, however it is spelt: "ShardingStrategy.SHARD_GRAD_OP", "hybrid_shard auto_wrap".
const char* fsdp_strategy(std::string_view words);

/// A DeepSpeed file that another configuration names: its stage by its name, what it leaves open, and the file itself
/// as something to be read.
void state_deepspeed_file(Keys& keys, const Node* node, bool with_precision);

/// FSDP 1 as accelerate hands it on: what "backward_prefetch", "forward_prefetch" and "use_orig_params" say; without a
/// word nothing is gathered ahead in backward, where FSDP's own default gathers one unit (accelerate 1.14
/// utils/dataclasses.py: FullyShardedDataParallelPlugin; transformers 5.12 training_args.py: _process_fsdp_args).
using OfFsdp = std::function<const Node*(const char* name)>;
void state_fsdp1(Keys& keys, const OfFsdp& option);

/// TRL's keys of GRPO below `prefix` ("trl." of Axolotl's files), under which vLLM's share is called `share`.
void state_rollout(Keys& keys, const std::string& prefix, std::string_view share, const char* mode, const char* why);

/// Option and TRL's name of it, where these differ.
struct OfRollout {
  const char* path;
  const char* key;
};
/// Numbers of GRPOConfig beside what vLLM is told.
std::span<const OfRollout> rollout_numbers();

/// What TRL's GKDConfig says of a teacher and of the answers.
std::span<const OfRollout> distillation_words();

/// "AWQ", "GPTQ", "bnb-4bit" in a model's name: the checkpoint is quantised already. Empty where it says nothing.
std::string quantised_by_name(std::string_view model);

/// Liger's kernels by the options of its `apply_liger_kernel_to_*`, in the request's order.
Value words(std::initializer_list<std::string_view> list);

/// An integer where the real is one: 2e8.
Value tidy_number(const Node& node);

/// Fields of PEFT's configurations beside LoraConfig's own that are the request's under "adapter.".
std::span<const std::string_view> adapter_words();

/// A kind of PEFT's beside those of the request, in small letters as in peft_type ("fourierft"), that trains a little
/// beside frozen weights: LoRA of the same modules stands for it.
bool lora_stands_for(std::string_view kind);

/// A list of words, or one word with commas: "q_proj,v_proj".
Value word_list(const Node& node);

bool contains(std::string_view text, std::string_view word);

}  // namespace tidemark::exchange
