#include "core/runtime/gpu.hpp"

#include <cstddef>
#include <iterator>

namespace tidemark {
namespace {

// Words that makers put in front of the part of a name which people use. tests/catalog/check_catalog.py has the same.
constexpr std::string_view kVendorWords[] = {"nvidia",   "geforce", "rtx", "gtx",   "tesla", "quadro", "amd",
                                             "instinct", "radeon",  "rx",  "intel", "apple", "google", "aws"};

// nvidia-smi's total by marketed memory, where ECC does not take its share of it: 0.995 (H100, H200, B200, RTX 5090);
// cards of earlier generations show all of it.
constexpr Bytes board_total(Bytes marketed) {
  return marketed - marketed / 200;
}

// Metal's recommendedMaxWorkingSetSize: two thirds up to 32 GB (21845 MiB: ollama/ollama#434), three quarters above
// (73728 MiB of 96 GB: ggml-org/llama.cpp#3213; 48 of 64 and 144 of 192 GB: raullenchai/Rapid-MLX#183).
// ROCm shows half of what a Ryzen has (62.47 of 124.92 GiB: unslothai/unsloth#7960).
Bytes unified_share(const Gpu& gpu) {
  if (gpu.vendor == "AMD") return gpu.marketed_bytes / 2;
  return gpu.marketed_bytes > 32 * kGiB ? gpu.marketed_bytes / 4 * 3 : gpu.marketed_bytes / 3 * 2;
}

bool has_measured_default(const Gpu& gpu) {
  // A total above the board's default was measured with ECC switched off (A40).
  return gpu.torch_visible_bytes > 0 && (gpu.nvidia_smi_bytes == 0 || gpu.torch_visible_bytes <= gpu.nvidia_smi_bytes);
}

}  // namespace

Bytes driver_held_back(Bytes total) {
  return 384 * kMiB + total / 1000 * 3;
}

Bytes Gpu::usable_bytes() const {
  if (has_measured_default(*this)) return torch_visible_bytes;
  if (unified) return unified_share(*this);
  const Bytes total = nvidia_smi_bytes > 0 ? nvidia_smi_bytes : board_total(marketed_bytes);
  return total - driver_held_back(total);
}

bool Gpu::usable_is_estimated() const {
  return !has_measured_default(*this);
}

std::string gpu_key(std::string_view name) {
  std::string key;
  for (const char c : name) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+') key += c;
    if (c >= 'A' && c <= 'Z') key += static_cast<char>(c - 'A' + 'a');
  }
  std::string_view rest = key;
  for (std::size_t i = 0; i < std::size(kVendorWords);) {
    const std::string_view word = kVendorWords[i];
    if (rest.size() > word.size() && rest.substr(0, word.size()) == word) {
      rest.remove_prefix(word.size());
      i = 0;
    } else {
      ++i;
    }
  }
  return std::string(rest);
}

}  // namespace tidemark
