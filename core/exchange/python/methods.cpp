// Methods of texts, lists, dictionaries and objects.
#include <utility>

#include "core/exchange/python/program.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyValue::Kind;

constexpr std::size_t kMostPieces = 500;

PyValue split(const std::string& text, const std::string& at_each) {
  PyValue value = py_value(Kind::kList);
  std::size_t from = 0;
  for (std::size_t at = text.find(at_each); at != std::string::npos && value.items.size() < kMostPieces;
       at = text.find(at_each, from)) {
    value.items.push_back(py_text(text.substr(from, at - from)));
    from = at + at_each.size();
  }
  value.items.push_back(py_text(text.substr(from)));
  return value;
}

PyValue replace(const std::string& text, const std::string& what, const std::string& with) {
  const std::vector<PyValue> pieces = split(text, what).items;
  std::string made = pieces.front().text;
  for (std::size_t i = 1; i < pieces.size(); ++i) made += with + pieces[i].text;
  return py_text(std::move(made));
}

PyValue of_text(const PyValue& self, const std::string& name, const PyObject& call) {
  if (name == "lower") return py_text(lower_case(self.text));
  if (name == "strip" || name == "rstrip" || name == "lstrip" || name == "format") return self;
  const PyValue* first = call.positional.empty() ? nullptr : &call.positional[0];
  if (first == nullptr || !first->is_string() || first->text.empty()) return {};
  if (name == "split") return split(self.text, first->text);
  if (name == "replace" && call.positional.size() == 2 && call.positional[1].is_string())
    return replace(self.text, first->text, call.positional[1].text);
  return {};
}

/// A method of a text, a list or a dictionary.
PyValue of_value(const PyValue& self, const std::string& name, const PyObject& call) {
  PyValue value;
  const PyValue* first = call.positional.empty() ? nullptr : &call.positional[0];
  if (self.is_string()) {
    value = of_text(self, name, call);
  } else if (name == "get" && first != nullptr && first->is_string()) {
    if (const PyValue* item = self.find(first->text); item != nullptr) return *item;
    if (call.positional.size() > 1) value = call.positional[1];
  } else if (name == "copy") {
    return self;
  }
  inherit(value, self);
  return value;
}

/// torch.nn.Module's, which return the module itself.
bool returns_self(const std::string& name) {
  for (const char* same : {"to", "cuda", "cpu", "half", "float", "bfloat16", "train", "eval", "requires_grad_"}) {
    if (name == same) return true;
  }
  return false;
}

}  // namespace

PyValue PyProgram::method(const PyValue& self, const std::string& name, PyObject call) {
  if (self.is_string() || self.kind == Kind::kList || self.kind == Kind::kDict) return of_value(self, name, call);
  call.part_of = self.kind == Kind::kObject ? self.index : self.part_of;
  call.part = self.part;
  if (name == "requires_grad_") {
    PyValue of = self;
    of.part_of = call.part_of;
    const PyValue* said = call.positional.empty() ? call.find("requires_grad") : &call.positional[0];
    set_trained(of, said == nullptr ? py_bool(true) : *said, call.place);
  }
  if (self.names_parameter && name == "startswith" && call.positional.size() == 1 && call.positional[0].is_string())
    return py_test({{"^" + call.positional[0].text}, false});
  if (self.kind != Kind::kObject) {
    call.name = "." + name;
    return keep(std::move(call));
  }
  if (std::optional<PyValue> value = parser_method(self, name, call)) return std::move(*value);
  for (const Class& own : classes_) {
    if (own.name != object(self).name) continue;
    const auto known = own.methods.find(name);
    if (known != own.methods.end()) return call_function(known->second, call, &self);
  }
  call.name = "." + name;
  call.self = self.index;
  if (name == "copy") return self;
  PyValue kept = keep(std::move(call));
  return returns_self(name) ? self : kept;
}

}  // namespace tidemark::exchange
