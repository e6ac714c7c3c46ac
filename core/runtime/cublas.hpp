#pragma once

#include "core/units/bytes.hpp"

namespace tidemark {

/// cuBLAS gets its workspace from PyTorch's caching allocator, so it is part of `memory_allocated()`. One for each pair
/// of cuBLAS handle and stream, taken at the first matrix multiplication and kept.
/// pytorch v2.6.0 aten/src/ATen/cuda/CublasHandlePool.cpp: parseChosenWorkspaceSize, default ":4096:2:16:8".
inline constexpr Bytes kCublasWorkspace = 2 * 4096 * kKiB + 8 * 16 * kKiB;
/// The same on Hopper (sm_90): eight chunks of 4096 KiB.
inline constexpr Bytes kCublasWorkspaceSm90 = 8 * 4096 * kKiB;

/// Handles of a training process on one stream: the thread that runs forward has one, autograd's device thread the
/// other (it appears with the first matrix multiplication of backward). Confirmed by stage-by-stage measurements on an
/// RTX 4080: 0.008 GiB above the oracle after forward, 0.0164 to 0.0177 GiB after backward.
inline constexpr int kCublasHandles = 2;

/// cuBLASLt (matrix multiplication with bias, `addmm`) takes this for the duration of each call.
/// pytorch v2.6.0 aten/src/ATen/cuda/CUDABlas.cpp: _getWorkspaceSize.
inline constexpr Bytes kCublasLtWorkspace = 1 * kMiB;

/// Workspace of one handle on a GPU of this compute capability (90 is sm_90).
/// PyTorch 2.6 to 2.14 single out sm_90 alone. 32 MiB for Blackwell came and may have gone again during 2026
/// (pytorch PRs 175344 and 182669), and ROCm has sizes of its own; neither is modelled.
/// `deterministic`: CUBLAS_WORKSPACE_CONFIG=:4096:8, eight chunks of 4096 KiB on any card.
Bytes cublas_workspace_bytes(int compute_capability, bool deterministic);

}  // namespace tidemark
