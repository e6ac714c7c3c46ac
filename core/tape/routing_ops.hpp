#pragma once

#include <vector>

#include "core/tape/ops.hpp"

/// The operations that mixtures of experts are routed and computed with. Rules as in ops.hpp.
namespace tidemark {

/// torch.topk along the last dimension: keeps the indices.
struct TopK {
  Tensor values, indices;
};
TopK topk(Tensor x, Dim k);
Tensor gather_last(Tensor x, Tensor index);  ///< x.gather(-1, index)
/// torch.cat of all layers' tensors, of which these are on the tape: `rows` rows.
Tensor stack_layers(const std::vector<Tensor>& parts, Dim rows);
/// torch.full((…, width)).scatter_(-1, index, values), of which only the values' gradient matters: a gather.
Tensor scatter_last(Tensor values, Tensor index, Dim width);
/// Sum over one dimension, which stays as a one where `keep`; in fp32 where `wide` (dtype=torch.float32).
Tensor sum_over(Tensor x, int dim, bool keep, bool wide = false);
Tensor div_in_place(Tensor a, Tensor b);                ///< a /= b: a clone of a stays for b's gradient
Tensor masked_fill_in_place(Tensor x, Tensor mask);     ///< x.masked_fill_(mask, 0)
Tensor index_some(Tensor x, Tensor indices, Dim rows);  ///< x[indices]: `rows` entries of the first dimension
/// x[rows, columns] with a list of both: one dimension of `count` entries, then what x has beyond two.
Tensor index_pairs(Tensor x, Tensor rows, Tensor columns, Dim count);
/// sum.index_add_(0, index, rows)
Tensor index_add_in_place(Tensor sum, Tensor index, Tensor rows);
/// sum.scatter_add_(0, index, rows)
Tensor scatter_add_in_place(Tensor sum, Tensor index, Tensor rows);
/// hidden_states *= noise of the same shape, which stays for backward.
Tensor add_noise(Tensor x);
/// torch._grouped_mm of [N, in] sorted by expert with [E, in, out]; not on autocast's lists.
Tensor grouped_mm(Tensor x, Tensor weight, Tensor offsets);

}  // namespace tidemark
