#pragma once

#include <string_view>

namespace tidemark {

/// Whether a freeze pattern names this module: the pattern's text occurs in the path; `*` stands for any run of
/// characters, `^` and `$` anchor the ends ("^model.embed_tokens", "layers.0.", "vision_tower").
bool matches_module(std::string_view pattern, std::string_view module);

/// PEFT's target_modules: the whole path, or its last parts ("q_proj", "self_attn.q_proj").
bool targets_module(std::string_view target, std::string_view module);

}  // namespace tidemark
