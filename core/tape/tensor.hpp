#pragma once

#include <cstdint>

#include "core/tape/shape.hpp"
#include "core/units/dtype.hpp"

namespace tidemark {

class Tape;
struct Node;

/// Where a gradient goes: to an output of a node, to a parameter, or nowhere.
struct Edge {
  Node* node = nullptr;         ///< what made the tensor (grad_fn)
  std::int32_t output = 0;      ///< which of its outputs the tensor is
  std::int32_t parameter = -1;  ///< index of the parameter that the tensor is, −1: none
  bool leads_on() const { return node != nullptr || parameter >= 0; }
};

/// What a tensor is besides its storage. Handles share it: whoever changes it gets one of his own (`Tensor::change`).
struct TensorBody {
  Shape shape;
  Dtype dtype = Dtype::kFp32;
  bool requires_grad = false;
  bool is_leaf_parameter = false;  ///< autocast caches casts of these
  bool is_detached_leaf = false;   ///< and of the input that a re-entrant recomputation detached
  bool is_view = false;            ///< another tensor, its base, is on the storage as long as this one is
  std::int32_t storage = -1;       ///< −1: none was made, because the recomputation had stopped
  Count offset = 0;                ///< storage_offset(): where on the storage it begins, in elements
  Edge edge;                       ///< counted by its node: changed by Tape::attach and the like alone
  Tape* tape = nullptr;
  std::int32_t handles = 0;
};

// A handle is one pointer: clang may pass it in a register, and the function that takes it lets go of it. What a copy
// or a move compiles to is shorter than a call, also where the compiler is told to make everything small.
#if defined(__clang__)
#define TIDEMARK_IN_REGISTERS [[clang::trivial_abi]]
#else
#define TIDEMARK_IN_REGISTERS
#endif
#define TIDEMARK_INLINE [[gnu::always_inline]]
// A branch takes more room than a call, and less time: where size counts, the call stays away only where the compiler
// knows that nothing is held.
#if defined(__EMSCRIPTEN__)
#define TIDEMARK_HOLDS(body) (!(__builtin_constant_p((body) == nullptr) && (body) == nullptr))
#else
#define TIDEMARK_HOLDS(body) ((body) != nullptr)
#endif

/// A tensor without numbers: a shape over a counted storage, as torch.Tensor is. When the last handle on a storage
/// goes, the storage is freed, so C++ scopes give Python's lifetimes. Operations take tensors by value and let go of
/// them when they return, as Python's evaluation stack does; a caller that still needs one keeps its own copy.
class TIDEMARK_IN_REGISTERS Tensor {
 public:
  TIDEMARK_INLINE Tensor() = default;
  TIDEMARK_INLINE explicit Tensor(TensorBody* body) : body_(hold(body)) {}
  TIDEMARK_INLINE Tensor(const Tensor& other) : body_(hold(other.body_)) {}
  TIDEMARK_INLINE Tensor(Tensor&& other) noexcept : body_(other.body_) { other.body_ = nullptr; }
  TIDEMARK_INLINE Tensor& operator=(const Tensor& other) {
    TensorBody* const old = body_;
    body_ = hold(other.body_);
    let_go(old);
    return *this;
  }
  TIDEMARK_INLINE Tensor& operator=(Tensor&& other) noexcept {
    TensorBody* const taken = other.body_;
    other.body_ = nullptr;
    TensorBody* const old = body_;
    body_ = taken;
    if (TIDEMARK_HOLDS(old)) let_go(old);
    return *this;
  }
  TIDEMARK_INLINE ~Tensor() {
    if (TIDEMARK_HOLDS(body_)) let_go(body_);
  }

  void reset() { *this = Tensor(); }
  bool defined() const { return body_ != nullptr; }
  const Shape& shape() const { return body_->shape; }
  Dtype dtype() const { return body_->dtype; }
  bool requires_grad() const { return body_->requires_grad; }
  bool is_leaf_parameter() const { return body_->is_leaf_parameter; }
  const Edge& edge() const { return body_->edge; }
  const TensorBody& body() const { return *body_; }
  Tape& tape() const { return *body_->tape; }
  std::int32_t storage() const { return body_->storage; }
  Count size(int i) const { return shape().size(i); }
  Dim dim(int i) const { return shape().dim(i); }
  Count numel() const { return shape().numel(); }
  /// No other handle is on the storage.
  bool is_alone() const;
  /// To change what this handle alone sees.
  TensorBody& change();
  /// As the result of an operation that makes no storage: nothing is known yet of where its gradient goes.
  void leave_graph();

 private:
  static TensorBody* hold(TensorBody* body);
  static void let_go(TensorBody* body);

  TensorBody* body_ = nullptr;
};

}  // namespace tidemark
