#pragma once

#include <cstdint>
#include <vector>

#include "core/units/bytes.hpp"

namespace tidemark {

/// A place where the step stops being polynomial in its sizes: a comparison or a division of a number of sequences,
/// positions or tokens. Steps whose guards agree have the same allocations in the same order. (torch.compile's guards
/// tell in the same way for which sizes a compiled graph holds.)
struct Guard {
  enum class Kind : std::uint8_t {
    kAbove,     ///< quantity > parameter
    kQuotient,  ///< floor((quantity + offset) / parameter)
    kMultiple,  ///< quantity is a multiple of parameter
    kPower,     ///< smallest power of two that is at least ceil(quantity / parameter)
    kBlocks,    ///< among how many blocks `quantity` rows are divided that are summed (tape/reduction), 0: none
    kDivided,   ///< 1 where that is not 0
  };
  Kind kind = Kind::kAbove;
  Count quantity = 0;   ///< what was compared or divided
  Count offset = 0;     ///< parameter − 1 where the quotient is rounded up; of blocks: how many fill the card
  Count parameter = 1;  ///< the limit or the divisor; of blocks: the rows that one takes at a time
  Count outcome() const;
  bool operator==(const Guard& other) const {
    return kind == other.kind && quantity == other.quantity && offset == other.offset && parameter == other.parameter;
  }
};

/// A storage as large as a guard's outcome says: where that is 0, it has no bytes.
struct GuardedStorage {
  Guard guard;
  Bytes each = 0;             ///< bytes for each of the outcome
  std::int32_t storage = -1;  ///< index into Record::storages()
};

/// The guards of a step. Programs and operations decide and divide by these where numbers of sequences, positions or
/// tokens are concerned, so that a record tells for which other sizes it holds (step/surface).
class Guards {
 public:
  bool above(Count quantity, Count limit) { return note({Guard::Kind::kAbove, quantity, 0, limit}) != 0; }
  Count quotient(Count quantity, Count divisor) { return note({Guard::Kind::kQuotient, quantity, 0, divisor}); }
  Count quotient_up(Count quantity, Count divisor) {
    return note({Guard::Kind::kQuotient, quantity, divisor - 1, divisor});
  }
  Count round_up(Count quantity, Count multiple) { return quotient_up(quantity, multiple) * multiple; }
  bool is_multiple(Count quantity, Count of) { return note({Guard::Kind::kMultiple, quantity, 0, of}) != 0; }
  Count power_of_two_from(Count quantity, Count divisor) { return note({Guard::Kind::kPower, quantity, 0, divisor}); }

  /// Each once, in the order in which the step met them.
  const std::vector<Guard>& guards() const { return guards_; }
  /// Each storage, in the order in which the step made them. These do not part the sizes for which a record holds.
  const std::vector<GuardedStorage>& guarded_storages() const { return storages_; }

 protected:
  void guard_storage(const GuardedStorage& storage) { storages_.push_back(storage); }

 private:
  Count note(const Guard& guard);

  std::vector<Guard> guards_;
  std::vector<GuardedStorage> storages_;
};

}  // namespace tidemark
