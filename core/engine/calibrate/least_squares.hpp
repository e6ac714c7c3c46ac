#pragma once

#include <optional>
#include <vector>

namespace tidemark {

/// The unknowns x for which the sum of squares of `columns` · x − `wanted` is least. A column that is nothing, or that
/// the ones before it make up, determines no unknown of its own and has none.
std::vector<std::optional<double>> least_squares(const std::vector<std::vector<double>>& columns,
                                                 const std::vector<double>& wanted);

}  // namespace tidemark
