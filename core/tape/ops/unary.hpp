#pragma once

#include "core/tape/ops.hpp"

namespace tidemark {

/// An elementwise kernel of one operand, in its dtype; autograd keeps what it was given, or what it made.
Tensor unary(Tensor x, const char* name, BackwardFn backward, bool save_input, bool save_output);

}  // namespace tidemark
