#pragma once

#include "core/tape/ops.hpp"

/// What models of pictures use besides. Rules as in ops.hpp.
namespace tidemark {

Tensor mean_over(Tensor x, int dim);               ///< mean(dim)
Tensor amax_last(Tensor x);                        ///< amax(dim=-1): keeps its input and its result
Tensor interpolate(Tensor x, const Shape& shape);  ///< F.interpolate of [n, channels, h, w]; autocast: fp32
/// F.grid_sample of [1, channels, h, w] at `grid` [1, n, 1, 2], as [1, channels, n, 1]; autocast: fp32
Tensor grid_sample(Tensor x, Tensor grid);
/// x[mask] with a mask as large as x, of which `marked` are true: their numbers in a row. The mask stays, and becomes
/// lists of indices at each use.
Tensor index_marked(Tensor x, Tensor mask, Dim marked);
Tensor put_marked(Tensor x, Tensor mask, Tensor values);  ///< x[mask] = values, in place
Tensor roll(Tensor x);                                    ///< torch.roll: a copy, forward and backward
/// nn.BatchNorm2d in training: x [n, channels, h, w]; its statistics are fp32 under autocast and where x is.
Tensor batch_norm(Tensor x, Tensor weight, Tensor bias);
/// nn.MaxPool2d to [height, width], by indices of int64.
Tensor max_pool(Tensor x, Dim height, Dim width);
Tensor average_pool(Tensor x, Dim height, Dim width);  ///< nn.AvgPool2d: keeps its input
/// torch.linalg.vector_norm over the dimensions that `kept` has as ones: keeps its input and its result, which is fp32
/// under autocast.
Tensor vector_norm(Tensor x, const Shape& kept);
Tensor relu_in_place(Tensor x);  ///< nn.ReLU(inplace=True): keeps its result

/// Pictures whose channels lie last in memory, written [n, h, w, channels], as a convolution sees them: [n, channels,
/// h, w], and back. A view either way: what a modelling file permutes costs nothing there.
Tensor channels_first(Tensor x);
Tensor channels_last(Tensor x);

}  // namespace tidemark
