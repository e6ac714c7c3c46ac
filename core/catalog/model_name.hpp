#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidemark {

/// What a model's name says, apart from how it is spelt: "unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit" and
/// "llama3.1:8b" are both {"llama", "3.1", "8b"}.
struct ModelName {
  std::vector<std::string> atoms;   ///< family, version, size and variant as written, lower case: {"qwen", "2.5", "7b"}
  std::vector<std::string> tuning;  ///< left out because they leave the shape as it is: "instruct", "2507", "128k"
  std::vector<std::string> packing;  ///< left out because they tell how the weights are stored: "gguf", "4bit", "awq"

  /// The atoms with one blank between: what names are compared by.
  std::string key() const;
};

/// The part of what people paste that names a repository: a Hugging Face or ModelScope address, a local path, a path
/// of the hub's cache, a revision behind "@" are reduced to "owner/name" or "name". Of a local path the later entries
/// are the folders above, the nearest first.
std::vector<std::string> repositories_in(std::string_view typed);

/// Reads a name without its owner. Separators (blank, "-", "_", ":", "/") part atoms, and so do letters and digits that
/// meet. Between two digits "_" and "-" may stand for a dot ("llama3_1_8b", "qwen2-5-7b"): the first reading takes
/// "_" for a dot and "-" for a separator, the others are what else it may mean.
std::vector<ModelName> read_model_name(std::string_view repository);

/// "8b", "0.5b", "125m", "8x7b": an atom that states how large a model is.
bool is_size(std::string_view atom);
/// "3", "2.5": an atom that counts generations.
bool is_version(std::string_view atom);

}  // namespace tidemark
