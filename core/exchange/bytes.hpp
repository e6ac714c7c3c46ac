#pragma once

#include <cstdint>
#include <string_view>

namespace tidemark::exchange {

/// Bytes read from their beginning on. What lies beyond their end is empty, and `ended` says so.
struct ByteReader {
  std::string_view bytes;  ///< all of them
  std::size_t at = 0;      ///< of the next one
  bool ended = false;      ///< more was asked for than there is

  std::string_view take(std::uint64_t length) {
    if (length > bytes.size() - at) {
      ended = true;
      at = bytes.size();
      return {};
    }
    const std::string_view taken = bytes.substr(at, length);
    at += length;
    return taken;
  }

  /// A little-endian number without sign.
  std::uint64_t number(std::size_t length) {
    std::uint64_t value = 0;
    const std::string_view taken = take(length);
    for (std::size_t i = taken.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(taken[i]);
    return value;
  }
};

}  // namespace tidemark::exchange
