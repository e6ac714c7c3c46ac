#pragma once

#include "core/tape/ops.hpp"

/// Operations that PEFT's adapters alone use (peft 0.18), by the rules of core/tape/ops.hpp.
namespace tidemark {

/// LyCORIS' HadaWeight: (w1a @ w1b) * (w2a @ w2b) * scale, [out, in].
Tensor hadamard_weight(Tensor w1a, Tensor w1b, Tensor w2a, Tensor w2b);
/// Zeros [n, size, size] above whose diagonals the rows of [n, size (size - 1) / 2] are put.
Tensor upper_triangle(Tensor rows, Dim size);
Tensor add_scaled_in_place(Tensor a, Tensor b);  ///< a.add_(b, alpha=...)
/// torch.linalg.solve(left, right, left=False) of batches of square matrices.
Tensor solve(Tensor left, Tensor right);
/// torch.block_diag of the matrices of [n, size, size], [width, width].
Tensor block_diagonal(Tensor blocks, Dim width);

}  // namespace tidemark
