#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/units/value.hpp"

/// Makers of values, so that documents read like the JSON that they become.
namespace tidemark {

Value to_value(bool boolean);
Value to_value(std::int64_t integer);
Value to_value(double real);
Value to_value(std::string_view text);
inline Value to_value(const char* text) {
  return to_value(std::string_view{text});
}
inline Value to_value(const std::string& text) {
  return to_value(std::string_view{text});
}
inline Value to_value(int integer) {
  return to_value(std::int64_t{integer});
}
Value empty_object();
Value empty_array();
/// Appends a member; the caller does not repeat keys.
inline void set(Value& object, std::string_view key, Value value) {
  object.members.push_back({std::string{key}, std::move(value)});
}
template <class T>
void set(Value& object, std::string_view key, const T& value) {
  object.members.push_back({std::string{key}, to_value(value)});
}

}  // namespace tidemark
