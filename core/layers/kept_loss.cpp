#include "core/layers/kept_loss.hpp"

#include <algorithm>

#include "core/layers/losses.hpp"
#include "core/layers/tensor_parallel.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {

Tensor kept_cross_entropy(Net& net, Tensor logits_in, bool masked) {
  if (!net.job.padding && !masked) return shifted_cross_entropy(net, std::move(logits_in));
  if (net.job.has_outer_loss()) return {};
  const Tensor logits = std::move(logits_in);
  Tape& t = net.tape;
  const Count others = net.S.n() - 1;
  const bool drops = net.job.padding && net.job.assumptions.other_padding;
  const Count kept = drops ? others - std::max<Count>(1, net.S.n() / 8) : others;
  const Dim rows(net.B.n() * std::max<Count>(kept, 1), Symbol::kTokens);
  Tensor shift;
  {
    const Tensor mask = t.allocate(Shape{net.B, Dim(others)}, Dtype::kBool, "ne");
    const Tensor places = t.allocate(Shape{rows, Dim(2)}, Dtype::kInt64, "nonzero");
    shift = index_pairs(narrow(logits, 1, 0, Dim(others)), places, places, rows);
  }
  return loss_of(net, std::move(shift), t.allocate(Shape{rows}, Dtype::kInt64, "shift_labels"));
}

}  // namespace tidemark
