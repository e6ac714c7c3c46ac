#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/units/bytes.hpp"
#include "core/units/value.hpp"

namespace tidemark::exchange {

/// One tensor as a model file's header names it.
struct FileTensor {
  std::string name;
  std::string dtype;  ///< "BF16" in safetensors; GGML's number of the type in GGUF
  std::vector<Count> shape;
  Count elements = 0;
};

/// What a header says about a model: names, shapes, dtypes. The weights themselves are not read.
struct ModelHeader {
  std::vector<FileTensor> tensors;
  Bytes data_bytes = 0;
  Value metadata;  ///< an object, or null
};

/// The product of a shape; nothing where it is more than any model has.
std::optional<Count> elements_of(const std::vector<Count>& shape);

/// Elements by dtype, in the order of their first tensor.
std::vector<std::pair<std::string, Count>> elements_by_dtype(const std::vector<FileTensor>& tensors);

/// One more than the highest number behind one of these parts of the name: "model.layers.31.mlp" under "layers".
Count highest_number(const std::vector<std::string_view>& names, std::initializer_list<std::string_view> parts);

/// The number of layers that the names tell; 0 where they tell none.
Count layers_of(const std::vector<std::string_view>& names);

}  // namespace tidemark::exchange
