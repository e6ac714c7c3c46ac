#pragma once

#include "core/job/framework.hpp"
#include "core/job/request.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"

/// Axolotl's functions in the place of PEFT's LoRA layers (067b021 src/axolotl/kernels/lora.py): who has them when.
namespace tidemark {

/// Days on which something of them changed.
constexpr int kKernelsByDefault = date_of(2025, 4, 29);  ///< ecac73192: where nothing is said they are on
constexpr int kWithDropout = date_of(2026, 3, 22);       ///< b3289fd19: beside dropout, biases and DoRA, too
constexpr int kFusedNorms = date_of(2026, 4, 12);        ///< b8358aa5a: attention of Gemma 4 norms and turns at once
constexpr int kFusedAddition = date_of(2026, 6, 5);      ///< 69f6d8bab: updates are added inside a product
constexpr int kVariableLengths = date_of(2026, 7, 4);    ///< 8c42d3226: sdpa of packed rows by varlen_attn
constexpr int kFreshGradient = date_of(2026, 7, 8);      ///< 79884679e: the input's gradient gets room of its own

/// Is the job's Axolotl of that day or later? Where no date is stated, transformers' release tells it.
bool axolotl_is_of(const TrainingJob& job, int day);

/// Which of them the job has: where it is open, as Axolotl's check_auto_enable_lora_kernels decides, and of those what
/// its patch can put into such a model.
void settle_lora_kernels(bool open, const Architecture& architecture, TrainingJob& job, Issues& issues);

/// What Axolotl does to attention besides: norms and rotations in one kernel, in Gemma 4 always, in few others where
/// the job says so; and packed rows without a mask, for which those under one stand in.
void settle_axolotl_attention(const Architecture& architecture, TrainingJob& job, Issues& issues);

}  // namespace tidemark
