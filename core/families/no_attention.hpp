#pragma once

#include "core/layers/program.hpp"

namespace tidemark {

/// Of families without attention: transformers takes "sdpa" and "eager" for nothing, and refuses flash-attn.
inline constexpr AttentionSupport kNoAttention = {
    .flash_attention_2 = false, .flash_attention_3 = false, .core_alone = false};

}  // namespace tidemark
