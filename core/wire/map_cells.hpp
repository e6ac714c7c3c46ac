#pragma once

#include <string_view>
#include <vector>

#include "core/wire/engine.hpp"

namespace tidemark {

/// Allocated bytes (expected) of the request's job for every pair of a micro batch size and a sequence length: one row
/// per batch size. NaN where there is no estimate; what is wrong with the request, `Engine::handle` tells.
std::vector<double> map_cells(const Engine& engine, std::string_view request, const std::vector<double>& batches,
                              const std::vector<double>& sequences);

}  // namespace tidemark
