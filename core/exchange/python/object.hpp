#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/exchange/python/value.hpp"

namespace tidemark::exchange {

/// Names with their values, in order; the last of a name counts.
using PyFields = std::vector<std::pair<std::string, PyValue>>;

/// A call that the program makes, and what it returns, which keeps the arguments as its fields.
struct PyObject {
  // Copied and dropped everywhere: made once, in object.cpp, and not inlined in each place.
  PyObject();
  PyObject(const PyObject& other);
  PyObject(PyObject&& other) noexcept;
  PyObject& operator=(const PyObject& other);
  PyObject& operator=(PyObject&& other) noexcept;
  ~PyObject();

  std::string name;                 ///< "transformers.AutoModelForCausalLM.from_pretrained"; of a method ".to"
  std::vector<std::string> bases;   ///< of an own class: those it derives from
  std::vector<PyValue> positional;  ///< arguments without a name
  PyFields fields;                  ///< keywords, and attributes that were set
  int self = -1;                    ///< of a method: the object
  int part_of = -1;                 ///< of a method: the object that what it is called of is a part of
  std::string part;                 ///< and which part
  Origin place;                     ///< of the call
  Origin defined;                   ///< of an own class: where it stands
  bool from_command = false;        ///< its fields come from the command line
  bool parsed = false;              ///< a parser of arguments made it, of a command that is known or not
  bool unsure = false;              ///< a test that nobody can decide leads to it
  mutable std::set<std::string, std::less<>> asked;  ///< fields that somebody looked at

  /// The field of that name, which is then one that was asked for.
  const PyValue* find(std::string_view key) const;
  /// The field of that name, or the argument at that position.
  const PyValue* find(std::string_view key, std::size_t position) const;
  /// Whether its name, or a base, ends so, at a dot.
  bool is(std::string_view ending) const;
};

}  // namespace tidemark::exchange
