#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/exchange/trouble/log_text.hpp"
#include "core/units/bytes.hpp"

namespace tidemark::exchange {

/// vLLM's own account of a card.
struct VllmAccount {
  double utilization = 0.0;  ///< gpu_memory_utilization
  std::optional<Bytes> weights, non_torch, activation_peak, kv_cache;
};

/// What a message about exhausted memory says, whoever wrote it. What is not in the text is absent.
struct OutOfMemory {
  struct Process {
    std::int64_t pid = 0;
    std::optional<Bytes> bytes;  ///< absent where NVML could not say (containers)
  };
  std::string_view backend = "cuda";       ///< cuda, rocm, mps, xpu, cpu
  std::string_view format;                 ///< whose words: versions of torch, "vllm", "cuda_error"
  std::optional<std::int64_t> gpu;         ///< the index
  std::optional<Bytes> capacity;           ///< what the driver calls the card's (or the MIG instance's) memory
  std::optional<Bytes> allocated;          ///< by PyTorch's tensors
  std::optional<Bytes> reserved;           ///< by PyTorch's allocator, tensors included
  std::optional<Bytes> free;               ///< the driver's word: other processes count against it
  std::optional<Bytes> tried;              ///< what was asked for
  std::optional<Bytes> in_use;             ///< by this process, CUDA context and libraries included
  std::optional<Bytes> non_pytorch;        ///< in_use - reserved
  std::optional<Bytes> allowed;            ///< a memory fraction's limit
  std::optional<Bytes> private_pools;      ///< of CUDA graphs
  std::optional<Bytes> other_allocations;  ///< MPS: not by PyTorch
  std::string_view pool;                   ///< MPS: "private" or "shared"
  std::vector<Process> others;
  std::optional<VllmAccount> vllm;
  bool asynchronous = false;  ///< reported by a later call: a traceback beside it says nothing
  std::size_t at = 0;         ///< where the message begins in the log's flat text
  int messages = 0;           ///< how many such messages the log holds
};

/// The first message that says numbers, else the first; nothing where there is none.
std::optional<OutOfMemory> find_out_of_memory(const LogText& log);

}  // namespace tidemark::exchange
