#pragma once

#include <optional>
#include <string_view>

#include "core/units/bytes.hpp"

namespace tidemark::exchange {

/// A size as PyTorch and vLLM print it, "12.50 MiB", "0 bytes", "-1.05GiB": two decimals, so exact to 1/200 of the
/// unit. KB, MB and GB are powers of 1024 there (c10/core/... format_size; MPSAllocator.mm before torch 2.7). Nothing
/// where the text is none, or where NVML could not say: it is then 2^64 - 1 bytes, printed "17179869184.00 GiB".
std::optional<Bytes> size_in(std::string_view text);

/// The size that ends before `at`, respectively begins there; spaces between do not matter.
std::optional<Bytes> size_before(std::string_view text, std::size_t at);
std::optional<Bytes> size_after(std::string_view text, std::size_t at);

/// A whole number in digits alone.
std::optional<std::int64_t> whole_number(std::string_view text);

}  // namespace tidemark::exchange
