// Calls: what is handed over, who is called, and what comes back.
#include <algorithm>
#include <utility>

#include "core/exchange/python/program.hpp"

namespace tidemark::exchange {

/// dict.update
void PyProgram::update(PyValue* known, const PyObject& by) {
  if (known == nullptr || known->items.size() > kMostMembers) return;
  const auto add = [&](const std::string& key, PyValue value) {
    inherit(value, by.place);
    put(*known, key, std::move(value));
  };
  for (const PyValue& other : by.positional) {
    for (std::size_t at = 0; at < other.keys.size() && at < other.items.size(); ++at)
      add(other.keys[at], other.items[at]);
  }
  for (const auto& [key, value] : by.fields) add(key, value);
}

/// An argument as it stands in a call: `value`, `name=value`, `*values`, `**values`.
void PyProgram::take_argument(PyObject& call, const std::string& name, const PyExpr& expression) {
  PyValue value = evaluate(expression);
  if (name.empty()) {
    call.positional.push_back(std::move(value));
  } else if (name == "*") {
    call.positional.insert(call.positional.end(), value.items.begin(), value.items.end());
  } else if (name == "**") {
    for (std::size_t at = 0; at < value.keys.size() && at < value.items.size(); ++at)
      call.fields.emplace_back(value.keys[at], value.items[at]);
    if (value.kind != Kind::kObject) return;
    const PyFields& fields = object(value).fields;
    call.fields.insert(call.fields.end(), fields.begin(), fields.end());
  } else {
    const Origin place = place_of(expression);  // the line of the keyword comes first
    const bool known = std::any_of(value.places.begin(), value.places.end(), [&](const Origin& one) {
      return one.first == place.first && one.cell == place.cell;
    });
    if (!known) value.places.insert(value.places.begin(), place);
    call.fields.emplace_back(name, std::move(value));
  }
}

PyValue PyProgram::call(const PyExpr& expression) {
  const PyExpr& callee = expression.items[0];
  const bool is_method = callee.kind == PyExpr::Kind::kAttribute;
  PyValue self;
  PyValue target;
  if (is_method) {
    self = evaluate(callee.items[0]);
    if (self.kind == Kind::kSymbol) target = py_symbol(self.text + "." + callee.text);
  } else {
    target = evaluate(callee);
  }
  PyObject made;
  made.place = place_of(expression);
  for (std::size_t at = 1; at < expression.items.size(); ++at)
    take_argument(made, expression.names[at], expression.items[at]);
  if (is_method && self.kind == Kind::kDict && callee.text == "update" && callee.items[0].kind == PyExpr::Kind::kName) {
    update(lookup(callee.items[0].text), made);
    return {};
  }
  if (target.kind == Kind::kFunction) return call_function(target.index, made, nullptr);
  if (target.kind == Kind::kClass) return instance(target.index, std::move(made));
  if (target.kind == Kind::kSymbol) {
    made.name = target.text;
    std::optional<PyValue> value = builtin(made);
    if (!value) return keep(std::move(made));
    inherit(*value, made.place);
    return std::move(*value);
  }
  if (is_method) return method(self, callee.text, std::move(made));
  const bool of_object = target.kind == Kind::kObject;  // model(**batch): remember who was called
  made.name = of_object ? "()" : "?";
  if (of_object) made.self = target.index;
  return keep(std::move(made));
}

int PyProgram::define_function(const PyStatement& statement) {
  functions_.push_back({&statement, frames_.back().globals, file_, cell_, 0});
  return static_cast<int>(functions_.size()) - 1;
}

/// What a function's parameters are in a call of it.
PyProgram::Scope PyProgram::parameters_of(const PyStatement& code, const PyObject& call, const PyValue* self) {
  Scope locals;
  std::size_t position = 0;
  for (std::size_t at = 0; at < code.parameters.size(); ++at) {
    const PyParameter& parameter = code.parameters[at];
    PyValue value;
    if (at == 0 && (parameter.name == "self" || parameter.name == "cls")) {
      if (self != nullptr) value = *self;
    } else if (const PyValue* named = call.find(parameter.name); named != nullptr) {
      value = *named;
    } else if (position < call.positional.size()) {
      value = call.positional[position++];
    } else if (parameter.has_standard) {
      value = evaluate(parameter.standard);
      if (value.why.empty() && value.is_known()) value.why = "default of the parameter " + parameter.name;
      if (value.is_known()) remember(parameter.name, value);
    } else {
      value.places.push_back({file_, code.line, code.line, cell_});
    }
    locals[parameter.name] = std::move(value);
  }
  return locals;
}

PyValue PyProgram::call_function(int index, const PyObject& call, const PyValue* self) {
  Function& function = functions_[static_cast<std::size_t>(index)];
  if (depth_ > kDeepestCall || frames_.size() > kMostFrames || function.runs >= kMostRuns || steps_ > kMostSteps)
    return {};
  ++function.runs;
  const std::string file = std::exchange(file_, function.file);
  const int cell = std::exchange(cell_, function.cell);
  Frame frame;
  frame.globals = function.globals;
  frame.own_locals = true;
  frame.locals = parameters_of(*function.code, call, self);
  frames_.push_back(std::move(frame));
  ++depth_;
  run_all(function.code->body);
  --depth_;
  PyValue result = std::move(frames_.back().result);
  frames_.pop_back();
  file_ = file;
  cell_ = cell;
  return result;
}

}  // namespace tidemark::exchange
