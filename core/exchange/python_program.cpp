#include "core/exchange/python_program.hpp"

#include <algorithm>
#include <cmath>

#include "core/exchange/fields.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

constexpr long kMostSteps = 400'000;
constexpr int kDeepest = 40;
constexpr int kMostRuns = 3;
constexpr std::size_t kMostObjects = 20'000;
constexpr std::size_t kLongestText = 1 << 16;
constexpr std::size_t kMostPlaces = 24;

bool ends_so(std::string_view name, std::string_view ending) {
  if (name.size() < ending.size() || name.substr(name.size() - ending.size()) != ending) return false;
  return name.size() == ending.size() || ending.front() == '.' || name[name.size() - ending.size() - 1] == '.';
}

std::string last_word(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

PyValue made(PyValue::Kind kind) {
  PyValue value;
  value.kind = kind;
  return value;
}
PyValue from_bool(bool value) {
  PyValue one = made(PyValue::Kind::kBool);
  one.boolean = value;
  return one;
}
PyValue from_integer(std::int64_t value) {
  PyValue one = made(PyValue::Kind::kInteger);
  one.integer = value;
  one.real = static_cast<double>(value);
  return one;
}
PyValue from_real(double value) {
  PyValue one = made(PyValue::Kind::kReal);
  one.real = value;
  return one;
}

/// A value knows the places of what it was made of.
void inherit(PyValue& value, const PyValue& other) {
  for (const Origin& place : other.places) {
    const bool known = std::any_of(value.places.begin(), value.places.end(), [&](const Origin& one) {
      return one.first == place.first && one.cell == place.cell && one.file == place.file;
    });
    if (!known && value.places.size() < kMostPlaces) value.places.push_back(place);
  }
  if (value.why.empty()) value.why = other.why;
}

PyValue from_node(const Node& node, const std::string& file) {
  PyValue value;
  switch (node.kind) {
    case Node::Kind::kNull:
      value.kind = PyValue::Kind::kNone;
      break;
    case Node::Kind::kBool:
      value = from_bool(node.boolean);
      break;
    case Node::Kind::kInteger:
      value = from_integer(node.integer);
      break;
    case Node::Kind::kReal:
      value = from_real(node.real);
      break;
    case Node::Kind::kString:
      value.kind = PyValue::Kind::kString;
      value.text = node.text;
      break;
    case Node::Kind::kArray:
      value.kind = PyValue::Kind::kList;
      break;
    case Node::Kind::kObject:
      value.kind = PyValue::Kind::kDict;
      value.keys = node.keys;
      break;
  }
  for (const Node& item : node.items) value.items.push_back(from_node(item, file));
  value.places.push_back({file, node.line, std::max(node.line, node.last), -1});
  return value;
}

}  // namespace

const PyValue* PyValue::find(std::string_view key) const {
  for (std::size_t at = keys.size(); at-- > 0;) {
    if (keys[at] == key && at < items.size()) return &items[at];
  }
  return nullptr;
}

const PyValue* PyObject::find(std::string_view key) const {
  for (std::size_t at = fields.size(); at-- > 0;) {
    if (fields[at].first != key) continue;
    asked.emplace(key);
    return &fields[at].second;
  }
  return nullptr;
}

bool PyObject::is(std::string_view ending) const {
  return ends_so(name, ending) ||
         std::any_of(bases.begin(), bases.end(), [&](const std::string& base) { return ends_so(base, ending); });
}

Value to_value(const PyValue& value) {
  switch (value.kind) {
    case PyValue::Kind::kBool:
      return of(value.boolean);
    case PyValue::Kind::kInteger:
      return of(value.integer);
    case PyValue::Kind::kReal:
      return of(value.real);
    case PyValue::Kind::kString:
      return of(value.text);
    case PyValue::Kind::kSymbol:
      return of(last_word(value.text));
    case PyValue::Kind::kList: {
      std::vector<Value> items;
      for (const PyValue& item : value.items) items.push_back(to_value(item));
      return of(std::move(items));
    }
    case PyValue::Kind::kDict: {
      Value dict = empty_object();
      for (std::size_t at = 0; at < value.keys.size() && at < value.items.size(); ++at)
        dict.members.push_back({value.keys[at], to_value(value.items[at])});
      return dict;
    }
    default:
      return {};
  }
}

PyProgram::PyProgram(const Source& main, Sources all) : main_(main), all_(all), file_(main.name) {
  frames_.emplace_back();
  frames_.back().globals = &globals_;
}

void PyProgram::run(std::string_view text, int cell) {
  cell_ = cell;
  code_.push_back(parse_python(text));
  run_all(code_.back());
}

void PyProgram::start_with(const std::deque<Arg>& given) {
  commanded_ = true;
  for (const Arg& flag : given) {
    if (!flag.unresolved.empty()) continue;
    PyValue value = from_node(flag.value, file_);
    value.places = flag.origins;
    value.why = flag.assumed;
    command_.emplace_back(flag.key, std::move(value));
  }
}

const PyValue* PyProgram::commanded(const std::string& key) {
  for (const auto& [name, value] : command_) {
    if (name != key) continue;
    flags.push_back(key);
    return &value;
  }
  return nullptr;
}

void PyProgram::add_document(const Node& node, const std::string& name, int cell, int lines_before, int launch_cell) {
  PyObject one;
  one.name = name;
  const PyValue value = from_node(node, file_);
  one.place = {file_, node.line + lines_before, node.last + lines_before, cell};
  for (std::size_t at = 0; at < value.keys.size(); ++at) {
    PyValue field = value.items[at];
    for (Origin& place : field.places) {
      const bool launched = place.first == 0;
      place = {file_, launched ? 1 : place.first + lines_before, launched ? 1 : place.last + lines_before,
               launched ? launch_cell : cell};
    }
    one.fields.emplace_back(value.keys[at], std::move(field));
  }
  keep(std::move(one));
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
      PyValue value = made(Kind::kFunction);
      value.index = define_function(statement);
      assign_name(statement.text, value);
      break;
    }
    case Does::kReturn: {
      PyValue value = evaluate(statement.value);
      Frame& frame = frames_.back();
      if (!frame.returned || frame.unsure == 0) frame.result = std::move(value);
      frame.returned = true;
      break;
    }
    case Does::kOther:
      break;
  }
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

