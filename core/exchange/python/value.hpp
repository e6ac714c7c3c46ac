#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/reading.hpp"

namespace tidemark::exchange {

/// A test of a parameter's name: whether one of these texts is in it ("^" at its beginning), or none.
struct NameTest {
  std::vector<std::string> texts;  ///< empty: no such test
  bool none = false;               ///< holds where none of them is
  bool is_known() const { return !texts.empty(); }
};

/// What an expression is known to be, and the places that made it so.
struct PyValue {
  // Copied and dropped everywhere: made once, in value.cpp, and not inlined in each place.
  PyValue();
  PyValue(const PyValue& other);
  PyValue(PyValue&& other) noexcept;
  PyValue& operator=(const PyValue& other);
  PyValue& operator=(PyValue&& other) noexcept;
  ~PyValue();

  enum class Kind {
    kUnknown,
    kNone,
    kBool,
    kInteger,
    kReal,
    kString,
    kList,
    kDict,
    kSymbol,
    kObject,
    kFunction,
    kClass
  };
  Kind kind = Kind::kUnknown;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;                ///< of integers as well
  std::string text;               ///< of a string; the dotted name of a symbol: "torch.bfloat16"
  std::vector<PyValue> items;     ///< of lists, tuples and dictionaries
  std::vector<std::string> keys;  ///< of dictionaries, beside items
  int index = -1;                 ///< of objects, functions and classes
  std::vector<Origin> places;     ///< where it was made, and what it was made of
  std::string why;                ///< what makes it only likely
  int part_of = -1;               ///< of what is else unknown: the object that it is a part or a parameter of
  std::string part;               ///< and which: "model.layers"
  bool names_parameter = false;   ///< it is a parameter's name
  NameTest test;                  ///< it is a test of one

  bool is_number() const { return kind == Kind::kInteger || kind == Kind::kReal; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_known() const { return kind != Kind::kUnknown && kind != Kind::kSymbol; }
  /// Of dictionaries; null where the key is not there.
  const PyValue* find(std::string_view key) const;
};

/// How many items of a list or dictionary are followed.
inline constexpr std::size_t kMostItems = 5000;

/// A value of that kind, without anything else.
PyValue py_value(PyValue::Kind kind);
PyValue py_bool(bool value);
PyValue py_integer(std::int64_t value);
PyValue py_real(double value);
/// Longer ones are cut.
PyValue py_text(std::string text);
PyValue py_symbol(std::string name);
PyValue py_test(NameTest test);
PyValue py_value(const Node& node, const std::string& file);

/// Adds to a dictionary; the last of a key counts.
void put(PyValue& dictionary, const std::string& key, PyValue value);

/// A value knows the places of what it was made of.
void inherit(PyValue& value, const PyValue& other);
void inherit(PyValue& value, const Origin& place);

/// Whether a value is true; -1 where nobody knows.
int truth(const PyValue& value);
/// Whether it is the word True.
bool is_true(const PyValue* value);

/// The value for the request: a symbol by its last word, an object or an unknown as null.
Value to_value(const PyValue& value);

/// The value as a document's, without lines; an object or an unknown as null.
Node to_node(const PyValue& value);

/// Appends the places of a value that may be absent.
void cite(std::vector<Origin>& places, const PyValue* value);

/// "AdamW" of "torch.optim.AdamW".
std::string last_word(const std::string& name);

}  // namespace tidemark::exchange
