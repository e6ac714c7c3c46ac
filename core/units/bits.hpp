#pragma once

namespace tidemark {

/// std::bit_cast, which the C++ library of Debian's Emscripten does not have yet.
template <class To, class From>
constexpr To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

}  // namespace tidemark
