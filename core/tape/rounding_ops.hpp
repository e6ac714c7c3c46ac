#pragma once

#include "core/tape/ops.hpp"

/// What rounding with a gradient is made of. Rules as in ops.hpp.
namespace tidemark {

Tensor round(Tensor x);       ///< torchao's _Round: the gradient goes through; keeps nothing
Tensor abs(Tensor x);         ///< keeps its input
Tensor reciprocal(Tensor x);  ///< keeps its result; autocast: fp32

}  // namespace tidemark
