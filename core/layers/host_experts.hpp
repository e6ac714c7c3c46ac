#pragma once

#include "core/layers/moe.hpp"

namespace tidemark {

/// Routed experts that KTransformers computes on the CPU: what the card has of them are rows that go there and come
/// back. `width`: of one expert.
Tensor run_on_host(Net& net, const ExpertForm& form, Dim width, Tensor hidden, Tensor indices, Tensor weights);

}  // namespace tidemark
