#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark {

/// A document as a tree, free of any JSON library: what `wire` hands to the rooms that read other people's
/// vocabulary (config.json, trainer arguments). Objects keep their order; numbers keep whether they were integers.
struct Value {
  struct Member;
  enum class Kind { kNull, kBool, kInteger, kReal, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;         ///< when kBool
  std::int64_t integer = 0;     ///< when kInteger
  double real = 0.0;            ///< when kReal, and the same number when kInteger
  std::string string;           ///< when kString
  std::vector<Value> items;     ///< when kArray
  std::vector<Member> members;  ///< when kObject

  bool is_null() const { return kind == Kind::kNull; }
  bool is_bool() const { return kind == Kind::kBool; }
  bool is_integer() const { return kind == Kind::kInteger; }
  bool is_number() const { return kind == Kind::kInteger || kind == Kind::kReal; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_array() const { return kind == Kind::kArray; }
  bool is_object() const { return kind == Kind::kObject; }

  /// The member of that name, or null where there is none (or this is no object).
  const Value* find(std::string_view key) const;
};

/// One key and its value. (Not a std::pair: clang cannot complete a pair of a type inside that type.)
struct Value::Member {
  std::string key;
  Value value;
};

inline const Value* Value::find(std::string_view key) const {
  for (const Member& member : members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

}  // namespace tidemark
