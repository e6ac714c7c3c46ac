#pragma once

#include <cstdint>
#include <string>

namespace tidemark {

/// A number of bytes; negative only as a difference.
using Bytes = std::int64_t;
/// A number of things (elements, parameters, layers, tokens).
using Count = std::int64_t;

inline constexpr Bytes kKiB = 1024;
inline constexpr Bytes kMiB = 1024 * kKiB;
inline constexpr Bytes kGiB = 1024 * kMiB;

/// The CUDA caching allocator hands out multiples of this many bytes
/// (pytorch v2.6.0 c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize).
inline constexpr Bytes kMinBlockSize = 512;

/// A request as the caching allocator rounds it (same file: round_size, without roundup_power2_divisions). One for no
/// bytes gets no block.
constexpr Bytes round_to_block(Bytes bytes) {
  return (bytes + kMinBlockSize - 1) / kMinBlockSize * kMinBlockSize;
}

/// "13.20 GiB" (2^30), with `decimals` digits, rounded half away from zero, the same digits on every compiler.
std::string format_gib(Bytes bytes, int decimals = 2);
/// "14.17 GB" (10^9).
std::string format_gb(Bytes bytes, int decimals = 2);
/// "14 173 392 896": digits in groups of three, separated by plain spaces.
std::string format_grouped(std::int64_t value);

}  // namespace tidemark
