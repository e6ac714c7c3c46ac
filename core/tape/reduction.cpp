#include "core/tape/reduction.hpp"

#include <algorithm>

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
constexpr Count kVectorised = 128;          // outputs from which a thread sums several neighbours
constexpr Count kFewest = 16, kMost = 256;  // min_values_per_thread, max_values_per_thread
constexpr Bytes kPartial = 4;               // sums of 16-bit numbers, too, are fp32

Count up(Count a, Count b) {
  return (a + b - 1) / b;
}

Count last_power_of_two(Count n) {
  Count p = 1;
  while (p * 2 <= n) p *= 2;
  return p;
}

Processors of(int capability) {
  Processors best = kProcessors[0];
  for (const Processors& p : kProcessors) {
    if (p.capability <= capability) best = p;
  }
  return best;
}

}  // namespace

Bytes reduction_buffer(Count rows, Count outputs, int compute_capability) {
  if (rows <= 0 || outputs <= 0) return 0;
  Count vector = 1;
  if (outputs >= kVectorised) {
    for (vector = 4; outputs % vector != 0;) vector /= 2;
  }
  const Count lanes = last_power_of_two(outputs / vector), most = kThreads / vector;
  Count width = std::min(lanes, kWarp);
  const Count height = std::min(last_power_of_two(rows), most / width);
  width = std::min(lanes, most / height);
  if (rows < std::min(height * kFewest, kMost)) return 0;  // not split across warps
  const Count each = up(rows, height);
  const Count grid = up(outputs / vector, width);
  const Processors card = of(compute_capability);
  const Count target = card.count * (card.threads / (width * height));
  if (each < kMost || grid > target) return 0;
  const Count blocks = std::max(std::min(up(target, grid), up(each, kFewest)), up(each, kMost));
  return blocks > 1 ? kPartial * outputs * blocks * width * vector : 0;
}

}  // namespace tidemark
