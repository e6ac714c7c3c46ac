#pragma once

#include "core/optimizers/rows.hpp"

/// bitsandbytes 0.50 optim/optimizer.py (init_state, get_state_buffer) and functional.py: block-wise states.
namespace tidemark::bitsandbytes {

inline constexpr const char* kSource = "bitsandbytes 0.50 optim/optimizer.py, functional.py";

/// Blocks that share a scale.
Count blocks(Count elements);
/// Does an 8-bit optimizer keep 8 bits of this parameter?
bool keeps_8bit(const Parameter& p);
/// Do a paged optimizer's states of it live in managed memory?
bool is_paged(const Parameter& p);

/// `moments` states of 8 bits in blocks with a scale each; parameters of fewer than 4096 elements and token tables
/// (Trainer registers them so) keep 32 bits.
template <int moments>
void create_8bit(OptimizerRun& run, const Parameter& p);
template <int moments>
void create_32bit(OptimizerRun& run, const Parameter& p);

/// The same where states of 1e5 elements and more live in managed memory.
template <int moments>
void create_paged_8bit(OptimizerRun& run, const Parameter& p);
template <int moments>
void create_paged_32bit(OptimizerRun& run, const Parameter& p);
template <int moments>
Bytes managed_8bit(const Parameter& p);
template <int moments>
Bytes managed_32bit(const Parameter& p);

}  // namespace tidemark::bitsandbytes
