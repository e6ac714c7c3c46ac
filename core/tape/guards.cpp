#include "core/tape/guards.hpp"

#include <algorithm>

#include "core/tape/reduction.hpp"

namespace tidemark {

Count Guard::outcome() const {
  switch (kind) {
    case Kind::kAbove:
      return quantity > parameter ? 1 : 0;
    case Kind::kQuotient:
      return (quantity + offset) / parameter;
    case Kind::kMultiple:
      return quantity % parameter == 0 ? 1 : 0;
    case Kind::kBlocks:
      return blocks_of(quantity, {parameter, offset});
    case Kind::kDivided:
      return blocks_of(quantity, {parameter, offset}) > 0 ? 1 : 0;
    default: {
      Count power = 1;
      while (power * parameter < quantity) power *= 2;
      return power;
    }
  }
}

Count Guards::note(const Guard& guard) {
  if (std::find(guards_.begin(), guards_.end(), guard) == guards_.end()) guards_.push_back(guard);
  return guard.outcome();
}

}  // namespace tidemark
