#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/tape/tape.hpp"
#include "core/units/bytes.hpp"

namespace tidemark {

/// A micro batch size and a sequence length.
struct Extents {
  Count batch = 1;     ///< B
  Count sequence = 1;  ///< S
};

class MovingGuard;

/// A term of a size: B^i · S^j, or one of the quotients of the step (ceil(S / 128)), alone or times B or S.
struct Term {
  int batch = 0;      ///< i: 0 or 1
  int sequence = 0;   ///< j: 0, 1 or 2
  int quotient = -1;  ///< index into the quotients, −1: none

  Count value(Extents at, const std::vector<MovingGuard>& quotients) const;
};

/// The terms that sizes are made of: the six powers, then four of each quotient.
std::vector<Term> terms_of(std::size_t quotients);
inline constexpr std::size_t kPowers = 6;
inline constexpr std::size_t kTermsOfAQuotient = 4;  // the first of them is the quotient alone

/// The extents at which a size is looked at: two say what it could be, the third whether it is.
inline constexpr std::size_t kSamples = 3;
using Samples = std::array<Bytes, kSamples>;

/// A size as the sum of at most two terms with whole coefficients: how a tensor grows with batch and sequence. One
/// term is the rule (B·S·H·2), two occur where something is added to a dimension: B·(S+1)·8.
struct Growth {
  std::size_t first = 0, second = 0;  ///< indices into the terms; equal when there is one
  Count a = 0, b = 0;                 ///< their coefficients
  bool operator==(const Growth& other) const {
    return first == other.first && second == other.second && a == other.a && b == other.b;
  }
};

/// A guard of a recorded step, made to say what it would be elsewhere.
class MovingGuard {
 public:
  /// Of one recording: what is compared or divided is B·S, S, B or S² (T5's table has a row for each pair of
  /// positions), whichever it equals, or moves with neither.
  MovingGuard(const Guard& guard, Extents at);
  /// Of several: it grows so, in powers.
  MovingGuard(const Guard& guard, const Growth& quantity) : guard_(guard), quantity_(quantity) {}
  Guard::Kind kind() const { return guard_.kind; }
  /// What is compared or divided, in powers.
  const Growth& quantity() const { return quantity_; }
  /// The same place of the program in a step of these sizes.
  Guard at(Extents there) const;
  bool is_like(const MovingGuard& other) const;

 private:
  Guard guard_;
  Growth quantity_;
};

/// The simplest growth through all three samples; nothing when there is none. `terms[t]` are term t's values there.
std::optional<Growth> growth_through(const Samples& sizes, const std::vector<Samples>& terms);

}  // namespace tidemark
