#pragma once

#include "core/tape/shape.hpp"
#include "core/units/dtype.hpp"

namespace tidemark {

/// What cuDNN takes beside a convolution's tensors for as long as its kernel runs. Its kernels for tensor cores want
/// channels last: tensors that have them first are copied, and the channels of 16-bit ones filled up to a multiple of
/// eight. Where the sums of a weight's gradient are divided among blocks, these have partial sums in fp32 beside.
///
/// Read off an H200, call by call (tests/measured/kernels.jsonl; torch 2.11, cuDNN 9.19). Which kernel runs is cuDNN's
/// choice: these are the most that was seen.
struct ConvolutionWorkspace {
  Bytes forward = 0;
  Bytes input_gradient = 0;
  Bytes weight_gradient = 0;
};

/// None with three dimensions of places or channels in groups, which were not measured, nor depthwise with channels
/// first, which took none. x [n, channels, …], weight [out, channels / groups, …kernel], y [n, out, …].
ConvolutionWorkspace convolution_workspace(const Shape& x, const Shape& weight, const Shape& y, Dtype dtype);

/// Its channels are neighbours in memory: nn.Conv2d keeps such a tensor as it is.
bool has_channels_last(const Shape& x);

}  // namespace tidemark
