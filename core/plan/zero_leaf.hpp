#pragma once

#include <string_view>

namespace tidemark {

/// DeepSpeed 0.19.8 runtime/zero/leaf_module_config.py, DEFAULT_LEAF_MODULE_CLASSES: MixtralSparseMoeBlock,
/// Qwen2MoeSparseMoeBlock and Qwen3MoeSparseMoeBlock are gathered, reduced and let go as one.
bool has_leaf_modules(std::string_view model_type);

/// The order in which such a block defines its modules, and so that of their parameters' ds_id; -1: `module` lies
/// outside of it (a dense layer's "mlp.gate_proj", too).
int place_in_leaf(std::string_view module, bool experts_first);

}  // namespace tidemark
