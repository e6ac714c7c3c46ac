#include "core/tape/convolution_workspace.hpp"

namespace tidemark {
namespace {

constexpr Count kFilled = 8;           // channels of a 16-bit tensor come in such numbers
constexpr Bytes kAlignment = 147;      // 16, in most calls that copy; 131 more beside some gradients
constexpr Bytes kBesideHalf = 203539;  // more than that, of an input's gradient in 16 bits: three colours
constexpr Bytes kPoints = 512 * kKiB;  // kernels of one point, which are matrix products: of a weight's gradient
constexpr Bytes kPointsForward = 400;  // ... of an output or an input's gradient
// Partial sums of a weight's gradient, the most of 21 convolutions: 512 channels of 64 x 64 places.
constexpr Bytes kPartialSums = 8651487;
// In fp32 one of 12 (320 channels of 64 x 64 places, two samples) took another kernel, with this more than copies.
constexpr Bytes kPartialSumsFp32 = 37273584;

// Each channel by itself (depthwise) with channels last, the weight's gradient: 7 x 7 places of 96 channels took a
// quarter of the input in 16 bits and 9.04 inputs in fp32; 3 x 3 of 256 next to nothing.
constexpr Bytes kOfInputHalf = 4, kInputs = 10;

Count filled(Count channels, Dtype dtype) {
  return size_of(dtype) == 2 ? (channels + kFilled - 1) / kFilled * kFilled : channels;
}

Bytes with_filled_channels(const Shape& s, Dtype dtype) {
  return s.numel() / s.size(1) * filled(s.size(1), dtype) * size_of(dtype);
}

}  // namespace

bool has_channels_last(const Shape& x) {
  return x.rank == 4 && x.size(1) > 1 && x.strides[1] == 1 && !x.is_contiguous();
}

namespace {

bool may_take_workspace(const Shape& x, const Shape& weight) {
  constexpr int kPlaces = 4;  // [n, channels, height, width]
  const bool whole = weight.size(1) == x.size(1), depthwise = weight.size(0) == x.size(1) && weight.size(1) == 1;
  return x.rank <= kPlaces && (whole || (depthwise && has_channels_last(x)));
}

}  // namespace

ConvolutionWorkspace convolution_workspace(const Shape& x, const Shape& weight, const Shape& y, Dtype dtype) {
  if (!may_take_workspace(x, weight)) return {};
  const bool half = size_of(dtype) == 2, last = has_channels_last(x);
  if (weight.size(1) != x.size(1)) {
    const Bytes input = x.numel() * size_of(dtype);
    return {0, 0, half ? input / kOfInputHalf : input * kInputs};
  }
  Count points = 1;
  for (int d = 2; d < weight.rank; ++d) points *= weight.size(d);
  if (points == 1) return {kPointsForward, kPointsForward, last ? kPartialSums : kPoints};
  const Bytes sums = half ? kPartialSums : kPartialSumsFp32;
  const Bytes forward = half ? 0 : kPartialSums, gradient = half ? kBesideHalf : kPartialSums;
  // Where channels come last but are no multiple of eight they are copied all the same.
  if (last && x.size(1) % kFilled == 0) {
    return {kAlignment + forward, kAlignment + gradient, sums};
  }
  const Bytes copies =
      with_filled_channels(x, dtype) + y.numel() * size_of(dtype) + with_filled_channels(weight, dtype) + kAlignment;
  return {copies + forward, copies + gradient, copies + sums};
}

}  // namespace tidemark
