#include "core/tape/reduction.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tidemark {
namespace {

struct Processors {
  int capability;
  Count count;    // multiprocessors
  Count threads;  // that one of them runs at once: CUDA C++ Programming Guide 13, technical specifications
};

// Of the cards that people train on: V100, T4, A100, A6000, L40S, H100 and H200, B200, RTX 5090 (vendors' datasheets).
// How many there are shows only where rows are more than 16 for each thread of a card.
constexpr Processors kProcessors[] = {{70, 80, 2048},  {75, 40, 1024},  {80, 108, 2048},  {86, 84, 1536},
                                      {89, 142, 1536}, {90, 132, 2048}, {100, 148, 2048}, {120, 170, 1536}};

constexpr Count kThreads = 512;  // ReduceOp's MAX_NUM_THREADS
constexpr Count kWarp = 32;
constexpr Count kVectorised = 128;  // outputs from which a thread sums several neighbours
constexpr Count kFewest = 16;       // min_values_per_thread
constexpr Bytes kPartial = 4;       // sums of 16-bit numbers, too, are fp32
constexpr Bytes kSemaphore = 4;     // an int for each block of outputs

Count up(Count a, Count b) {
  return (a + b - 1) / b;
}

Processors of(int capability) {
  Processors best = kProcessors[0];
  for (const Processors& p : kProcessors) {
    if (p.capability <= capability) best = p;
  }
  return best;
}

}  // namespace

Reduction reduction_of(Count outputs, int compute_capability) {
  Count vector = 1;
  if (outputs >= kVectorised) {
    for (vector = 4; outputs % vector != 0;) vector /= 2;
  }
  const auto lanes = static_cast<Count>(std::bit_floor(static_cast<std::uint64_t>(outputs / vector)));
  const Count most = kThreads / vector;
  const Count height = most / std::min(lanes, kWarp), width = std::min(lanes, most / height);
  const Processors card = of(compute_capability);
  const Count grid = up(outputs / vector, width), target = card.count * (card.threads / (width * height));
  if (grid > target) return {};
  return {height, up(target, grid), kPartial * outputs * width * vector, kSemaphore * grid};
}

Count blocks_of(Count rows, const Reduction& reduction) {
  const Count each = up(rows, reduction.height);  // values of a thread
  if (reduction.filling == 0 || each < kMostValues) return 0;
  return std::max(std::min(reduction.filling, up(each, kFewest)), up(each, kMostValues));
}

}  // namespace tidemark
