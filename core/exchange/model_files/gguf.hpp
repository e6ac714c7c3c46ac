#pragma once

#include <string>
#include <string_view>

#include "core/exchange/model_files/tensors.hpp"

namespace tidemark::exchange {

/// A GGUF header (llama.cpp docs: gguf.md). Metadata are scalars and words; of a list only its length, as
/// {"length": n}. Tensors' dimensions are turned round, so that they read as PyTorch's.
struct GgufHeader {
  std::int64_t version = 0;
  ModelHeader model;
  bool whole = true;  ///< false: the bytes ended before the header did, and what was read is its begin
};

/// Empty, or why it is refused.
std::string read_gguf(std::string_view bytes, GgufHeader& header);

}  // namespace tidemark::exchange
