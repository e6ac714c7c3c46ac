#include "core/tape/reduction.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>

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

Processors of(int capability) {
  Processors best = kProcessors[0];
  for (const Processors& p : kProcessors) {
    if (p.capability <= capability) best = p;
  }
  return best;
}

// times · unit > limit
bool above(Guards& guards, Count unit, Count times, Count limit) {
  return guards.above(unit, limit / times);
}

// ceil(times · unit / divisor)
Count quotient_up(Guards& guards, Count unit, Count times, Count divisor) {
  const Count common = std::gcd(times, divisor), of = divisor / common;
  if (times == common) return guards.quotient_up(unit, of);
  if (of == 1 || guards.is_multiple(unit, of)) return times * unit / divisor;
  return guards.quotient_up(times * unit, divisor);
}

}  // namespace

Bytes reduction_buffer(Guards& guards, Count unit, Count times, Count outputs, int compute_capability) {
  Count vector = 1;
  if (outputs >= kVectorised) {
    for (vector = 4; outputs % vector != 0;) vector /= 2;
  }
  const auto lanes = static_cast<Count>(std::bit_floor(static_cast<std::uint64_t>(outputs / vector)));
  const Count most = kThreads / vector;
  const Count height = most / std::min(lanes, kWarp), width = std::min(lanes, most / height);
  // Each thread has ceil(rows / height) values: with fewer than kMost of them one block does.
  if (!above(guards, unit, times, (kMost - 1) * height)) return 0;
  const Processors card = of(compute_capability);
  const Count grid = up(outputs / vector, width), target = card.count * (card.threads / (width * height));
  if (grid > target) return 0;
  const Count filling = up(target, grid);  // blocks per output that fill the card
  Count blocks = filling;
  if (!above(guards, unit, times, filling * kFewest * height)) {
    blocks = quotient_up(guards, unit, times, kFewest * height);
  } else if (above(guards, unit, times, filling * kMost * height)) {
    blocks = quotient_up(guards, unit, times, kMost * height);
  }
  return kPartial * outputs * blocks * width * vector;
}

}  // namespace tidemark
