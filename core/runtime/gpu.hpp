#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/units/bytes.hpp"

namespace tidemark {

/// One device as software sees it (catalog/gpus.json; an MI250X is two of them).
struct Gpu {
  std::string name;                  ///< as the maker writes it: "NVIDIA A100 SXM 80GB"
  std::vector<std::string> aliases;  ///< other names, unique over the catalog after gpu_key()
  std::string vendor;                ///< "NVIDIA", "AMD", …
  std::string architecture;          ///< "Ampere"; empty when unknown
  int year = 0;                      ///< of release; 0 when unknown
  int compute_capability = 0;        ///< ten times major plus minor: 90 is sm_90; 0 where there is no CUDA
  bool unified = false;              ///< the memory is shared with the CPU
  /// What the box says, in bytes. The makers' "GB" are GiB: an "80 GB" A100 has 81920 MiB. (The B300's 288 are not,
  /// but there nvidia_smi_bytes is known.)
  Bytes marketed_bytes = 0;
  /// Total that nvidia-smi shows, after ECC in the setting in which the card is shipped; 0 when unknown.
  Bytes nvidia_smi_bytes = 0;
  /// The smallest total_memory that PyTorch was seen to report on Linux; 0 when nobody measured it. The smallest,
  /// because newer drivers hold back more (RTX 4090: 24217 MiB in 2022, 24081 MiB since CUDA 12.8).
  Bytes torch_visible_bytes = 0;

  /// Sizes in which it is sold, in bytes, marketed_bytes the largest; empty when there is one.
  std::vector<Bytes> memory_options;

  /// A machine that a cloud rents out.
  struct Instance {
    std::string name;  ///< "p4d.24xlarge"
    int count = 1;     ///< of these cards
  };
  std::vector<Instance> instances;  ///< machines that have this card

  /// What a process can use, CUDA context included:
  /// torch_visible_bytes where it was measured in the card's default setting; else nvidia_smi_bytes less what the
  /// driver holds back; else the same from marketed_bytes; of unified memory Metal's default working set: two thirds up
  /// to 32 GB, three quarters above.
  Bytes usable_bytes() const;
  /// usable_bytes() is not a measured figure; say so.
  bool usable_is_estimated() const;
};

/// What the driver keeps of `total` (as nvidia-smi shows it) for itself: 384 MiB and 0.3 %. A fit to the 20 cards since
/// Turing whose two figures are known; the largest residuals are -252 MiB (A100 80 GB) and +205 MiB (B200).
Bytes driver_held_back(Bytes total);

/// What is left of a name when case, separators and vendor words in front are dropped: "NVIDIA GeForce RTX 4090" and
/// "rtx-4090" both become "4090".
std::string gpu_key(std::string_view name);

}  // namespace tidemark