bool PyProgram::is_unsure() const {
  return std::any_of(frames_.begin(), frames_.end(), [](const Frame& frame) { return frame.unsure > 0; });
}

/// What a loop over all of it takes one by one: parameters, or parts that stand in a list.
PyValue PyProgram::each(const PyValue& all, const PyObject* call) {
  PyValue one;
  if (call == nullptr) {
    one.part_of = all.part_of;
    one.part = all.part;
    return one;
  }
  const bool named = call->name == ".named_parameters" || call->name == ".named_modules";
  if (!named && call->name != ".parameters" && call->name != ".modules" && call->name != ".children") return one;
  one.part_of = call->part_of;
  one.part = call->part;
  if (!named) return one;
  PyValue pair = made(Kind::kList);
  pair.items.resize(2);
  pair.items[0].names_parameter = true;
  pair.items[1] = std::move(one);
  return pair;
}

/// `requires_grad = value`, or requires_grad_(value).
void PyProgram::set_trained(const PyValue& of, const PyValue& value, const Origin& place) {
  PyFreezing one;
  one.root = of.part_of >= 0 ? of.part_of : of.kind == Kind::kObject ? of.index : -1;
  one.part = of.part;
  one.place = place;
  one.test = frames_.back().test;
  one.trained = value.boolean;
  const bool tested = std::any_of(frames_.begin(), frames_.end() - 1, [](const Frame& f) { return f.test.is_known(); });
  one.is_known =
      of.part_of >= 0 && value.kind == Kind::kBool && !is_unsure() && !tested && of.part.find('?') == std::string::npos;
  // A function that nobody calls freezes what nobody hands it.
  if (freezing.size() > kMostPlaces || (resting_ && of.part_of < 0)) return;
  if (value.test.is_known() && !one.test.is_known() && of.part_of >= 0 && !is_unsure()) {  // = "head" in name
    one.is_known = one.trained = true;
    one.test = value.test;
    freezing.push_back(one);
    one.trained = false;
    one.test.none = !one.test.none;
  }
  freezing.push_back(std::move(one));
}

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
  const PyObject* call = all.kind == Kind::kObject ? &objects[static_cast<std::size_t>(all.index)] : nullptr;
  if (!statement.targets.empty()) assign(statement.targets[0], list ? all.items[0] : each(all, call));
  run_all(statement.body);
}

void PyProgram::run_with(const PyStatement& statement) {
  for (std::size_t at = 0; at + 1 < statement.targets.size(); at += 2) {
    const PyValue value = evaluate(statement.targets[at]);
    if (statement.targets[at + 1].kind != PyExpr::Kind::kUnknown) assign(statement.targets[at + 1], value);
  }
  run_all(statement.body);
}

void PyProgram::run_import(const PyStatement& statement) {
  if (import_sibling(statement)) return;
  const std::string alias = statement.targets.empty() ? std::string{} : statement.targets[0].text;
  if (statement.names.empty() && statement.text.find('.') == std::string::npos) {
    if (Scope* scope = module_of(statement.text); scope != nullptr) {
      PyObject module;
      module.name = statement.text;
      module.place = {file_, statement.line, statement.last, cell_};
      for (const auto& [name, value] : *scope) module.fields.emplace_back(name, value);
      return assign_name(alias.empty() ? statement.text : alias, keep(std::move(module)));
    }
  }
  if (statement.names.empty()) {
    const std::string first = statement.text.substr(0, statement.text.find('.'));
    if (!first.empty()) assign_name(alias.empty() ? first : alias, symbol(alias.empty() ? first : statement.text));
    return;
  }
  for (std::size_t at = 0; at + 1 < statement.names.size(); at += 2) {
    if (statement.names[at] != "*")
      assign_name(statement.names[at + 1], symbol(statement.text + "." + statement.names[at]));
  }
}

/// A module that was handed over as well.
bool PyProgram::import_sibling(const PyStatement& statement) {
  std::string path = statement.text;
  path.erase(0, path.find_first_not_of('.') == std::string::npos ? path.size() : path.find_first_not_of('.'));
  if (path.empty() || statement.names.empty()) return false;
  Scope* scope = module_of(path);
  if (scope == nullptr) {
    return false;
  }
  for (std::size_t at = 0; at + 1 < statement.names.size(); at += 2) {
    const auto known = scope->find(statement.names[at]);
    if (known != scope->end()) assign_name(statement.names[at + 1], known->second);
    if (statement.names[at] == "*") {
      for (const auto& [name, value] : *scope) assign_name(name, value);
    }
  }
  return true;
}

PyProgram::Scope* PyProgram::module_of(const std::string& name) {
  std::string path = name;
  std::replace(path.begin(), path.end(), '.', '/');
  path += ".py";
  for (const Source& source : all_) {
    const bool same = source.name.size() >= path.size() &&
                      source.name.compare(source.name.size() - path.size(), path.size(), path) == 0;
    if (!same || source.name == main_.name) continue;
    if (source.name.size() > path.size() && source.name[source.name.size() - path.size() - 1] != '/') continue;
    if (const auto known = modules_.find(source.name); known != modules_.end()) return &known->second;
    Scope& scope = modules_[source.name];
    if (depth_ > 8) return &scope;
    const std::string file = std::exchange(file_, source.name);
    const int cell = std::exchange(cell_, -1);
    code_.push_back(parse_python(source.bytes));
    frames_.emplace_back();
    frames_.back().globals = &scope;
    ++depth_;
    run_all(code_.back());
    --depth_;
    frames_.pop_back();
    file_ = file;
    cell_ = cell;
    return &scope;
  }
  return nullptr;
}

