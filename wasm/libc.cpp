// Functions of the C library for those that call them, nlohmann/json and libc++: the real ones bring numbers of 128
// bits, streams and all formats that there are, 25 KB. The linker takes these before it looks into the C library.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/units/decimal.hpp"

extern "C" {

/// Called with a number as JSON writes it, all of it.
double strtod(const char* text, char** end) {
  const std::size_t length = std::strlen(text);
  if (end != nullptr) *end = const_cast<char*>(text) + length;
  return tidemark::decimal_value({text, length});
}

/// std::stof and std::stold name these, and nobody calls those; but where one is missing, all three come from the C
/// library.
float strtof(const char* text, char** end) {
  return static_cast<float>(strtod(text, end));
}
long double strtold(const char* text, char** end) {
  return strtod(text, end);
}

/// Called with "<U+%.4X>" and a byte, for a control character in a message.
int snprintf(char* to, std::size_t room, const char* format, ...) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::va_list rest;
  va_start(rest, format);
  const unsigned byte = va_arg(rest, unsigned) % 256;
  va_end(rest);
  const char text[] = {'<', 'U', '+', '0', '0', kHex[byte / 16], kHex[byte % 16], '>', '\0'};
  if (room < sizeof text) return 0;
  std::memcpy(to, text, sizeof text);
  return static_cast<int>(sizeof text) - 1;
}

/// libc++'s way to say why it gives up where exceptions are off (what std::fprintf becomes without floats); nobody
/// would read it.
int fprintf(std::FILE*, const char*, ...) {
  return 0;
}
int fiprintf(std::FILE*, const char*, ...) {
  return 0;
}

/// embind's, for the name of a type that was not registered: all that the page calls are.
int sprintf(char* to, const char*, ...) {
  *to = '\0';
  return 0;
}
int siprintf(char* to, const char*, ...) {
  *to = '\0';
  return 0;
}

/// libc++abi's: the same.
[[noreturn]] void abort_message(const char*, ...) {
  std::abort();
}
}
