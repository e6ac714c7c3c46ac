#include "core/step/growth.hpp"

namespace tidemark {
namespace {

constexpr std::array<Term, kPowers> kTerms = {{{0, 0, -1}, {0, 1, -1}, {1, 0, -1}, {1, 1, -1}, {0, 2, -1}, {1, 2, -1}}};
// In the order in which a guard's quantity is compared to them: B·S, S, B, S².
constexpr std::size_t kQuantities[] = {3, 1, 2, 4};

// v = a·x + b·y. Whole numbers only: in 128 bits no product of a size and a term is lost.
bool solve(const Samples& v, const Samples& x, const Samples& y, Count& a, Count& b) {
  __extension__ using Wide = __int128;
  const auto cross = [](const Samples& p, const Samples& q, std::size_t i, std::size_t k) {
    return Wide{p[i]} * q[k] - Wide{p[k]} * q[i];
  };
  // Two samples that tell x from y.
  std::size_t i = 0, k = 1;
  if (cross(x, y, i, k) == 0) k = 2;
  if (cross(x, y, i, k) == 0) i = 1;
  const Wide determinant = cross(x, y, i, k), over_a = cross(v, y, i, k), over_b = cross(x, v, i, k);
  if (determinant == 0 || over_a % determinant != 0 || over_b % determinant != 0) return false;
  a = static_cast<Count>(over_a / determinant);
  b = static_cast<Count>(over_b / determinant);
  for (std::size_t s = 0; s < kSamples; ++s) {
    if (Wide{a} * x[s] + Wide{b} * y[s] != v[s]) return false;
  }
  return true;
}

}  // namespace

MovingGuard::MovingGuard(const Guard& guard, Extents at) : guard_(guard), quantity_{0, 0, guard.quantity, 0} {
  for (const std::size_t q : kQuantities) {
    if (guard.quantity == kTerms[q].value(at, {})) {
      quantity_ = {q, q, 1, 0};
      return;
    }
  }
}

Guard MovingGuard::at(Extents there) const {
  Guard moved = guard_;
  moved.quantity =
      quantity_.a * kTerms[quantity_.first].value(there, {}) + quantity_.b * kTerms[quantity_.second].value(there, {});
  return moved;
}

bool MovingGuard::is_like(const MovingGuard& other) const {
  return guard_.kind == other.guard_.kind && guard_.offset == other.guard_.offset &&
         guard_.parameter == other.guard_.parameter && quantity_ == other.quantity_;
}

Count Term::value(Extents at, const std::vector<MovingGuard>& quotients) const {
  Count product = batch == 1 ? at.batch : 1;
  for (int i = 0; i < sequence; ++i) product *= at.sequence;
  return quotient < 0 ? product : product * quotients[static_cast<std::size_t>(quotient)].at(at).outcome();
}

std::vector<Term> terms_of(std::size_t quotients) {
  std::vector<Term> terms(kTerms.begin(), kTerms.end());
  for (int q = 0; q < static_cast<int>(quotients); ++q) {
    for (int batch = 0; batch < 2; ++batch) {
      for (int sequence = 0; sequence < 2; ++sequence) terms.push_back({batch, sequence, q});
    }
  }
  return terms;
}

std::optional<Growth> growth_through(const Samples& sizes, const std::vector<Samples>& terms) {
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const Count a = terms[t][0] == 0 ? 0 : sizes[0] / terms[t][0];
    if (a * terms[t][0] == sizes[0] && a * terms[t][1] == sizes[1] && a * terms[t][2] == sizes[2]) {
      return Growth{t, t, a, 0};
    }
  }
  for (std::size_t t = 1; t < terms.size(); ++t) {
    for (std::size_t u = 0; u < t; ++u) {
      Growth growth{t, u, 0, 0};
      if (solve(sizes, terms[t], terms[u], growth.a, growth.b)) return growth;
    }
  }
  return std::nullopt;
}

}  // namespace tidemark
