#pragma once

#include "core/tape/tape.hpp"

/// What speech models use besides: convolutions over a line of frames, the norm of their groups, the CTC loss.
namespace tidemark {

/// nn.Conv1d: x [B, channels, frames], weight [out, channels / groups, kernel]; bias may be undefined.
Tensor convolution1d(Tensor x, Tensor weight, Tensor bias, Count frames);
/// nn.GroupNorm with as many groups as channels.
Tensor group_norm(Tensor x, Tensor weight, Tensor bias);

}  // namespace tidemark
