// What an expression is known to be.
#include <algorithm>

#include "core/exchange/python/operators.hpp"
#include "core/exchange/python/program.hpp"

namespace tidemark::exchange {
namespace {

/// 1_000, 2e-4, 0x10 as far as YAML knows it too.
PyValue number(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  const Node node = plain_scalar(text);
  if (node.is_integer()) return py_integer(node.integer);
  return node.is_number() ? py_real(node.real) : PyValue{};
}

}  // namespace

PyValue PyProgram::evaluate(const PyExpr& expression) {
  if (++steps_ > kMostSteps || depth_ > kDeepest) return {};
  ++depth_;
  PyValue value = evaluate_plain(expression);
  --depth_;
  return value;
}

/// What an expression is by itself: a word, a number, a text, a name.
PyValue PyProgram::literal(const PyExpr& expression) {
  using Is = PyExpr::Kind;
  switch (expression.kind) {
    case Is::kNone:
      return py_value(Kind::kNone);
    case Is::kTrue:
    case Is::kFalse:
      return py_bool(expression.kind == Is::kTrue);
    case Is::kNumber:
      return number(expression.text);
    case Is::kString:
      return py_text(expression.text);
    default:
      break;
  }
  const PyValue* known = lookup(expression.text);
  return known == nullptr ? py_symbol(expression.text) : *known;
}

/// What an expression makes of others, at its own place.
PyValue PyProgram::composed(const PyExpr& expression) {
  using Is = PyExpr::Kind;
  const auto part = [&](std::size_t at) { return evaluate(expression.items[at]); };
  switch (expression.kind) {
    case Is::kList:
    case Is::kTuple:
      return list(expression);
    case Is::kDict:
      return dict(expression);
    case Is::kBinary:
    case Is::kCompare:
    case Is::kBool: {
      const PyValue left = part(0);
      const PyValue right = part(1);
      if (expression.kind == Is::kBinary) return py_binary(expression.text, left, right);
      return expression.kind == Is::kCompare ? compare(expression.text, left, right)
                                             : py_logic(expression.text, left, right);
    }
    case Is::kUnary:
      return expression.items.empty() ? PyValue{} : py_unary(expression.text, part(0));
    case Is::kChoice:
      return choice(expression);
    case Is::kJoined:
      return joined(expression);
    default:
      return literal(expression);
  }
}

PyValue PyProgram::evaluate_plain(const PyExpr& expression) {
  using Is = PyExpr::Kind;
  if (expression.kind == Is::kUnknown) {  // a comprehension or a lambda: what it calls counts, and no more is known
    for (const PyExpr& item : expression.items) evaluate(item);
    return {};
  }
  if (expression.kind == Is::kAttribute) return attribute(expression);
  if (expression.kind == Is::kSubscript) return subscript(expression);
  if (expression.kind == Is::kCall) return call(expression);
  if (expression.kind == Is::kName && expression.text == "__name__") return py_text("__main__");
  PyValue value = composed(expression);
  if (value.kind != Kind::kFunction && value.kind != Kind::kClass && expression.line > 0)
    inherit(value, place_of(expression));
  return value;
}

PyValue PyProgram::attribute(const PyExpr& expression) {
  PyValue self = evaluate(expression.items[0]);
  if (self.kind == Kind::kSymbol) {
    PyValue value = py_symbol(self.text + "." + expression.text);
    value.places.push_back(place_of(expression));
    return value;
  }
  if (self.kind == Kind::kObject) {
    const PyValue* field = object(self).find(expression.text);
    if (field != nullptr) {
      PyValue value = *field;
      inherit(value, place_of(expression));
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
    for (const auto& [name, value] : class_of(self).fields) {
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
    const PyValue* field = object(self).find(index.text);
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
  inherit(value, place_of(expression));
  return value;
}

PyValue PyProgram::list(const PyExpr& expression) {
  PyValue value = py_value(Kind::kList);
  for (const PyExpr& item : expression.items) {
    value.items.push_back(evaluate(item));
    if (value.items.size() > kMostItems) break;
  }
  return value;
}

PyValue PyProgram::dict(const PyExpr& expression) {
  PyValue value = py_value(Kind::kDict);
  for (std::size_t at = 0; at + 1 < expression.items.size(); at += 2) {
    const PyExpr& key = expression.items[at];
    PyValue item = evaluate(expression.items[at + 1]);
    if (key.kind == PyExpr::Kind::kNone && key.text.empty()) {
      for (std::size_t other = 0; other < item.keys.size() && other < item.items.size(); ++other) {
        put(value, item.keys[other], item.items[other]);
      }
      continue;
    }
    PyValue here;
    here.places.push_back({file_, key.line, std::max(key.last, expression.items[at + 1].last), cell_});
    inherit(here, item);
    item.places = std::move(here.places);
    put(value, evaluate(key).text, std::move(item));
    if (value.items.size() > kMostItems) break;
  }
  return value;
}

/// An object is compared with None alone: a class's call makes something; a function that nobody has seen may as well
/// return None.
PyValue PyProgram::compare(const std::string& op, const PyValue& left, const PyValue& right) {
  const bool objects_differ = left.kind == Kind::kObject || right.kind == Kind::kObject;
  if (op == "in" || op == "not in" || !objects_differ) return py_compare(op, left, right);
  if (left.kind != Kind::kNone && right.kind != Kind::kNone) return {};
  const std::string made_by = last_word(object(left.kind == Kind::kObject ? left : right).name);
  const bool may_be_none = made_by.starts_with("get_") || made_by.starts_with("maybe_");
  return may_be_none ? PyValue{} : py_bool(op == "!=");
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
  PyValue whole = py_text(text);
  inherit(whole, value);
  return whole;
}

}  // namespace tidemark::exchange
