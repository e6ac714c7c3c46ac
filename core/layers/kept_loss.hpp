#pragma once

#include "core/layers/net.hpp"

namespace tidemark {

/// Of classes that leave padding out of their loss themselves: CrossEntropyLoss of
/// logits[..., :-1, :][attention_mask[:, 1:] != 0] in the dtype that they have, and of a shifted copy where the class
/// is handed no mask. `masked`: it is handed one always. How much is padding a request does not say: the figure is of
/// rows that are full, the least (Assumptions) of rows whose last eighth is not counted, as in the oracle's records.
Tensor kept_cross_entropy(Net& net, Tensor logits, bool masked = false);

}  // namespace tidemark
