#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark {

/// What kind of torch module it is, as far as adapters can tell.
enum class ModuleKind : std::uint8_t {
  kLinear,       ///< nn.Linear
  kConv1d,       ///< transformers.pytorch_utils.Conv1D
  kConvolution,  ///< nn.Conv2d, nn.Conv3d
  kEmbedding,    ///< nn.Embedding
  kOther,        ///< a norm, a module of the model's own
};

/// What a module is there for.
enum class ModuleRole : std::uint8_t {
  kAttention,
  kMlp,
  kNorm,
  kEmbedding,
  kHead,
  kOther,
};

/// A module with parameters of its own, as the program that uses it names it.
struct Module {
  std::string path;                          ///< inside its layer ("self_attn.q_proj"), or of the model
  ModuleKind kind = ModuleKind::kOther;      ///< what adapters can be put on it
  ModuleRole role = ModuleRole::kOther;      ///< what it is for
  bool is_output_head = false;               ///< get_output_embeddings() returns it
  bool is_token_table = false;               ///< get_input_embeddings() returns it
  bool is_tied = false;                      ///< its weight is the token table's
  bool is_expert = false;                    ///< its parameters are those of all experts of a layer
  bool is_quantised = false;                 ///< bitsandbytes replaces it
  std::int64_t in_features = 0;              ///< of a linear layer
  std::int64_t out_features = 0;             ///< the same
  std::vector<std::string_view> parameters;  ///< their names in it: "weight", "bias"
};

/// The modules that a program has used.
struct Census {
  std::vector<Module> outside;              ///< of the model, outside its layers
  std::vector<std::vector<Module>> layers;  ///< of each layer that ran
};

}  // namespace tidemark
