#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace tidemark {

/// Whether one of two things, told by their places in a list, comes before the other.
struct Before {
  const void* context;
  bool (*call)(const void* context, std::size_t a, std::size_t b);
};

/// The places 0 … count − 1 in sorted order; equals stay in theirs. One merge sort for lists of anything: the standard
/// library makes a new one for each list, 2 to 4 KB of WebAssembly every time.
std::vector<std::size_t> sorted_order(std::size_t count, Before before);

template <class Less>
std::vector<std::size_t> sorted_order(std::size_t count, const Less& less) {
  return sorted_order(count, Before{&less, [](const void* context, std::size_t a, std::size_t b) {
                                      return static_cast<bool>((*static_cast<const Less*>(context))(a, b));
                                    }});
}

/// Sorts a list; equals stay in their order. `less` compares two elements.
template <class T, class Less>
void sort_list(std::vector<T>& list, const Less& less) {
  std::vector<T> sorted;
  sorted.reserve(list.size());
  const auto order = sorted_order(list.size(), [&](std::size_t a, std::size_t b) { return less(list[a], list[b]); });
  for (const std::size_t i : order) sorted.push_back(std::move(list[i]));
  list = std::move(sorted);
}

/// Each value once, from the smallest on.
template <class T>
std::vector<T> ascending(std::vector<T> values) {
  sort_list(values, [](const T& a, const T& b) { return a < b; });
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace tidemark
