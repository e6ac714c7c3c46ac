#pragma once

#include "core/units/bytes.hpp"

namespace tidemark {

/// Elements of a row that share a scale, in 4-bit floats. Source: torchao 0.18 prototype/mx_formats, mx_tensor.py to_mx
/// (block_size) and nvfp4_tensor.py to_nvfp4.
inline constexpr Count kMxBlock = 32;
inline constexpr Count kNvBlock = 16;

}  // namespace tidemark
