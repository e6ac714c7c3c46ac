#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/reading.hpp"
#include "core/exchange/text/node.hpp"
#include "core/units/make_value.hpp"

namespace tidemark::exchange {

/// to_value, as readers write it hundreds of times.
template <class T>
Value of(const T& value) {
  return tidemark::to_value(value);
}
Value of(std::vector<Value> items);
/// The recipe that weights of one dtype ("bf16", "fp16", "fp32") and autocast in another (or "") make.
Value precision_of(std::string_view weights, std::string_view autocast);
/// An object of these members.
Value object(std::initializer_list<std::pair<std::string_view, Value>> members);

/// A configuration while it is read: which of its keys were asked for, and so which were not.
class Keys {
 public:
  Keys(const Node& root, std::string file, Reading& reading);

  /// The member at a dotted path when it is there and not null; marked as read.
  const Node* operator[](std::string_view dotted);
  /// The first of several names that is there.
  const Node* any(std::initializer_list<std::string_view> names);
  /// Marked as read, with all below it.
  void touch(std::string_view dotted);

  std::string text(std::string_view dotted);  ///< empty where it is none
  bool truthy(std::string_view dotted);       ///< true, a number but 0, a string but "false"

  Origin origin(const Node* node) const;
  /// Says the field as a key has it.
  void state(std::string_view path, Value value, std::initializer_list<const Node*> nodes, std::string assumed = {});
  /// Says the field by rule alone.
  void assume(std::string_view path, Value value, std::string why);
  /// If the key is there: the field is its value. Whether it was.
  bool copy(std::string_view path, std::string_view dotted);
  bool copy_any(std::string_view path, std::initializer_list<std::string_view> names);
  bool has(std::string_view path) const;

  void unknown(std::string what) { reading.unknowns.push_back(std::move(what)); }
  void note(std::string what) { reading.notes.push_back(std::move(what)); }
  /// The keys that nobody asked for, into the reading.
  void tell_unread();

  const Node& root;
  std::string file;
  Reading& reading;

 private:
  void tell_unread(const Node& node, const std::string& prefix, int depth);
  std::vector<std::string> read_;
};

/// Whether a key of a training configuration takes no memory.
bool is_harmless_key(std::string_view key);

/// Whether the name ends so, letters of either case.
bool name_ends(const Source& source, std::string_view ending);
/// "train.yaml" of "configs/train.yaml".
std::string_view base_name(std::string_view path);

}  // namespace tidemark::exchange
