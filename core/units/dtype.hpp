#pragma once

#include <cstdint>
#include <string_view>

namespace tidemark {

/// Element types as PyTorch names them. Packed 4-bit weights live in `uint8` storages.
enum class Dtype : std::uint8_t { kFp32, kBf16, kFp16, kFp8, kInt64, kInt32, kInt8, kUint8, kBool };

/// Bytes of one element.
constexpr std::int64_t size_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp32:
    case Dtype::kInt32:
      return 4;
    case Dtype::kBf16:
    case Dtype::kFp16:
      return 2;
    case Dtype::kInt64:
      return 8;
    case Dtype::kFp8:
    case Dtype::kInt8:
    case Dtype::kUint8:
    case Dtype::kBool:
      return 1;
  }
  return 0;
}

/// The name used in requests, answers and formulas ("fp32", "bf16", …).
constexpr std::string_view name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp32:
      return "fp32";
    case Dtype::kBf16:
      return "bf16";
    case Dtype::kFp16:
      return "fp16";
    case Dtype::kFp8:
      return "fp8";
    case Dtype::kInt64:
      return "int64";
    case Dtype::kInt32:
      return "int32";
    case Dtype::kInt8:
      return "int8";
    case Dtype::kUint8:
      return "uint8";
    case Dtype::kBool:
      return "bool";
  }
  return "";
}

constexpr bool is_floating(Dtype dtype) {
  return dtype == Dtype::kFp32 || dtype == Dtype::kBf16 || dtype == Dtype::kFp16 || dtype == Dtype::kFp8;
}
constexpr bool is_half(Dtype dtype) {
  return dtype == Dtype::kBf16 || dtype == Dtype::kFp16;
}

}  // namespace tidemark
