#pragma once

#include <string_view>

namespace tidemark {

/// Keys that stand in many a config.json and change neither a shape nor what runs: token ids, epsilons, rope bases,
/// generation settings, book-keeping of the library that wrote the file.
bool moves_no_memory(std::string_view key);

/// Keys by which some family states its shape. In the file of a family that does not read them they mislead.
bool shapes_some_model(std::string_view key);

}  // namespace tidemark
