#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/units/bytes.hpp"

namespace tidemark {

/// What a dimension means, so that every line of the answer can state its formula. Vocabulary: docs/method.md.
enum class Symbol : std::uint8_t {
  kNone,
  kBatch,        ///< B
  kSequence,     ///< S
  kTokens,       ///< T = B·S
  kHidden,       ///< H
  kFeedForward,  ///< F
  kVocab,        ///< V
  kHeads,        ///< A
  kKvHeads,      ///< A_kv
  kHeadDim,      ///< hd
  kQuery,        ///< Q = A·hd
  kKeyValue,     ///< K = A_kv·hd
  kRank,         ///< r
};

/// One dimension: its size and, where known, its meaning. One number: a tape copies shapes by the thousand, and a
/// structure of one member is passed in a register.
class Dim {
 public:
  constexpr Dim() = default;
  constexpr Dim(Count size, Symbol meaning = Symbol::kNone)  // NOLINT: a number is a dim
      : packed_(size * kSize + static_cast<Count>(meaning)) {}
  constexpr Count n() const { return packed_ >> 8; }
  constexpr Symbol symbol() const { return static_cast<Symbol>(packed_ & (kSize - 1)); }

 private:
  static constexpr Count kSize = 256;  // the size lies above eight bits of meaning
  Count packed_ = kSize;
};

inline constexpr int kMaxRank = 5;

/// Sizes and strides of a tensor, in elements; strides decide which views copy.
struct Shape {
  Dim dims[kMaxRank];
  Count strides[kMaxRank] = {};
  int rank = 0;

  Shape() = default;
  Shape(std::initializer_list<Dim> sizes) {
    for (const Dim& d : sizes) dims[rank++] = d;
    make_contiguous();
  }

  Count size(int i) const { return dims[i < 0 ? rank + i : i].n(); }
  Dim dim(int i) const { return dims[i < 0 ? rank + i : i]; }
  Count numel() const {
    Count n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[i].n();
    return n;
  }
  void make_contiguous() {
    Count step = 1;
    for (int i = rank - 1; i >= 0; --i) {
      strides[i] = step;
      step *= dims[i].n();
    }
  }
  Shape contiguous() const {
    Shape shape = *this;
    shape.make_contiguous();
    return shape;
  }
  /// Contiguous, of these sizes but the last: what a product, a reduction or a padding of the last dimension makes.
  Shape with_last(Dim last) const {
    Shape shape = *this;
    shape.dims[rank - 1] = last;
    shape.make_contiguous();
    return shape;
  }
  bool is_contiguous() const {
    Count step = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (dims[i].n() != 1 && strides[i] != step) return false;
      step *= dims[i].n();
    }
    return true;
  }
  /// No overlap and no hole: the strides of some permutation of a contiguous tensor.
  bool is_dense() const {
    int order[kMaxRank];
    const int n = sorted_by_stride(order);
    Count step = 1;
    for (int k = n - 1; k >= 0; --k) {
      if (dims[order[k]].n() == 1) continue;
      if (strides[order[k]] != step) return false;
      step *= dims[order[k]].n();
    }
    return true;
  }
  bool same_sizes(const Shape& other) const {
    if (rank != other.rank) return false;
    for (int i = 0; i < rank; ++i) {
      if (dims[i].n() != other.dims[i].n()) return false;
    }
    return true;
  }
  /// Indices of the dimensions from the largest stride to the smallest, size-one dimensions in place; returns rank.
  int sorted_by_stride(int* order) const {
    for (int i = 0; i < rank; ++i) order[i] = i;
    // Insertion sort, stable: ranks are at most five.
    for (int i = 1; i < rank; ++i) {
      for (int k = i;
           k > 0 && dims[order[k]].n() != 1 && dims[order[k - 1]].n() != 1 && strides[order[k - 1]] < strides[order[k]];
           --k) {
        const int swap = order[k];
        order[k] = order[k - 1];
        order[k - 1] = swap;
      }
    }
    return rank;
  }
};

/// The symbol of a product of two neighbouring dimensions ("B·S" is T), or none.
constexpr Symbol product_symbol(Symbol a, Symbol b) {
  if (a == Symbol::kBatch && b == Symbol::kSequence) return Symbol::kTokens;
  if (a == Symbol::kHeads && b == Symbol::kHeadDim) return Symbol::kQuery;
  if (a == Symbol::kKvHeads && b == Symbol::kHeadDim) return Symbol::kKeyValue;
  return Symbol::kNone;
}

}  // namespace tidemark
