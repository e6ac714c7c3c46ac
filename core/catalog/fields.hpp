#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/units/value.hpp"

namespace tidemark {

// Fields of a catalog line: what is absent or of another type reads as empty.

inline std::string text_at(const Value& object, std::string_view key) {
  const Value* value = object.find(key);
  return value != nullptr && value->is_string() ? value->string : std::string{};
}

inline std::int64_t integer_at(const Value& object, std::string_view key) {
  const Value* value = object.find(key);
  return value != nullptr && value->is_number() ? static_cast<std::int64_t>(value->real) : 0;
}

inline std::vector<std::string> texts_at(const Value& object, std::string_view key) {
  std::vector<std::string> texts;
  if (const Value* value = object.find(key); value != nullptr) {
    for (const Value& item : value->items) {
      if (item.is_string()) texts.push_back(item.string);
    }
  }
  return texts;
}

}  // namespace tidemark
