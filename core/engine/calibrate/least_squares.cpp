#include "core/engine/calibrate/least_squares.hpp"

#include <cmath>
#include <numeric>

namespace tidemark {
namespace {

using Vector = std::vector<double>;

/// What is left of a column after the ones before it, relative to itself, that counts as something of its own.
constexpr double kOwnShare = 1e-6;

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

// Modified Gram-Schmidt: columns become orthonormal one after the other, and the triangle is solved from below.
std::vector<std::optional<double>> least_squares(const std::vector<Vector>& columns, const Vector& wanted) {
  std::vector<Vector> basis, triangle;  // of each column that was kept: its direction, its shares in those before it
  std::vector<std::size_t> kept;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    Vector rest = columns[c];
    const double length = std::sqrt(dot(rest, rest));
    Vector shares;
    for (const Vector& direction : basis) {
      shares.push_back(dot(direction, rest));
      for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= shares.back() * direction[i];
    }
    const double own = std::sqrt(dot(rest, rest));
    if (own <= kOwnShare * length) continue;
    for (double& value : rest) value /= own;
    shares.push_back(own);
    basis.push_back(std::move(rest));
    triangle.push_back(std::move(shares));
    kept.push_back(c);
  }
  std::vector<std::optional<double>> unknowns(columns.size());
  Vector solved(kept.size());
  for (std::size_t k = kept.size(); k-- > 0;) {
    double value = dot(basis[k], wanted);
    for (std::size_t later = k + 1; later < kept.size(); ++later) value -= triangle[later][k] * solved[later];
    solved[k] = value / triangle[k][k];
    unknowns[kept[k]] = solved[k];
  }
  return unknowns;
}

}  // namespace tidemark
