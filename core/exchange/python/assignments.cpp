// Names that get a value, and what they mean afterwards.
#include <utility>

#include "core/exchange/python/program.hpp"

namespace tidemark::exchange {

void PyProgram::run_assign(const PyStatement& statement) {
  if (statement.value.kind == PyExpr::Kind::kUnknown && statement.value.line == 0) return;  // an annotation
  PyValue value = evaluate(statement.value);
  if (!statement.text.empty() && !statement.targets.empty()) {
    PyExpr sum;
    sum.kind = PyExpr::Kind::kBinary;
    sum.text = statement.text;
    sum.line = statement.line;
    sum.last = statement.last;
    sum.items = {statement.targets[0], statement.value};
    value = evaluate(sum);
  }
  for (const PyExpr& target : statement.targets) assign(target, value);
}

void PyProgram::run_for(const PyStatement& statement) {
  const PyValue all = evaluate(statement.value);
  const bool list = all.kind == Kind::kList && !all.items.empty();
  const PyObject* call = all.kind == Kind::kObject ? &object(all) : nullptr;
  if (!statement.targets.empty()) assign(statement.targets[0], list ? all.items[0] : each(all, call));
  run_all(statement.body);
}

/// Names, and lists of names.
void PyProgram::assign(const PyExpr& target, const PyValue& value) {
  if (target.kind == PyExpr::Kind::kName) {
    PyValue placed = value;
    if (value.kind != Kind::kFunction && value.kind != Kind::kClass) inherit(placed, place_of(target));
    remember(target.text, placed);
    assign_name(target.text, placed);
  } else if (target.kind == PyExpr::Kind::kTuple || target.kind == PyExpr::Kind::kList) {
    for (std::size_t at = 0; at < target.items.size(); ++at) {
      const bool known = value.kind == Kind::kList && at < value.items.size();
      // What a call returns several of is the call still: model, tokenizer = from_pretrained(...).
      const bool object = value.kind == Kind::kObject && at == 0;
      assign(target.items[at], known ? value.items[at] : object ? value : PyValue{});
    }
  } else if (target.kind == PyExpr::Kind::kAttribute || target.kind == PyExpr::Kind::kSubscript) {
    assign_member(target, value);
  }
}

/// `self.key = value` and `self[key] = value`.
void PyProgram::assign_member(const PyExpr& target, const PyValue& value) {
  const PyValue self = evaluate(target.items[0]);
  const std::string key = target.kind == PyExpr::Kind::kSubscript ? evaluate(target.items[1]).text : target.text;
  PyValue placed = value;
  placed.places.insert(placed.places.begin(), place_of(target));
  if (key == "requires_grad") set_trained(self, value, place_of(target));
  if (self.kind == Kind::kObject) {
    PyFields& fields = object(self).fields;
    if (fields.size() < kMostMembers) fields.emplace_back(key, std::move(placed));
  } else if (self.kind == Kind::kDict && target.items[0].kind == PyExpr::Kind::kName) {
    PyValue* known = lookup(target.items[0].text);
    if (known != nullptr && known->items.size() < kMostMembers) put(*known, key, std::move(placed));
  } else if (self.kind == Kind::kSymbol || self.kind == Kind::kUnknown) {
    remember(key, std::move(placed));
  }
}

void PyProgram::assign_name(const std::string& name, const PyValue& value) {
  Frame& frame = frames_.back();
  (frame.own_locals ? frame.locals : *frame.globals)[name] = value;
}

void PyProgram::remember(const std::string& name, PyValue value) {
  if (assignments.size() < kMostObjects) assignments.push_back({name, std::move(value)});
}

PyValue* PyProgram::lookup(const std::string& name) {
  Frame& frame = frames_.back();
  if (frame.own_locals) {
    if (const auto known = frame.locals.find(name); known != frame.locals.end()) return &known->second;
  }
  const auto known = frame.globals->find(name);
  return known == frame.globals->end() ? nullptr : &known->second;
}

}  // namespace tidemark::exchange
