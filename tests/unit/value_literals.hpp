#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/units/value.hpp"

namespace tidemark::literals {

/// A Value from a C++ literal, so that a test can spell a document: object({{"hidden_size", 4096}, {"bias", false}}).
struct Any {
  Value value;

  Any(std::nullptr_t) {}
  Any(bool boolean) {
    value.kind = Value::Kind::kBool;
    value.boolean = boolean;
  }
  Any(int integer) : Any(static_cast<std::int64_t>(integer)) {}
  Any(std::int64_t integer) {
    value.kind = Value::Kind::kInteger;
    value.integer = integer;
    value.real = static_cast<double>(integer);
  }
  Any(double real) {
    value.kind = Value::Kind::kReal;
    value.real = real;
  }
  Any(const char* string) {
    value.kind = Value::Kind::kString;
    value.string = string;
  }
  Any(Value document) : value(std::move(document)) {}
};

inline Value object(std::initializer_list<std::pair<const char*, Any>> members) {
  Value value;
  value.kind = Value::Kind::kObject;
  for (const auto& [key, member] : members) value.members.push_back({key, member.value});
  return value;
}

inline Value list(const std::vector<Any>& items) {
  Value value;
  value.kind = Value::Kind::kArray;
  for (const Any& item : items) value.items.push_back(item.value);
  return value;
}

/// The same document with one member set, added at the end where it was absent.
inline Value with(Value document, const char* key, Any member) {
  for (Value::Member& present : document.members) {
    if (present.key == key) {
      present.value = std::move(member.value);
      return document;
    }
  }
  document.members.push_back({key, std::move(member.value)});
  return document;
}

/// The same document with one member left out.
inline Value without(Value document, const char* key) {
  std::vector<Value::Member> kept;
  for (Value::Member& member : document.members) {
    if (member.key != key) kept.push_back(std::move(member));
  }
  document.members = std::move(kept);
  return document;
}

}  // namespace tidemark::literals
