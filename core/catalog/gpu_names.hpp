#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/runtime/gpu.hpp"

namespace tidemark {

/// The card that people mean by what they type.
struct GpuMatch {
  Gpu gpu;                ///< of the catalog; of those sold in several sizes the one that was named, else the largest
  int count = 1;          ///< how many of them the name stands for: "2x T4", "p4d.24xlarge"
  bool instance = false;  ///< the name is that of a rented machine, not of a card
};

/// An amount of memory in place of a card's name.
struct MemoryText {
  double vram_gb = 0.0;     ///< what a box says: "24gb", "80 GB", "24g"; 0 when it is not this
  double memory_gib = 0.0;  ///< what torch sees: "24GiB"; 0 when it is not this
};

/// Reads a name that is nothing but an amount of memory; nothing where it says more.
std::optional<MemoryText> read_memory_text(std::string_view typed);

/// The card of that name: by gpu_key() of a name or alias; with its memory said anywhere ("a100 80gb sxm", "v100 32");
/// with a count ("2x t4", "a100 x8"); a rented machine ("a2-highgpu-8g"); in words put around it ("colab t4",
/// "macbook pro m3 max 64gb"). Nothing where several or none could be meant.
std::optional<GpuMatch> find_gpu(std::span<const Gpu> gpus, std::string_view typed);

/// The name of the card that a misspelt name most likely means; empty when none is near.
std::string nearest_gpu(std::span<const Gpu> gpus, std::string_view typed);

}  // namespace tidemark
