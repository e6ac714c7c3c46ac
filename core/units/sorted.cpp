#include "core/units/sorted.hpp"

#include <algorithm>

namespace tidemark {

std::vector<std::size_t> sorted_order(std::size_t count, Before before) {
  std::vector<std::size_t> order(count), merged(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  for (std::size_t width = 1; width < count; width *= 2) {
    for (std::size_t begin = 0; begin < count; begin += 2 * width) {
      const std::size_t middle = std::min(begin + width, count), end = std::min(begin + 2 * width, count);
      std::size_t left = begin, right = middle;
      for (std::size_t i = begin; i < end; ++i) {
        const bool from_right =
            right < end && (left == middle || before.call(before.context, order[right], order[left]));
        merged[i] = order[from_right ? right++ : left++];
      }
    }
    order.swap(merged);
  }
  return order;
}

}  // namespace tidemark
