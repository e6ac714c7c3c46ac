#include "core/layers/layer_plan.hpp"

#include <algorithm>

namespace tidemark {
namespace {

// Four periods show every boundary: first, its successor, the middle between equals, the last.
constexpr std::size_t kPeriodsOnTape = 4;
// What a run with others before or behind it must save to be worth its seams: where blocks of the allocator are found
// differs a little from one layer to the next.
constexpr std::size_t kWorthASeam = 8;
// How many of the places where the kind changes, from either end, a run may begin or end at.
constexpr std::size_t kPlacesTried = 6;

using Kinds = std::vector<std::int64_t>;

// The least p for which each entry is that of p places before: the length less the longest border (Knuth, Morris and
// Pratt's failure function), in linear time.
std::size_t least_period(const Kinds& kinds, std::size_t begin, std::size_t end) {
  const std::size_t n = end - begin;
  std::vector<std::size_t> border(n, 0);  // longest proper prefix that also ends there
  for (std::size_t i = 1; i < n; ++i) {
    std::size_t length = border[i - 1];
    while (length > 0 && kinds[begin + i] != kinds[begin + length]) length = border[length - 1];
    border[i] = kinds[begin + i] == kinds[begin + length] ? length + 1 : 0;
  }
  return std::max<std::size_t>(n - (n == 0 ? 0 : border.back()), 1);
}

/// A stretch of layers that repeats.
struct Stretch {
  std::size_t begin = 0, end = 0;  // of the layers
  std::size_t period = 1;
  std::size_t saved = 0;  // layers that need not go on the tape
};

Stretch best_stretch(const Kinds& kinds, std::size_t begin, std::size_t end) {
  std::vector<std::size_t> begins = {begin}, ends = {end};
  for (std::size_t i = begin + 1; i < end && begins.size() <= kPlacesTried; ++i) {
    if (kinds[i] != kinds[i - 1]) begins.push_back(i);
  }
  for (std::size_t i = end - 1; i > begin && ends.size() <= kPlacesTried; --i) {
    if (kinds[i] != kinds[i - 1]) ends.push_back(i);
  }
  Stretch best;
  for (const std::size_t from : begins) {
    for (const std::size_t to : ends) {
      // Nothing shorter can save more than what is saved already.
      if (to <= from + kPeriodsOnTape || to - from - kPeriodsOnTape <= best.saved) continue;
      const std::size_t period = least_period(kinds, from, to);
      const std::size_t periods = (to - from) / period;
      if (periods <= kPeriodsOnTape) continue;
      const std::size_t saved = (periods - kPeriodsOnTape) * period;
      if (saved < kWorthASeam && (from > begin || to < end)) continue;
      if (saved > best.saved) best = {from, to, period, saved};
    }
  }
  return best;
}

}  // namespace

LayerPlan::Stack& LayerPlan::open(std::string_view path, std::size_t count) {
  Stack stack;
  stack.path = path;
  stack.layers = static_cast<Count>(count);
  stack.first = layers();
  stack.tape_begin = static_cast<Count>(tape_layers.size());
  stacks.push_back(stack);
  return stacks.back();
}

void LayerPlan::add_stack(std::string_view path, const Kinds& kinds) {
  open(path, kinds.size());
  add_part(kinds, 0, kinds.size());
  stacks.back().tape_end = static_cast<Count>(tape_layers.size());
}

void LayerPlan::add_part(const Kinds& kinds, std::size_t begin, std::size_t end) {
  if (begin == end) return;
  const auto put = [this](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      tape_layers.push_back({static_cast<Count>(stacks.size()) - 1, static_cast<Count>(i)});
    }
  };
  const Stretch repeating = best_stretch(kinds, begin, end);
  if (repeating.saved == 0) return put(begin, end);
  add_part(kinds, begin, repeating.begin);
  Run run;
  const auto p = static_cast<Count>(repeating.period);
  run.section_begin = static_cast<Count>(tape_layers.size());
  put(repeating.begin, repeating.begin + 3 * repeating.period);
  put(repeating.begin + 3 * repeating.period + repeating.saved, repeating.end);
  run.section_end = static_cast<Count>(tape_layers.size());
  run.begin = run.section_begin + 2 * p;
  run.end = run.begin + p;
  run.repeats = static_cast<Count>(repeating.saved) / p + 1;
  runs.push_back(run);
  add_part(kinds, repeating.end, end);
}

void LayerPlan::add_kinds(std::string_view path, const Kinds& kinds, std::vector<std::size_t>& kind_of_layer) {
  open(path, kinds.size());
  const std::size_t first = tape_layers.size();
  Kinds known;
  for (std::size_t layer = 0; layer < kinds.size(); ++layer) {
    const auto found = std::find(known.begin(), known.end(), kinds[layer]);
    kind_of_layer.push_back(first + static_cast<std::size_t>(found - known.begin()));
    if (found != known.end()) continue;
    known.push_back(kinds[layer]);
    tape_layers.push_back({static_cast<Count>(stacks.size()) - 1, static_cast<Count>(layer)});
  }
  stacks.back().tape_end = static_cast<Count>(tape_layers.size());
}

}  // namespace tidemark
