// Classes of the program's own, dataclasses before all.
#include <algorithm>
#include <utility>

#include "core/exchange/python/program.hpp"

namespace tidemark::exchange {

void PyProgram::define_class(const PyStatement& statement) {
  Class one;
  one.name = statement.text;
  // The line may be a decorator's; the class's own is before its body.
  const int body = statement.body.empty() ? statement.line : statement.body.front().line;
  one.place = {file_, statement.line, std::max(statement.line, body - 1), cell_};
  for (const PyExpr& base : statement.targets) {
    const PyValue value = evaluate(base);
    if (value.kind == Kind::kClass) {
      const Class& parent = class_of(value);
      one.bases.push_back(parent.name);
      one.bases.insert(one.bases.end(), parent.bases.begin(), parent.bases.end());
      one.fields = parent.fields;
      one.methods = parent.methods;
    } else if (!value.text.empty()) {
      one.bases.push_back(value.text);
    }
  }
  for (const PyStatement& inside : statement.body) {
    if (inside.kind == PyStatement::Kind::kDef) {
      one.methods[inside.text] = define_function(inside);
    } else if (inside.kind == PyStatement::Kind::kAssign && inside.targets.size() == 1 &&
               inside.targets[0].kind == PyExpr::Kind::kName) {
      one.fields.emplace_back(inside.targets[0].text, class_field(inside));
    }
  }
  classes_.push_back(std::move(one));
  PyValue value = py_value(Kind::kClass);
  value.index = static_cast<int>(classes_.size()) - 1;
  value.text = statement.text;
  assign_name(statement.text, value);
}

/// `name: type = value` in a class; of a dataclass's field(...) its default.
PyValue PyProgram::class_field(const PyStatement& statement) {
  const bool declared = statement.value.kind == PyExpr::Kind::kUnknown && statement.value.line == 0;
  PyValue value = declared ? PyValue{} : evaluate(statement.value);
  if (value.kind == Kind::kObject) {
    const PyObject& call = object(value);
    if (call.is("field") || call.is("Field")) {
      const PyValue* standard = call.find("default");
      value = standard == nullptr ? made_by_factory(statement.value) : *standard;
    }
  }
  value.places.push_back({file_, statement.line, statement.last, cell_});
  return value;
}

/// field(default_factory=lambda: ["q_proj", "v_proj"])
PyValue PyProgram::made_by_factory(const PyExpr& field) {
  for (std::size_t at = 1; at < field.items.size() && at < field.names.size(); ++at) {
    const PyExpr& factory = field.items[at];
    if (field.names[at] == "default_factory" && factory.kind == PyExpr::Kind::kUnknown && factory.items.size() == 1)
      return evaluate(factory.items[0]);
  }
  return {};
}

PyValue PyProgram::instance(int index, PyObject one) {
  const Class own = classes_[static_cast<std::size_t>(index)];
  one.name = own.name;
  one.bases = own.bases;
  one.defined = own.place;
  const auto given = one.fields;
  one.fields = own.fields;
  one.fields.insert(one.fields.end(), given.begin(), given.end());
  // Positional arguments of a dataclass are its fields in order.
  const bool constructor = own.methods.count("__init__") > 0;
  for (std::size_t at = 0; !constructor && at < one.positional.size() && at < own.fields.size(); ++at)
    one.fields.emplace_back(own.fields[at].first, one.positional[at]);
  PyObject arguments;
  arguments.positional = one.positional;
  arguments.fields = given;
  arguments.place = one.place;
  const PyValue value = keep(std::move(one));
  if (value.index < 0) return value;
  for (const char* name : {"__init__", "__post_init__"}) {
    const auto known = own.methods.find(name);
    if (known != own.methods.end()) call_function(known->second, arguments, &value);
  }
  return value;
}

}  // namespace tidemark::exchange
