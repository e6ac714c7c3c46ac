#include "core/exchange/python/program.hpp"

#include <algorithm>
#include <utility>

namespace tidemark::exchange {

PyProgram::PyProgram(const Source& main, Sources all) : main_(main), all_(all), file_(main.name) {
  frames_.emplace_back();
  frames_.back().globals = &globals_;
}

void PyProgram::run(std::string_view text, int cell) {
  cell_ = cell;
  code_.push_back(parse_python(text));
  run_all(code_.back());
}

void PyProgram::run_the_rest() {
  resting_ = true;
  for (std::size_t at = 0; at < functions_.size(); ++at) {
    if (functions_[at].runs > 0) continue;
    PyObject none;
    call_function(static_cast<int>(at), none, nullptr);
  }
}

std::vector<const PyObject*> PyProgram::calls(std::string_view ending) const {
  std::vector<const PyObject*> found;
  for (const PyObject& one : objects) {
    if (one.is(ending)) found.push_back(&one);
  }
  return found;
}

PyValue PyProgram::keep(PyObject one) {
  PyValue value = py_value(Kind::kObject);
  if (objects.size() >= kMostObjects) return {};
  for (const Frame& frame : frames_) one.unsure |= frame.unsure > 0;
  value.places.push_back(one.place);
  objects.push_back(std::move(one));
  value.index = static_cast<int>(objects.size()) - 1;
  return value;
}

Origin PyProgram::place_of(const PyExpr& expression) const {
  return {file_, expression.line, std::max(expression.line, expression.last), cell_};
}

void PyProgram::run_all(const std::vector<PyStatement>& statements) {
  for (const PyStatement& statement : statements) {
    if (++steps_ > kMostSteps || (frames_.back().returned && frames_.back().unsure == 0)) return;
    run_one(statement);
  }
}

void PyProgram::run_one(const PyStatement& statement) {
  using Does = PyStatement::Kind;
  switch (statement.kind) {
    case Does::kExpression:
      evaluate(statement.value);
      break;
    case Does::kAssign:
      run_assign(statement);
      break;
    case Does::kIf:
      run_if(statement);
      break;
    case Does::kFor:
      run_for(statement);
      break;
    case Does::kWhile:
      evaluate(statement.value);
      run_all(statement.body);
      break;
    case Does::kWith:
      run_with(statement);
      break;
    case Does::kTry:
      run_all(statement.body);
      run_all(statement.other);
      break;
    case Does::kImport:
      run_import(statement);
      break;
    case Does::kClass:
      define_class(statement);
      break;
    case Does::kDef: {
      PyValue value = py_value(Kind::kFunction);
      value.index = define_function(statement);
      assign_name(statement.text, value);
      break;
    }
    case Does::kReturn:
      run_return(statement);
      break;
    case Does::kOther:
      break;
  }
}

void PyProgram::run_return(const PyStatement& statement) {
  PyValue value = evaluate(statement.value);
  Frame& frame = frames_.back();
  if (!frame.returned || frame.unsure == 0) frame.result = std::move(value);
  frame.returned = true;
}

void PyProgram::run_if(const PyStatement& statement) {
  const PyValue asked = evaluate(statement.value);
  const int holds = truth(asked);
  if (holds == 1) return run_all(statement.body);
  if (holds == 0) return run_all(statement.other);
  if (asked.test.is_known() && !frames_.back().test.is_known()) return run_sides(asked.test, statement);
  // Nobody knows: both, the first side last, so that it counts.
  ++frames_.back().unsure;
  run_all(statement.other);
  run_all(statement.body);
  --frames_.back().unsure;
}

/// A test of a parameter's name holds for some: each side is about those that it holds for.
void PyProgram::run_sides(const NameTest& test, const PyStatement& statement) {
  frames_.back().test = test;
  run_all(statement.body);
  frames_.back().test.none = !test.none;
  run_all(statement.other);
  frames_.back().test = {};
}

void PyProgram::run_with(const PyStatement& statement) {
  for (std::size_t at = 0; at + 1 < statement.targets.size(); at += 2) {
    const PyValue value = evaluate(statement.targets[at]);
    if (statement.targets[at + 1].kind != PyExpr::Kind::kUnknown) assign(statement.targets[at + 1], value);
  }
  run_all(statement.body);
}

bool PyProgram::is_unsure() const {
  return std::any_of(frames_.begin(), frames_.end(), [](const Frame& frame) { return frame.unsure > 0; });
}

}  // namespace tidemark::exchange
