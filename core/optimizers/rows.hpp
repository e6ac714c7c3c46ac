#pragma once

#include <initializer_list>

#include "core/optimizers/optimizer.hpp"

/// What the rows share. A file of core/optimizers defines `const OptimizerRows <file>_rows`; the build collects them
/// (cmake/registry.cmake), so that an optimizer is one file.
namespace tidemark {

using OptimizerRows = std::span<const Optimizer>;

/// The moments of Adam in the dtype of their parameter.
void keep_adam_moments(OptimizerRun& run, const Parameter& p);

/// torch's foreach implementations make each of these for a whole group of one dtype before any is dropped.
void foreach_temporaries(OptimizerRun& run, std::initializer_list<const char*> names);

/// pytorch 2.6 torch/optim/adam.py _multi_tensor_adam, rmsprop.py _multi_tensor_rmsprop: the square root alone.
void foreach_sqrt(OptimizerRun& run);
/// The same of an optimizer that has these parameters alone, in one group.
void foreach_sqrt_of(OptimizerRun& run, bool (*takes)(const Parameter&));

}  // namespace tidemark
