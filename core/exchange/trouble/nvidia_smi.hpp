#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/exchange/trouble/log_text.hpp"

namespace tidemark::exchange {

/// What nvidia-smi prints, in the tables of drivers 396 to 580. Figures in MiB, as they stand there; what is "N/A" is
/// absent.
struct NvidiaSmi {
  struct Gpu {
    std::int64_t index = 0;
    std::string name;  ///< up to driver 470 cut: "GeForce GTX 108..."
    std::optional<std::int64_t> used, total, utilization;
    int line = 0;
  };
  struct Instance {  ///< of a card in MIG mode
    std::int64_t gpu = 0, gi = 0, ci = 0, device = 0;
    std::optional<std::int64_t> used, total;
    int line = 0;
  };
  struct Process {
    std::int64_t gpu = 0, pid = 0;
    std::string name;
    std::optional<std::int64_t> used;
  };
  std::string driver, cuda;  ///< empty where not said
  std::vector<Gpu> gpus;
  std::vector<Instance> instances;
  std::vector<Process> processes;
};

std::optional<NvidiaSmi> find_nvidia_smi(const LogText& log);

}  // namespace tidemark::exchange
