#pragma once

#include <utility>
#include <vector>

namespace tidemark {

/// What one tape leaves for the next: asking the system for memory, page by page, takes longer than a step itself.
template <class Memory>
Memory& spare_memory() {
#if defined(__EMSCRIPTEN__)  // one thread, and LLVM 14 links no thread-local storage for it
  static Memory memory;
#else
  thread_local Memory memory;
#endif
  return memory;
}

template <class T>
void hand_over(std::vector<T>& from, std::vector<T>& to) {
  to = std::move(from);
  to.clear();
}

}  // namespace tidemark
