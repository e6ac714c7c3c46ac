#pragma once

#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace tidemark {

/// A list that is short as a rule: up to N items lie in the object itself, more of them on the heap.
template <class T, std::size_t N>
class Few {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return size_ <= N ? here_ : heap_.data(); }
  const T* data() const { return size_ <= N ? here_ : heap_.data(); }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

  T& push_back(T item) {
    if (size_ < N) return here_[size_++] = std::move(item);
    if (size_ == N) heap_.assign(std::make_move_iterator(here_), std::make_move_iterator(here_ + N));
    ++size_;
    heap_.push_back(std::move(item));
    return heap_.back();
  }
  /// More items, each as T() makes it. Never fewer.
  void grow_to(std::size_t size) {
    while (size_ < size) push_back(T());
  }
  void clear() {
    if constexpr (!std::is_trivially_destructible_v<T>) {
      for (T& item : *this) item = T();
    }
    heap_.clear();
    size_ = 0;
  }

 private:
  T here_[N];
  std::vector<T> heap_;  ///< all items, where they are more than N
  std::size_t size_ = 0;
};

}  // namespace tidemark
