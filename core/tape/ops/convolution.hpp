#pragma once

#include <initializer_list>

#include "core/tape/tape.hpp"

/// Convolutions of speech, of pictures and of layers that keep a state, and what works on their channels.
namespace tidemark {

/// nn.Conv1d, nn.Conv2d with any stride and padding: x [n, channels, …], weight [out, channels / groups, …kernel]; bias
/// may be undefined. The result is [n, out, …places].
Tensor convolution(Tensor x, Tensor weight, Tensor bias, std::initializer_list<Dim> places);
/// nn.GLU(dim=1): keeps its input
Tensor gated_channels(Tensor x);
/// nn.GroupNorm
Tensor group_norm(Tensor x, Tensor weight, Tensor bias, Count groups);

}  // namespace tidemark
