#include "core/exchange/python/value.hpp"

#include <algorithm>
#include <utility>

#include "core/exchange/accelerate_keys.hpp"
#include "core/exchange/fields.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyValue::Kind;

constexpr std::size_t kLongestText = 1 << 16;
constexpr std::size_t kMostPlaces = 24;

}  // namespace

PyValue::PyValue() = default;
PyValue::PyValue(const PyValue& other) = default;
PyValue::PyValue(PyValue&& other) noexcept = default;
PyValue& PyValue::operator=(const PyValue& other) = default;
PyValue& PyValue::operator=(PyValue&& other) noexcept = default;
PyValue::~PyValue() = default;

const PyValue* PyValue::find(std::string_view key) const {
  for (std::size_t at = keys.size(); at-- > 0;) {
    if (keys[at] == key && at < items.size()) return &items[at];
  }
  return nullptr;
}

PyValue py_value(Kind kind) {
  PyValue value;
  value.kind = kind;
  return value;
}

PyValue py_bool(bool value) {
  PyValue one = py_value(Kind::kBool);
  one.boolean = value;
  return one;
}

PyValue py_integer(std::int64_t value) {
  PyValue one = py_value(Kind::kInteger);
  one.integer = value;
  one.real = static_cast<double>(value);
  return one;
}

PyValue py_real(double value) {
  PyValue one = py_value(Kind::kReal);
  one.real = value;
  return one;
}

PyValue py_text(std::string text) {
  PyValue value = py_value(Kind::kString);
  if (text.size() > kLongestText) text.resize(kLongestText);
  value.text = std::move(text);
  return value;
}

PyValue py_symbol(std::string name) {
  PyValue value = py_value(Kind::kSymbol);
  value.text = std::move(name);
  return value;
}

PyValue py_test(NameTest test) {
  PyValue value;
  value.test = std::move(test);
  return value;
}

PyValue py_value(const Node& node, const std::string& file) {
  PyValue value;
  switch (node.kind) {
    case Node::Kind::kNull:
      value.kind = Kind::kNone;
      break;
    case Node::Kind::kBool:
      value = py_bool(node.boolean);
      break;
    case Node::Kind::kInteger:
      value = py_integer(node.integer);
      break;
    case Node::Kind::kReal:
      value = py_real(node.real);
      break;
    case Node::Kind::kString:
      value.kind = Kind::kString;
      value.text = node.text;
      break;
    case Node::Kind::kArray:
      value.kind = Kind::kList;
      break;
    case Node::Kind::kObject:
      value.kind = Kind::kDict;
      value.keys = node.keys;
      break;
  }
  for (const Node& item : node.items) value.items.push_back(py_value(item, file));
  value.places.push_back({file, node.line, std::max(node.line, node.last), -1});
  return value;
}

void put(PyValue& dictionary, const std::string& key, PyValue value) {
  dictionary.keys.push_back(key);
  dictionary.items.push_back(std::move(value));
}

void inherit(PyValue& value, const Origin& place) {
  const bool known = std::any_of(value.places.begin(), value.places.end(), [&](const Origin& one) {
    return one.first == place.first && one.cell == place.cell && one.file == place.file;
  });
  if (!known && value.places.size() < kMostPlaces) value.places.push_back(place);
}

void inherit(PyValue& value, const PyValue& other) {
  for (const Origin& place : other.places) inherit(value, place);
  if (value.why.empty()) value.why = other.why;
}

int truth(const PyValue& value) {
  switch (value.kind) {
    case Kind::kNone:
      return 0;
    case Kind::kBool:
      return value.boolean ? 1 : 0;
    case Kind::kInteger:
    case Kind::kReal:
      return value.real != 0 ? 1 : 0;
    case Kind::kString:
      return value.text.empty() ? 0 : 1;
    case Kind::kList:
    case Kind::kDict:
      return value.items.empty() ? 0 : 1;
    case Kind::kFunction:
    case Kind::kClass:
      return 1;
    default:
      return -1;
  }
}

bool is_true(const PyValue* value) {
  return value != nullptr && value->kind == Kind::kBool && value->boolean;
}

Value to_value(const PyValue& value) {
  switch (value.kind) {
    case Kind::kBool:
      return of(value.boolean);
    case Kind::kInteger:
      return of(value.integer);
    case Kind::kReal:
      return of(value.real);
    case Kind::kString:
      return of(value.text);
    case Kind::kSymbol:
      return of(last_word(value.text));
    case Kind::kList: {
      std::vector<Value> items;
      for (const PyValue& item : value.items) items.push_back(to_value(item));
      return of(std::move(items));
    }
    case Kind::kDict: {
      Value dict = empty_object();
      for (std::size_t at = 0; at < value.keys.size() && at < value.items.size(); ++at)
        dict.members.push_back({value.keys[at], to_value(value.items[at])});
      return dict;
    }
    default:
      return {};
  }
}

Node to_node(const PyValue& value) {
  Node node;
  switch (value.kind) {
    case Kind::kBool:
      node.kind = Node::Kind::kBool;
      node.boolean = value.boolean;
      break;
    case Kind::kInteger:
      return plain_scalar(std::to_string(value.integer));
    case Kind::kReal:
      node.kind = Node::Kind::kReal;
      node.real = value.real;
      break;
    case Kind::kString:
      return text_node(value.text, 0);
    case Kind::kDict:
    case Kind::kList:
      node.kind = value.kind == Kind::kDict ? Node::Kind::kObject : Node::Kind::kArray;
      node.keys = value.keys;
      for (const PyValue& item : value.items) node.items.push_back(to_node(item));
      break;
    default:
      break;
  }
  return node;
}

void cite(std::vector<Origin>& places, const PyValue* value) {
  if (value != nullptr) places.insert(places.end(), value->places.begin(), value->places.end());
}

std::string last_word(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

}  // namespace tidemark::exchange
