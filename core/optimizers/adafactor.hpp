#pragma once

#include "core/optimizers/rows.hpp"

namespace tidemark {

/// transformers 5.12 optimization.py Adafactor: a second moment in fp32, of matrices as the means of rows and columns.
void keep_factored_moment(OptimizerRun& run, const Shape& shape);

/// `update.mean(dim=-2)` of a matrix, which is a sum over rows: what its blocks sum by themselves.
void mean_over_rows(const OptimizerRun& run, const Shape& shape);

}  // namespace tidemark
