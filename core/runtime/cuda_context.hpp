#pragma once

#include <string_view>

#include "core/runtime/gpu.hpp"
#include "core/units/bytes.hpp"
#include "core/units/category.hpp"

namespace tidemark {

/// What a process takes on the card outside PyTorch's allocator before it has done anything distributed: the CUDA
/// context and the kernels loaded so far. Bytes. With lazy loading of kernels (CUDA 11.7 and PyTorch 1.13 on; before,
/// 0.9 to 1.8 GiB).
struct CudaContext {
  Bytes low = 0;       ///< smallest figure reported
  Bytes expected = 0;  ///< while training
  Bytes high = 0;      ///< largest figure reported, or the expected one and the most that kernels were seen to add
  Confidence confidence = Confidence::kModelled;  ///< measured on this card, or taken from a relative
  std::string_view source;                        ///< where the figures come from
};

/// By card where somebody measured it, else by compute capability.
CudaContext cuda_context(const Gpu& gpu);

}  // namespace tidemark
