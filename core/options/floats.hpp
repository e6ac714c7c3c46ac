#pragma once

#include "core/options/builders.hpp"

namespace tidemark {

/// Dtypes by the words that requests use, and PyTorch's own.
inline constexpr Choice kFloats[] = {
    {"fp32", number(Dtype::kFp32), "32-bit float"},      {"bf16", number(Dtype::kBf16), "bfloat16"},
    {"fp16", number(Dtype::kFp16), "half precision"},    {"fp8", number(Dtype::kFp8), "8-bit float", false},
    {"float32", number(Dtype::kFp32), "", true, "fp32"}, {"bfloat16", number(Dtype::kBf16), "", true, "bf16"},
    {"float16", number(Dtype::kFp16), "", true, "fp16"},
};

}  // namespace tidemark
