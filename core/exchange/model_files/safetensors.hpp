#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/exchange/model_files/tensors.hpp"

namespace tidemark::exchange {

/// Whether the bytes begin like a safetensors file: a length, then a brace.
bool looks_like_safetensors(std::string_view bytes);

/// Reads the header from the first bytes of a file of `size` bytes, as strictly as the reference does (safetensors 0.6
/// safetensors/src/tensor.rs: SafeTensors::read_metadata, Metadata::validate). Empty, or why it is refused.
std::string read_safetensors(std::string_view bytes, std::uint64_t size, ModelHeader& header);

}  // namespace tidemark::exchange
