#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/units/value.hpp"

namespace tidemark::exchange {

/// A document that knows its lines: what YAML, TOML and JSON are read into, by readers of our own (docs/imports.md says
/// why). A map's keys stand beside its items.
struct Node {
  using Kind = Value::Kind;

  Kind kind = Kind::kNull;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0.0;  ///< the same number where it is an integer
  std::string text;   ///< of strings; of numbers as they were written
  std::vector<Node> items;
  std::vector<std::string> keys;  ///< of a map, beside items
  int line = 0;                   ///< where it begins: a map's member at its key
  int last = 0;

  bool is_null() const { return kind == Kind::kNull; }
  bool is_bool() const { return kind == Kind::kBool; }
  bool is_integer() const { return kind == Kind::kInteger; }
  bool is_number() const { return kind == Kind::kInteger || kind == Kind::kReal; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_list() const { return kind == Kind::kArray; }
  bool is_map() const { return kind == Kind::kObject; }

  /// The member of that name, or null.
  const Node* find(std::string_view key) const;
  /// The member at a path, "zero_optimization.stage", or null.
  const Node* at(std::string_view dotted) const;
};

/// The same without lines.
Value to_value(const Node& node);

/// The word of a plain scalar as YAML 1.1 and PyYAML take it: true, 5, 1e-4, null, else a string.
Node plain_scalar(std::string_view word);

/// What a parser says beside the tree: where it stopped, in words; empty when it read everything.
struct Parsed {
  Node root;
  std::string error;
  int error_line = 0;
};

/// Bounds on documents of other people: what no honest file reaches.
inline constexpr int kMaxDepth = 64;
inline constexpr std::size_t kMaxNodes = 400'000;

/// JSON as it is found in the wild: with // and # comments, tabs, trailing commas, NaN. A key twice is told in `error`
/// when `strict`.
Parsed parse_json_lines(std::string_view text, bool strict = false);
/// YAML as training tools write it: block and flow collections, anchors, merges, quoted and folded scalars. The first
/// document of a stream.
Parsed parse_yaml_lines(std::string_view text);
/// The line that a stream's second document begins at, which is not read; 0 where there is none.
int further_document(std::string_view text);
/// TOML 1.0 but for dates.
Parsed parse_toml_lines(std::string_view text);

}  // namespace tidemark::exchange