int PyProgram::define_function(const PyStatement& statement) {
  functions_.push_back({&statement, frames_.back().globals, file_, cell_, 0});
  return static_cast<int>(functions_.size()) - 1;
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

void PyProgram::define_class(const PyStatement& statement) {
  Class one;
  one.name = statement.text;
  // The line may be a decorator's; the class's own is before its body.
  const int body = statement.body.empty() ? statement.line : statement.body.front().line;
  one.place = {file_, statement.line, std::max(statement.line, body - 1), cell_};
  for (const PyExpr& base : statement.targets) {
    const PyValue value = evaluate(base);
    if (value.kind == Kind::kClass) {
      const Class& parent = classes_[static_cast<std::size_t>(value.index)];
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
      const bool declared = inside.value.kind == PyExpr::Kind::kUnknown && inside.value.line == 0;
      PyValue value = declared ? PyValue{} : evaluate(inside.value);
      if (value.kind == Kind::kObject) {
        const PyObject& made_of = objects[static_cast<std::size_t>(value.index)];
        const PyValue* standard = made_of.is("field") || made_of.is("Field") ? made_of.find("default") : nullptr;
        if (made_of.is("field") || made_of.is("Field")) {
          value = standard == nullptr ? made_by_factory(inside.value) : *standard;
        }
      }
      value.places.push_back({file_, inside.line, inside.last, cell_});
      one.fields.emplace_back(inside.targets[0].text, std::move(value));
    }
  }
  classes_.push_back(std::move(one));
  PyValue value = made(Kind::kClass);
  value.index = static_cast<int>(classes_.size()) - 1;
  value.text = statement.text;
  assign_name(statement.text, value);
}

void PyProgram::assign_name(const std::string& name, const PyValue& value) {
  Frame& frame = frames_.back();
  (frame.own_locals ? frame.locals : *frame.globals)[name] = value;
}

void PyProgram::assign(const PyExpr& target, const PyValue& value) {
  if (target.kind == PyExpr::Kind::kName) {
    PyValue placed = value;
    if (value.kind != Kind::kFunction && value.kind != Kind::kClass) {
      PyValue here;
      here.places.push_back(place_of(target));
      inherit(placed, here);
    }
    if (assignments.size() < kMostObjects) assignments.push_back({target.text, placed});
    assign_name(target.text, placed);
  } else if (target.kind == PyExpr::Kind::kTuple || target.kind == PyExpr::Kind::kList) {
    for (std::size_t at = 0; at < target.items.size(); ++at) {
      const bool known = value.kind == Kind::kList && at < value.items.size();
      // What a call returns several of is the call still: model, tokenizer = from_pretrained(...).
      const bool object = value.kind == Kind::kObject && at == 0;
      assign(target.items[at], known ? value.items[at] : object ? value : PyValue{});
    }
  } else if (target.kind == PyExpr::Kind::kAttribute || target.kind == PyExpr::Kind::kSubscript) {
    const PyValue self = evaluate(target.items[0]);
    std::string key = target.text;
    if (target.kind == PyExpr::Kind::kSubscript) key = evaluate(target.items[1]).text;
    PyValue placed = value;
    placed.places.insert(placed.places.begin(), place_of(target));
    if (key == "requires_grad") set_trained(self, value, place_of(target));
    if (self.kind == Kind::kObject) {
      std::vector<std::pair<std::string, PyValue>>& fields = objects[static_cast<std::size_t>(self.index)].fields;
      if (fields.size() < 2000) fields.emplace_back(key, std::move(placed));
    } else if (self.kind == Kind::kDict && target.items[0].kind == PyExpr::Kind::kName) {
      if (PyValue* known = lookup(target.items[0].text); known != nullptr && known->items.size() < 2000) {
        known->keys.push_back(key);
        known->items.push_back(std::move(placed));
      }
    } else if (self.kind == Kind::kSymbol || self.kind == Kind::kUnknown) {
      if (assignments.size() < kMostObjects) assignments.push_back({key, std::move(placed)});
    }
  }
}

PyValue* PyProgram::lookup(const std::string& name) {
  Frame& frame = frames_.back();
  if (frame.own_locals) {
    if (const auto known = frame.locals.find(name); known != frame.locals.end()) return &known->second;
  }
  const auto known = frame.globals->find(name);
  return known == frame.globals->end() ? nullptr : &known->second;
}

Origin PyProgram::place_of(const PyExpr& expression) const {
  return {file_, expression.line, std::max(expression.line, expression.last), cell_};
}

PyValue PyProgram::symbol(std::string name) const {
  PyValue value = made(Kind::kSymbol);
  value.text = std::move(name);
  return value;
}

PyValue PyProgram::text_value(std::string text) const {
  PyValue value = made(Kind::kString);
  if (text.size() > kLongestText) text.resize(kLongestText);
  value.text = std::move(text);
  return value;
}

int PyProgram::truth(const PyValue& value) {
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

PyValue PyProgram::evaluate(const PyExpr& expression) {
  if (++steps_ > kMostSteps || depth_ > kDeepest) return {};
  ++depth_;
  PyValue value = evaluate_plain(expression);
  --depth_;
  return value;
}

PyValue PyProgram::evaluate_plain(const PyExpr& expression) {
  using Is = PyExpr::Kind;
  PyValue value;
  switch (expression.kind) {
    case Is::kUnknown:  // a comprehension or a lambda: what it calls counts, what it makes is not known
      for (const PyExpr& item : expression.items) evaluate(item);
      return value;
    case Is::kNone:
      value.kind = Kind::kNone;
      break;
    case Is::kTrue:
      value = from_bool(true);
      break;
    case Is::kFalse:
      value = from_bool(false);
      break;
    case Is::kNumber:
      value = number(expression);
      break;
    case Is::kString:
      value = text_value(expression.text);
      break;
    case Is::kName: {
      if (expression.text == "__name__") return text_value("__main__");
      PyValue* known = lookup(expression.text);
      value = known == nullptr ? symbol(expression.text) : *known;
      break;
    }
    case Is::kAttribute:
      return attribute(expression);
    case Is::kSubscript:
      return subscript(expression);
    case Is::kCall:
      return call(expression);
    case Is::kList:
    case Is::kTuple:
      value.kind = Kind::kList;
      for (const PyExpr& item : expression.items) {
        value.items.push_back(evaluate(item));
        if (value.items.size() > 5000) break;
      }
      break;
    case Is::kDict:
      value = dict(expression);
      break;
    case Is::kBinary:
      value = binary(expression);
      break;
    case Is::kCompare:
      value = compare(expression);
      break;
    case Is::kBool:
      value = logic(expression);
      break;
    case Is::kUnary:
      value = unary(expression);
      break;
    case Is::kChoice:
      value = choice(expression);
      break;
    case Is::kJoined:
      value = joined(expression);
      break;
  }
  if (value.kind != Kind::kFunction && value.kind != Kind::kClass && expression.line > 0) {
    PyValue here;
    here.places.push_back(place_of(expression));
    inherit(value, here);
  }
  return value;
}

PyValue PyProgram::number(const PyExpr& expression) const {
  std::string text = expression.text;
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  const Node node = plain_scalar(text);
  if (node.is_integer()) return from_integer(node.integer);
  return node.is_number() ? from_real(node.real) : PyValue{};
}

PyValue PyProgram::attribute(const PyExpr& expression) {
  PyValue self = evaluate(expression.items[0]);
  if (self.kind == Kind::kSymbol) {
    PyValue value = symbol(self.text + "." + expression.text);
    value.places.push_back(place_of(expression));
    return value;
  }
  if (self.kind == Kind::kObject) {
    const PyValue* field = objects[static_cast<std::size_t>(self.index)].find(expression.text);
    if (field != nullptr) {
      PyValue value = *field;
      PyValue here;
      here.places.push_back(place_of(expression));
      inherit(value, here);
      return value;
    }
  }
  if (self.kind == Kind::kObject || (self.kind == Kind::kUnknown && self.part_of >= 0)) {
    PyValue value;
    value.part_of = self.kind == Kind::kObject ? self.index : self.part_of;
    value.part = self.part.empty() ? expression.text : self.part + "." + expression.text;
    value.places.push_back(place_of(expression));
    return value;
  }
  if (self.kind == Kind::kClass) {
    for (const auto& [name, value] : classes_[static_cast<std::size_t>(self.index)].fields) {
      if (name == expression.text) return value;
    }
  }
  if (const PyValue* item = self.find(expression.text); item != nullptr) return *item;  // OmegaConf and its like
  PyValue value;
  value.places.push_back(place_of(expression));
  return value;
}

PyValue PyProgram::subscript(const PyExpr& expression) {
  PyValue self = evaluate(expression.items[0]);
  const PyValue index = evaluate(expression.items[1]);
  PyValue value;
  if (self.kind == Kind::kObject && index.is_string()) {
    const PyValue* field = objects[static_cast<std::size_t>(self.index)].find(index.text);
    if (field != nullptr) value = *field;
  } else if (const PyValue* item = index.is_string() ? self.find(index.text) : nullptr; item != nullptr) {
    value = *item;
  } else if (self.kind == Kind::kList && index.kind == Kind::kInteger) {
    const std::int64_t size = static_cast<std::int64_t>(self.items.size());
    const std::int64_t at = index.integer < 0 ? size + index.integer : index.integer;
    if (at >= 0 && at < size) value = self.items[static_cast<std::size_t>(at)];
  } else if (self.kind == Kind::kObject && self.index >= 0 && index.kind == Kind::kInteger && index.integer == 0) {
    value = self;
  } else if (self.kind == Kind::kUnknown && self.part_of >= 0) {
    value.part_of = self.part_of;
    const bool counted = index.kind == Kind::kInteger && index.integer >= 0;
    value.part = self.part + "." + (counted ? std::to_string(index.integer) : "?");
  }
  PyValue here;
  here.places.push_back(place_of(expression));
  inherit(value, here);
  return value;
}

PyValue PyProgram::dict(const PyExpr& expression) {
  PyValue value = made(Kind::kDict);
  for (std::size_t at = 0; at + 1 < expression.items.size(); at += 2) {
    const PyExpr& key = expression.items[at];
    PyValue item = evaluate(expression.items[at + 1]);
    if (key.kind == PyExpr::Kind::kNone && key.text.empty()) {
      for (std::size_t other = 0; other < item.keys.size() && other < item.items.size(); ++other) {
        value.keys.push_back(item.keys[other]);
        value.items.push_back(item.items[other]);
      }
      continue;
    }
    PyValue here;
    here.places.push_back({file_, key.line, std::max(key.last, expression.items[at + 1].last), cell_});
    inherit(here, item);
    item.places = std::move(here.places);
    value.keys.push_back(evaluate(key).text);
    value.items.push_back(std::move(item));
    if (value.items.size() > 5000) break;
  }
  return value;
}

namespace {

// std::pow brings tables of 5 KB, for exponents that scripts do not have.
double whole_power(double base, double exponent) {
  double power = 1.0;
  for (double i = 0; i < std::abs(exponent); ++i) power *= base;
  return exponent < 0 ? 1.0 / power : power;
}

}  // namespace

PyValue PyProgram::binary(const PyExpr& expression) {
  const PyValue left = evaluate(expression.items[0]);
  const PyValue right = evaluate(expression.items[1]);
  const std::string& op = expression.text;
  PyValue value;
  if (left.is_number() && right.is_number()) {
    const bool whole = left.kind == Kind::kInteger && right.kind == Kind::kInteger;
    double result = 0;
    bool known = true;
    if (op == "+")
      result = left.real + right.real;
    else if (op == "-")
      result = left.real - right.real;
    else if (op == "*")
      result = left.real * right.real;
    else if ((op == "/" || op == "//" || op == "%") && right.real == 0)
      known = false;
    else if (op == "/")
      result = left.real / right.real;
    else if (op == "//")
      result = std::floor(left.real / right.real);
    else if (op == "%")
      result = left.real - right.real * std::floor(left.real / right.real);
    else if (op == "**" && right.real == 0.5 && left.real >= 0)
      result = std::sqrt(left.real);
    else if (op == "**" && std::abs(right.real) < 64 && right.real == std::floor(right.real))
      result = whole_power(left.real, right.real);
    else
      known = false;
    const bool fits = std::abs(result) < 9e15;
    if (known && fits) value = whole && op != "/" ? from_integer(static_cast<std::int64_t>(result)) : from_real(result);
  } else if (op == "+" && left.is_string() && right.is_string()) {
    value = text_value(left.text + right.text);
  } else if (op == "+" && left.kind == Kind::kList && right.kind == Kind::kList) {
    value = left;
    value.items.insert(value.items.end(), right.items.begin(), right.items.end());
    if (value.items.size() > 5000) value.items.resize(5000);
  } else if (op == "/" && left.is_string() && right.is_string()) {
    value = text_value(left.text + "/" + right.text);
  } else if (op == "/" && right.is_string() && (left.kind == Kind::kObject || left.kind == Kind::kSymbol)) {
    value = text_value(right.text);  // a path below something unknown
    value.why = "the last part of a path";
  }
  inherit(value, left);
  inherit(value, right);
  return value;
}

PyValue PyProgram::compare(const PyExpr& expression) {
  const PyValue left = evaluate(expression.items[0]);
  const PyValue right = evaluate(expression.items[1]);
  const std::string& op = expression.text;
  if (op == "in" || op == "not in") {
    if (left.is_string() && right.names_parameter) {
      PyValue value;
      value.test = {{left.text}, op == "not in"};
      return value;
    }
    if (!left.is_string() || (right.kind != Kind::kList && right.kind != Kind::kDict && !right.is_string())) return {};
    bool inside = right.is_string() && right.text.find(left.text) != std::string::npos;
    for (const PyValue& item : right.items)
      inside |= right.kind == Kind::kList && item.is_string() && item.text == left.text;
    inside |= right.find(left.text) != nullptr;
    return from_bool(inside == (op == "in"));
  }
  if (!left.is_known() || !right.is_known() || left.kind == Kind::kObject || right.kind == Kind::kObject) {
    const bool object_and_none = (left.kind == Kind::kObject && right.kind == Kind::kNone) ||
                                 (left.kind == Kind::kNone && right.kind == Kind::kObject);
    if (!object_and_none) return {};
    // A class's call makes something; a function that nobody has seen may as well return None.
    const std::string made_by = last_word(objects[static_cast<std::size_t>(std::max(left.index, right.index))].name);
    const bool may_be_none = made_by.compare(0, 4, "get_") == 0 || made_by.compare(0, 6, "maybe_") == 0;
    return may_be_none ? PyValue{} : from_bool(op == "!=");
  }
  if (left.is_number() && right.is_number()) {
    const double a = left.real;
    const double b = right.real;
    return from_bool(op == "=="   ? a == b
                     : op == "!=" ? a != b
                     : op == "<"  ? a < b
                     : op == ">"  ? a > b
                     : op == "<=" ? a <= b
                                  : a >= b);
  }
  const bool same = left.kind == right.kind && left.text == right.text && left.boolean == right.boolean &&
                    left.items.size() == right.items.size();
  if (op == "==" || op == "!=") return from_bool(same == (op == "=="));
  return {};
}

/// Two tests of a name as one: "a" in name or "b" in name; "a" not in name and "b" not in name.
NameTest PyProgram::either(const NameTest& left, const NameTest& right, bool all) {
  if (!left.is_known() || !right.is_known() || left.none != right.none || left.none != all) return {};
  NameTest both = left;
  both.texts.insert(both.texts.end(), right.texts.begin(), right.texts.end());
  return both;
}

PyValue PyProgram::logic(const PyExpr& expression) {
  PyValue left = evaluate(expression.items[0]);
  PyValue right = evaluate(expression.items[1]);
  const int known = truth(left);
  if (left.test.is_known() || right.test.is_known()) {
    PyValue value;
    value.test = either(left.test, right.test, expression.text == "and");
    return value;
  }
  if (expression.text == "or")
    return known == 1 ? left : known == 0 ? right : right.is_known() && right.kind != Kind::kBool ? right : PyValue{};
  if (known == 0) return left;
  return known == 1 ? right : truth(right) == 0 ? right : PyValue{};
}

PyValue PyProgram::unary(const PyExpr& expression) {
  if (expression.items.empty()) return {};
  const PyValue value = evaluate(expression.items[0]);
  if (expression.text == "not" && value.test.is_known()) {
    PyValue other;
    other.test = {value.test.texts, !value.test.none};
    return other;
  }
  if (expression.text == "not") return truth(value) < 0 ? PyValue{} : from_bool(truth(value) == 0);
  if (expression.text == "-" && value.kind == Kind::kInteger) return from_integer(-value.integer);
  if (expression.text == "-" && value.kind == Kind::kReal) return from_real(-value.real);
  return value;
}

PyValue PyProgram::choice(const PyExpr& expression) {
  const int holds = truth(evaluate(expression.items[1]));
  if (holds == 1) return evaluate(expression.items[0]);
  if (holds == 0) return evaluate(expression.items[2]);
  ++frames_.back().unsure;
  PyValue second = evaluate(expression.items[2]);
  PyValue first = evaluate(expression.items[0]);
  --frames_.back().unsure;
  const bool better = first.kind != Kind::kUnknown;
  PyValue value = better ? first : second;
  if (value.why.empty() && value.is_known()) value.why = "a test at run time decides; this is its first side";
  return value;
}

PyValue PyProgram::joined(const PyExpr& expression) {
  std::string text;
  PyValue value;
  for (const PyExpr& part : expression.items) {
    const PyValue item = evaluate(part);
    inherit(value, item);
    if (item.is_string()) {
      text += item.text;
    } else if (item.kind == Kind::kInteger) {
      text += std::to_string(item.integer);
    } else {
      return value;
    }
  }
  PyValue whole = text_value(text);
  inherit(whole, value);
  return whole;
}

PyValue PyProgram::keep(PyObject one) {
  PyValue value = made(Kind::kObject);
  if (objects.size() >= kMostObjects) return {};
  for (const Frame& frame : frames_) one.unsure |= frame.unsure > 0;
  value.places.push_back(one.place);
  objects.push_back(std::move(one));
  value.index = static_cast<int>(objects.size()) - 1;
  return value;
}

/// dict.update
void PyProgram::update(PyValue* known, const PyObject& by) {
  if (known == nullptr || known->items.size() > 2000) return;
  const auto add = [&](const std::string& key, PyValue value) {
    PyValue here;
    here.places.push_back(by.place);
    inherit(value, here);
    known->keys.push_back(key);
    known->items.push_back(std::move(value));
  };
  for (const PyValue& other : by.positional) {
    for (std::size_t at = 0; at < other.keys.size() && at < other.items.size(); ++at)
      add(other.keys[at], other.items[at]);
  }
  for (const auto& [key, value] : by.fields) add(key, value);
}

PyValue PyProgram::call(const PyExpr& expression) {
  const PyExpr& callee = expression.items[0];
  PyObject made_call;
  made_call.place = place_of(expression);
  PyValue self;
  const bool is_method = callee.kind == PyExpr::Kind::kAttribute;
  if (is_method) self = evaluate(callee.items[0]);
  const PyValue target =
      is_method ? (self.kind == Kind::kSymbol ? symbol(self.text + "." + callee.text) : PyValue{}) : evaluate(callee);
  for (std::size_t at = 1; at < expression.items.size(); ++at) {
    PyValue value = evaluate(expression.items[at]);
    const std::string& name = expression.names[at];
    if (name == "**") {
      const std::vector<std::pair<std::string, PyValue>>* fields =
          value.kind == Kind::kObject ? &objects[static_cast<std::size_t>(value.index)].fields : nullptr;
      for (std::size_t item = 0; item < value.keys.size() && item < value.items.size(); ++item)
        made_call.fields.emplace_back(value.keys[item], value.items[item]);
      if (fields != nullptr) {
        const auto copied = *fields;
        made_call.fields.insert(made_call.fields.end(), copied.begin(), copied.end());
      }
    } else if (name.empty()) {
      made_call.positional.push_back(std::move(value));
    } else if (name == "*") {
      made_call.positional.insert(made_call.positional.end(), value.items.begin(), value.items.end());
    } else {
      // The line of the keyword comes first.
      Origin place{file_, expression.items[at].line, std::max(expression.items[at].line, expression.items[at].last),
                   cell_};
      const bool known = std::any_of(value.places.begin(), value.places.end(), [&](const Origin& one) {
        return one.first == place.first && one.cell == place.cell;
      });
      if (!known) value.places.insert(value.places.begin(), place);
      made_call.fields.emplace_back(name, std::move(value));
    }
  }
  if (is_method && self.kind == Kind::kDict && callee.text == "update" && callee.items[0].kind == PyExpr::Kind::kName) {
    update(lookup(callee.items[0].text), made_call);
    return {};
  }
  if (target.kind == Kind::kFunction) return call_function(target.index, made_call, nullptr);
  if (target.kind == Kind::kClass) return instance(target.index, std::move(made_call));
  if (target.kind == Kind::kSymbol) {
    made_call.name = target.text;
    bool done = false;
    PyValue value = builtin(target.text, made_call, done);
    if (done) {
      inherit(value, [&] {
        PyValue here;
        here.places.push_back(made_call.place);
        return here;
      }());
      return value;
    }
    return keep(std::move(made_call));
  }
  if (is_method) return method(self, callee.text, std::move(made_call));
  if (target.kind == Kind::kObject) {  // model(**batch): remember who was called
    made_call.name = "()";
    made_call.self = target.index;
    return keep(std::move(made_call));
  }
  made_call.name = "?";
  return keep(std::move(made_call));
}

PyValue PyProgram::builtin(const std::string& name, const PyObject& one, bool& done) {
  done = true;
  const PyValue* first = one.positional.empty() ? nullptr : &one.positional[0];
  const std::string word = last_word(name);
  if (first != nullptr && (name == "int" || name == "float" || name == "str" || name == "bool")) {
    const Node node = first->is_string() ? plain_scalar(first->text) : Node{};
    if ((name == "int" || name == "float") && (first->is_number() || node.is_number())) {
      const double real = first->is_number() ? first->real : node.real;
      PyValue value = name == "int" ? from_integer(static_cast<std::int64_t>(real)) : from_real(real);
      inherit(value, *first);
      return value;
    }
    if (name == "str" || name == "bool") return *first;
    return {};
  }
  if (name == "len" && first != nullptr && first->kind == Kind::kList)
    return from_integer(static_cast<std::int64_t>(first->items.size()));
  if ((name == "max" || name == "min") && one.positional.size() == 2 && first->is_number() &&
      one.positional[1].is_number()) {
    const bool keep_first = (name == "max") == (first->real >= one.positional[1].real);
    return keep_first ? *first : one.positional[1];
  }
  if (name == "dict") {
    PyValue value = first != nullptr && first->kind == Kind::kDict ? *first : made(Kind::kDict);
    for (const auto& [key, item] : one.fields) {
      value.keys.push_back(key);
      value.items.push_back(item);
    }
    return value;
  }
  if ((name == "list" || name == "tuple" || name == "sorted" || name == "set") && first != nullptr &&
      first->kind == Kind::kList)
    return *first;
  if ((name == "os.environ.get" || name == "os.getenv") && one.positional.size() == 2) {
    PyValue value = one.positional[1];
    if (value.why.empty()) value.why = "the environment may say otherwise";
    return value;
  }
  if (name == "os.path.join" && !one.positional.empty()) {
    std::string path;
    PyValue value;
    for (const PyValue& part : one.positional) {
      inherit(value, part);
      if (part.is_string()) path += (path.empty() ? "" : "/") + part.text;
    }
    PyValue joined_path = text_value(path);
    inherit(joined_path, value);
    return path.empty() ? PyValue{} : joined_path;
  }
  if ((word == "Path" || name == "os.path.abspath" || name == "os.path.expanduser") && first != nullptr &&
      first->is_string())
    return *first;
  if (name == "getattr" && one.positional.size() >= 2 && one.positional[1].is_string()) {
    if (first->kind == Kind::kSymbol) return symbol(first->text + "." + one.positional[1].text);
    if (first->kind == Kind::kObject) {
      const PyValue* field = objects[static_cast<std::size_t>(first->index)].find(one.positional[1].text);
      if (field != nullptr) return *field;
    }
    return one.positional.size() > 2 ? one.positional[2] : PyValue{};
  }
  if ((name == "open" || word == "snapshot_download") && first != nullptr && first->is_string()) return *first;
  if (word == "add_config_arguments" && first != nullptr) return *first;
  if (name == "vars" && first != nullptr && first->kind == Kind::kObject) {
    PyValue value = made(Kind::kDict);
    for (const auto& [key, item] : objects[static_cast<std::size_t>(first->index)].fields) {
      value.keys.push_back(key);
      value.items.push_back(item);
    }
    return value;
  }
  if ((word == "safe_load" || name == "yaml.load" || name == "json.load" || name == "tomllib.load" ||
       name == "OmegaConf.load" || word == "full_load" || name == "omegaconf.OmegaConf.load") &&
      first != nullptr && first->is_string())
    return document(first->text);
  if (word == "is_bf16_supported" || word == "is_bfloat16_supported") {
    PyValue value = from_bool(true);
    value.why = "on Ampere and later; fp16 before";
    return value;
  }
  if (name == "torch.cuda.is_available") return from_bool(true);
  if (name == "asdict" || word == "asdict") return first == nullptr ? PyValue{} : *first;
  if (name == "deepcopy" || name == "copy.deepcopy") {
    done = first == nullptr;
    return {};
  }
  for (const char* quiet :
       {"print", "super", "isinstance", "range", "enumerate", "zip", "hasattr", "input", "id", "type"}) {
    if (name == quiet) return {};
  }
  done = false;
  return {};
}

PyValue PyProgram::document(const std::string& path) {
  const std::string name{base_name(path)};
  for (const Source& source : all_) {
    if (base_name(source.name) != name) continue;
    const Look look = look_at(source);
    if (look.document.root.is_map()) return from_node(look.document.root, source.name);
  }
  if (std::find(files.begin(), files.end(), path) == files.end()) files.push_back(path);
  return {};
}

PyValue PyProgram::method(const PyValue& self, const std::string& name, PyObject one) {
  if (self.is_string() || self.kind == Kind::kList || self.kind == Kind::kDict) return text_method(self, name, one);
  one.part_of = self.kind == Kind::kObject ? self.index : self.part_of;
  one.part = self.part;
  if (name == "requires_grad_") {
    PyValue of = self;
    of.part_of = one.part_of;
    const PyValue* said = one.positional.empty() ? one.find("requires_grad") : &one.positional[0];
    PyValue value = said == nullptr ? from_bool(true) : *said;
    set_trained(of, value, one.place);
  }
  if (self.names_parameter && name == "startswith" && one.positional.size() == 1 && one.positional[0].is_string()) {
    PyValue value;
    value.test = {{"^" + one.positional[0].text}, false};
    return value;
  }
  if (self.kind != Kind::kObject) {
    one.name = "." + name;
    return keep(std::move(one));
  }
  const std::size_t index = static_cast<std::size_t>(self.index);
  const std::string owner = objects[index].name;
  if (name == "add_argument" || name == "add_argument_group" || name == "add_mutually_exclusive_group") {
    if (name != "add_argument") return self;
    std::string key;
    for (const PyValue& word : one.positional) {
      if (word.is_string() && word.text.compare(0, 2, "--") == 0 && key.empty()) key = word.text.substr(2);
      if (word.is_string() && key.empty() && !word.text.empty() && word.text[0] != '-') key = word.text;
    }
    if (const PyValue* dest = one.find("dest"); dest != nullptr && dest->is_string()) key = dest->text;
    std::replace(key.begin(), key.end(), '-', '_');
    PyValue value;
    const PyValue* standard = one.find("default");
    const PyValue* action = one.find("action");
    if (standard != nullptr) {
      value = *standard;
    } else if (action != nullptr && action->text == "store_true") {
      value = from_bool(false);
    } else if (action != nullptr && action->text == "store_false") {
      value = from_bool(true);
    } else if (const PyValue* required = one.find("required"); required == nullptr || !required->boolean) {
      if (!one.positional.empty() && one.positional[0].is_string() && !one.positional[0].text.empty() &&
          one.positional[0].text[0] == '-')
        value.kind = Kind::kNone;
    }
    value.places.insert(value.places.begin(), one.place);
    if (value.why.empty() && value.is_known() && !commanded_)
      value.why = "default of --" + key + "; the command may say otherwise";
    for (const PyValue& word : one.positional) {
      std::string flag = word.text.substr(std::min(word.text.find_first_not_of('-'), word.text.size()));
      std::replace(flag.begin(), flag.end(), '-', '_');
      const PyValue* given = word.is_string() ? commanded(flag) : nullptr;
      if (given == nullptr) continue;
      PyValue told = action != nullptr && action->text == "store_false" ? from_bool(false) : *given;
      inherit(told, *given);
      inherit(told, value);
      value = std::move(told);
      value.why.clear();
    }
    objects[index].fields.emplace_back(key, std::move(value));
    return {};
  }
  if (name == "set_defaults") {
    for (const auto& field : one.fields) objects[index].fields.push_back(field);
    return {};
  }
  if (name.compare(0, 5, "parse") == 0 &&
      (objects[index].is("ArgumentParser") || objects[index].is("HfArgumentParser") || objects[index].is("TrlParser") ||
       objects[index].is("H4ArgumentParser"))) {
    const PyObject parser = objects[index];
    return parsed_arguments(parser, name);
  }
  for (const Class& own : classes_) {
    if (own.name != owner) continue;
    const auto known = own.methods.find(name);
    if (known != own.methods.end()) return call_function(known->second, one, &self);
  }
  one.name = "." + name;
  one.self = self.index;
  for (const char* same :
       {"to", "cuda", "cpu", "half", "float", "bfloat16", "train", "eval", "requires_grad_", "prepare"}) {
    if (name == same && name != "prepare") {
      keep(std::move(one));
      return self;
    }
  }
  if (name == "copy") return self;
  return keep(std::move(one));
}

PyValue PyProgram::text_method(const PyValue& self, const std::string& name, const PyObject& one) {
  const PyValue* first = one.positional.empty() ? nullptr : &one.positional[0];
  PyValue value;
  if (self.is_string()) {
    if (name == "lower") value = text_value(lower_case(self.text));
    if (name == "strip" || name == "rstrip" || name == "lstrip" || name == "format") value = self;
    if (name == "split" && first != nullptr && first->is_string() && !first->text.empty()) {
      value.kind = Kind::kList;
      std::size_t from = 0;
      for (std::size_t at = self.text.find(first->text); at != std::string::npos && value.items.size() < 500;
           at = self.text.find(first->text, from)) {
        value.items.push_back(text_value(self.text.substr(from, at - from)));
        from = at + first->text.size();
      }
      value.items.push_back(text_value(self.text.substr(from)));
    }
    if (name == "replace" && one.positional.size() == 2 && first->is_string() && one.positional[1].is_string() &&
        !first->text.empty()) {
      std::string text = self.text;
      if (const std::size_t at = text.find(first->text); at != std::string::npos)
        text.replace(at, first->text.size(), one.positional[1].text);
      value = text_value(text);
    }
  } else if (name == "get" && first != nullptr && first->is_string()) {
    const PyValue* item = self.find(first->text);
    if (item != nullptr) return *item;
    if (one.positional.size() > 1) value = one.positional[1];
  } else if (name == "copy") {
    return self;
  }
  inherit(value, self);
  return value;
}

/// What a parser of arguments returns: its defaults.
PyValue PyProgram::parsed_arguments(const PyObject& parser, const std::string& name) {
  if (parser.is("argparse.ArgumentParser") || (parser.is("ArgumentParser") && !parser.is("HfArgumentParser"))) {
    PyObject space;
    space.name = "argparse.Namespace";
    space.fields = parser.fields;
    space.place = parser.place;
    const PyValue all = keep(std::move(space));
    if (name != "parse_known_args") return all;
    PyValue pair = made(Kind::kList);
    pair.items = {all, PyValue{}};
    return pair;
  }
  std::vector<PyValue> kinds;
  const PyValue* given = parser.positional.empty() ? parser.find("dataclass_types") : &parser.positional[0];
  if (given != nullptr && given->kind == Kind::kList)
    kinds = given->items;
  else if (given != nullptr)
    kinds.push_back(*given);
  PyValue all = made(Kind::kList);
  for (const PyValue& kind : kinds) {
    PyObject one;
    one.place = parser.place;
    one.from_command = !commanded_;
    one.parsed = true;
    one.fields = command_;
    if (kind.kind == Kind::kClass) {
      for (const auto& field : classes_[static_cast<std::size_t>(kind.index)].fields) commanded(field.first);
      all.items.push_back(instance(kind.index, std::move(one)));
    } else {
      one.name = kind.text;
      all.items.push_back(keep(std::move(one)));
    }
  }
  return all;
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

PyValue PyProgram::call_function(int index, const PyObject& one, const PyValue* self) {
  Function& function = functions_[static_cast<std::size_t>(index)];
  if (depth_ > kDeepest - 10 || frames_.size() > 30 || function.runs >= kMostRuns || steps_ > kMostSteps) return {};
  ++function.runs;
  Frame frame;
  frame.globals = function.globals;
  frame.own_locals = true;
  const std::string file = std::exchange(file_, function.file);
  const int cell = std::exchange(cell_, function.cell);
  const PyStatement& code = *function.code;
  std::size_t position = 0;
  for (std::size_t at = 0; at < code.parameters.size(); ++at) {
    const PyParameter& parameter = code.parameters[at];
    PyValue value;
    if (at == 0 && (parameter.name == "self" || parameter.name == "cls")) {
      if (self != nullptr) value = *self;
    } else if (const PyValue* named = one.find(parameter.name); named != nullptr) {
      value = *named;
    } else if (position < one.positional.size()) {
      value = one.positional[position++];
    } else if (parameter.has_standard) {
      value = evaluate(parameter.standard);
      if (value.why.empty() && value.is_known()) value.why = "default of the parameter " + parameter.name;
      if (value.is_known() && assignments.size() < kMostObjects) assignments.push_back({parameter.name, value});
    } else {
      value.places.push_back({file_, code.line, code.line, cell_});
    }
    frame.locals[parameter.name] = std::move(value);
  }
  frames_.push_back(std::move(frame));
  ++depth_;
  run_all(code.body);
  --depth_;
  PyValue result = std::move(frames_.back().result);
  frames_.pop_back();
  file_ = file;
  cell_ = cell;
  return result;
}

}  // namespace tidemark::exchange
