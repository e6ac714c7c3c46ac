#include "core/runtime/gpu.hpp"

#include <cstddef>
#include <iterator>

#include "core/units/nearest.hpp"

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

bool has_measured_default(const Gpu& gpu) {
  // A total above the board's default was measured with ECC switched off (A40).
  return gpu.torch_visible_bytes > 0 && (gpu.nvidia_smi_bytes == 0 || gpu.torch_visible_bytes <= gpu.nvidia_smi_bytes);
}

bool names(const Gpu& gpu, std::string_view key, std::string_view name_or_alias) {
  const std::string own = gpu_key(name_or_alias);
  if (key == own) return true;
  if (key.substr(0, own.size()) != own) return false;
  const std::string_view rest = key.substr(own.size());
  const std::string gib = std::to_string(gpu.marketed_bytes / kGiB);
  return rest == gib + "gb" || rest == gib + "gib" || rest == gib + "g";
}

}  // namespace

Bytes driver_held_back(Bytes total) {
  return 384 * kMiB + total / 1000 * 3;
}

Bytes Gpu::usable_bytes() const {
  if (has_measured_default(*this)) return torch_visible_bytes;
  if (unified) return marketed_bytes / 3 * 2;
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

const Gpu* find_gpu(std::span<const Gpu> gpus, std::string_view name) {
  const std::string key = gpu_key(name);
  if (key.empty()) return nullptr;
  for (const Gpu& gpu : gpus) {
    if (key == gpu_key(gpu.name)) return &gpu;
    for (const std::string& alias : gpu.aliases) {
      if (key == gpu_key(alias)) return &gpu;
    }
  }
  for (const Gpu& gpu : gpus) {
    if (names(gpu, key, gpu.name)) return &gpu;
    for (const std::string& alias : gpu.aliases) {
      if (names(gpu, key, alias)) return &gpu;
    }
  }
  return nullptr;
}

std::string nearest_gpu(std::span<const Gpu> gpus, std::string_view name) {
  std::vector<std::string> keys;
  std::vector<const Gpu*> owners;
  for (const Gpu& gpu : gpus) {
    keys.push_back(gpu_key(gpu.name));
    owners.push_back(&gpu);
    for (const std::string& alias : gpu.aliases) {
      keys.push_back(gpu_key(alias));
      owners.push_back(&gpu);
    }
  }
  const std::vector<std::string_view> candidates(keys.begin(), keys.end());
  const std::string found = nearest(gpu_key(name), candidates);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!found.empty() && keys[i] == found) return owners[i]->name;
  }
  return {};
}

}  // namespace tidemark
