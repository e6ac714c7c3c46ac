#include "core/exchange/text/python_expressions.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyExpr::Kind;

constexpr int kDeepestFormat = 3;

}  // namespace

PyExpr PyExpressionParser::node(Kind kind) const {
  PyExpr made;
  made.kind = kind;
  made.line = now().line;
  made.last = now().last;
  return made;
}

PyExpr PyExpressionParser::join(Kind kind, std::string text, PyExpr left, PyExpr right) const {
  PyExpr made;
  made.kind = kind;
  made.text = std::move(text);
  made.line = left.line;
  made.last = std::max(left.last, right.last);
  made.items.push_back(std::move(left));
  made.items.push_back(std::move(right));
  return made;
}

PyExpr PyExpressionParser::tuple() {
  PyExpr first = expression();
  if (!is_op(",")) return first;
  PyExpr made = node(Kind::kTuple);
  made.line = first.line;
  made.items.push_back(std::move(first));
  while (eat(",")) {
    if (is(PyToken::Type::kLine) || is_op("=") || is_op(")") || is_op(":")) break;
    made.items.push_back(expression());
  }
  made.last = line_before();
  return made;
}

PyExpr PyExpressionParser::expression() {
  if (++nesting_ > kDeepest) {
    --nesting_;
    PyExpr made = node(Kind::kUnknown);
    step();
    return made;
  }
  PyExpr made = choice();
  --nesting_;
  return made;
}

PyExpr PyExpressionParser::choice() {
  if (eat("*") || eat("**")) return expression();
  if (is_word("lambda")) {
    PyExpr made = node(Kind::kUnknown);
    while (!is_op(":") && !is(PyToken::Type::kLine) && !is(PyToken::Type::kEnd)) step();
    eat(":");
    made.items.push_back(expression());
    return made;
  }
  eat_word("await");
  eat_word("yield");
  PyExpr what = either();
  if (eat(":=")) {
    PyExpr value = expression();
    return value;
  }
  if (!is_word("if")) return what;
  // In a comprehension the `if` has no `else`: the caller skips it.
  const std::size_t before = at_;
  step();
  PyExpr test = either();
  if (!eat_word("else")) {
    at_ = before;
    return what;
  }
  PyExpr made = node(Kind::kChoice);
  made.line = what.line;
  made.items.push_back(std::move(what));
  made.items.push_back(std::move(test));
  made.items.push_back(expression());
  made.last = line_before();
  return made;
}

PyExpr PyExpressionParser::either() {
  PyExpr left = both();
  while (eat_word("or")) left = join(Kind::kBool, "or", std::move(left), both());
  return left;
}

PyExpr PyExpressionParser::both() {
  PyExpr left = negated();
  while (eat_word("and")) left = join(Kind::kBool, "and", std::move(left), negated());
  return left;
}

PyExpr PyExpressionParser::negated() {
  if (!is_word("not")) return compared();
  PyExpr made = node(Kind::kUnary);
  made.text = "not";
  step();
  if (++nesting_ > kDeepest) {
    --nesting_;
    return made;
  }
  made.items.push_back(negated());
  --nesting_;
  return made;
}

/// The comparison that stands here, taken; empty where none does.
std::string_view PyExpressionParser::comparison() {
  for (const std::string_view sign : {"==", "!=", "<", ">", "<=", ">="}) {
    if (now().type != PyToken::Type::kOperator || now().text != sign) continue;
    step();
    return sign;
  }
  if (is_word("in")) {
    step();
    return "in";
  }
  if (is_word("not") && next().text == "in") {
    step();
    step();
    return "not in";
  }
  if (!is_word("is")) return {};
  step();
  return eat_word("not") ? "!=" : "==";
}

PyExpr PyExpressionParser::compared() {
  PyExpr left = summed();
  for (;;) {
    const std::string_view op = comparison();
    if (op.empty()) return left;
    left = join(Kind::kCompare, std::string(op), std::move(left), summed());
  }
}

PyExpr PyExpressionParser::summed() {
  PyExpr left = multiplied();
  while (is_op("+") || is_op("-") || is_op("|") || is_op("&") || is_op("<<") || is_op(">>") || is_op("^")) {
    const std::string op = now().text;
    step();
    left = join(Kind::kBinary, op, std::move(left), multiplied());
  }
  return left;
}

PyExpr PyExpressionParser::multiplied() {
  PyExpr left = signed_();
  while (is_op("*") || is_op("/") || is_op("//") || is_op("%") || is_op("@")) {
    const std::string op = now().text;
    step();
    left = join(Kind::kBinary, op, std::move(left), signed_());
  }
  return left;
}

PyExpr PyExpressionParser::signed_() {
  if (!is_op("-") && !is_op("+") && !is_op("~")) return raised();
  PyExpr made = node(Kind::kUnary);
  made.text = now().text;
  step();
  if (++nesting_ > kDeepest) {
    --nesting_;
    return made;
  }
  made.items.push_back(signed_());
  --nesting_;
  return made;
}

/// Binds more tightly than what stands before it, and what stands behind it comes first: -2**-3**2.
PyExpr PyExpressionParser::raised() {
  PyExpr left = postfix();
  if (!eat("**") || nesting_ >= kDeepest) return left;
  ++nesting_;
  left = join(Kind::kBinary, "**", std::move(left), signed_());
  --nesting_;
  return left;
}

PyExpr PyExpressionParser::postfix() {
  PyExpr left = atom();
  for (;;) {
    if (eat(".")) {
      PyExpr made = node(Kind::kAttribute);
      made.line = left.line;
      made.text = now().text;
      step();
      made.items.push_back(std::move(left));
      left = std::move(made);
    } else if (is_op("(")) {
      left = call(std::move(left));
    } else if (eat("[")) {
      left = subscript(std::move(left));
    } else {
      return left;
    }
    left.last = std::max(left.last, line_before());
  }
}

/// Behind the bracket; what a slice takes is not known.
PyExpr PyExpressionParser::subscript(PyExpr of) {
  PyExpr made = node(Kind::kSubscript);
  made.line = of.line;
  made.items.push_back(std::move(of));
  PyExpr index;
  if (!is_op(":")) index = tuple();
  if (is_op(":")) {
    index = {};
    for (int open = 0; !is(PyToken::Type::kEnd) && (open > 0 || !is_op("]")); step()) {
      if (is_op("[")) ++open;
      if (is_op("]")) --open;
    }
  }
  made.items.push_back(std::move(index));
  eat("]");
  return made;
}

PyExpr PyExpressionParser::call(PyExpr callee) {
  PyExpr made = node(Kind::kCall);
  made.line = callee.line;
  made.items.push_back(std::move(callee));
  made.names.emplace_back();
  step();
  while (!is_op(")") && !is(PyToken::Type::kEnd)) {
    const std::size_t before = at_;
    std::string name;
    if (is_op("**") || is_op("*")) {
      name = now().text;
      step();
    } else if (is(PyToken::Type::kName) && next().type == PyToken::Type::kOperator && next().text == "=") {
      name = now().text;
      step();
      step();
    }
    const int line = tokens_[before].line;
    PyExpr value = expression();
    value.line = std::min(line, value.line == 0 ? line : value.line);
    skip_comprehension();
    made.items.push_back(std::move(value));
    made.names.push_back(std::move(name));
    eat(",");
    if (at_ == before) step();
  }
  eat(")");
  made.last = line_before();
  return made;
}

/// `for x in y if z` behind an item.
void PyExpressionParser::skip_comprehension() {
  if (!is_word("for") && !is_word("async")) return;
  int open = 0;
  while (!is(PyToken::Type::kEnd)) {
    if (open == 0 && (is_op(")") || is_op("]") || is_op("}"))) return;
    if (is_op("(") || is_op("[") || is_op("{")) ++open;
    if (is_op(")") || is_op("]") || is_op("}")) --open;
    step();
  }
}

PyExpr PyExpressionParser::atom() {
  if (is(PyToken::Type::kString)) return strings();
  if (is(PyToken::Type::kNumber)) {
    PyExpr made = node(Kind::kNumber);
    made.text = now().text;
    step();
    return made;
  }
  if (is(PyToken::Type::kName)) {
    PyExpr made = node(is_word("None")    ? Kind::kNone
                       : is_word("True")  ? Kind::kTrue
                       : is_word("False") ? Kind::kFalse
                                          : Kind::kName);
    made.text = now().text;
    step();
    return made;
  }
  if (is_op("(") || is_op("[")) return list();
  if (is_op("{")) return dict();
  PyExpr made = node(Kind::kUnknown);
  if (!is(PyToken::Type::kLine) && !is(PyToken::Type::kEnd) && !is(PyToken::Type::kIndent) &&
      !is(PyToken::Type::kDedent) && !is_op(")") && !is_op("]") && !is_op("}") && !is_op(",") && !is_op(":") &&
      !is_op("="))
    step();
  return made;
}

PyExpr PyExpressionParser::list() {
  const bool round = is_op("(");
  const char* end = round ? ")" : "]";
  PyExpr made = node(round ? Kind::kTuple : Kind::kList);
  step();
  bool comma = false;
  while (!is_op(end) && !is(PyToken::Type::kEnd)) {
    const std::size_t before = at_;
    made.items.push_back(expression());
    if (is_word("for") || is_word("async")) {
      skip_comprehension();
      made.kind = Kind::kUnknown;
    }
    comma |= eat(",");
    if (at_ == before) step();
  }
  eat(end);
  made.last = line_before();
  if (round && made.items.size() == 1 && !comma && made.kind == Kind::kTuple) {
    PyExpr inner = std::move(made.items[0]);
    return inner;
  }
  return made;
}

PyExpr PyExpressionParser::dict() {
  PyExpr made = node(Kind::kDict);
  step();
  while (!is_op("}") && !is(PyToken::Type::kEnd)) {
    const std::size_t before = at_;
    if (eat("**")) {
      made.items.emplace_back().kind = Kind::kNone;
      made.items.push_back(expression());
    } else {
      PyExpr key = expression();
      PyExpr value;
      if (eat(":")) value = expression();
      made.items.push_back(std::move(key));
      made.items.push_back(std::move(value));
      skip_comprehension();
    }
    eat(",");
    if (at_ == before) step();
  }
  eat("}");
  made.last = line_before();
  return made;
}

/// Strings that stand side by side are one.
PyExpr PyExpressionParser::strings() {
  PyExpr made = node(Kind::kString);
  while (is(PyToken::Type::kString)) {
    if (now().formatted) {
      formatted(made, now().text);
    } else if (made.kind == Kind::kString) {
      made.text += now().text;
    } else {
      add_text(made, now().text);
    }
    made.last = now().last;
    step();
  }
  return made;
}

void PyExpressionParser::add_text(PyExpr& made, std::string text) {
  if (text.empty()) return;
  PyExpr& part = made.items.emplace_back();
  part.kind = Kind::kString;
  part.text = std::move(text);
  part.line = made.line;
}

void PyExpressionParser::formatted(PyExpr& made, const std::string& text) {
  if (made.kind == Kind::kString) {
    std::string before = std::move(made.text);
    made.text.clear();
    made.kind = Kind::kJoined;
    add_text(made, std::move(before));
  }
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if ((text[at] == '{' || text[at] == '}') && at + 1 < text.size() && text[at + 1] == text[at]) {
      plain += text[at++];
      continue;
    }
    if (text[at] != '{') {
      plain += text[at];
      continue;
    }
    const std::size_t end = text.find('}', at);
    if (end == std::string::npos) break;
    std::string inside = text.substr(at + 1, end - at - 1);
    if (const std::size_t colon = inside.find_first_of(":!");
        colon != std::string::npos && inside.find('[') == std::string::npos)
      inside.resize(colon);
    add_text(made, std::exchange(plain, {}));
    if (depth_ < kDeepestFormat) {
      PyExpr part = PyExpressionParser(python_tokens(inside), depth_ + 1).tuple();
      part.line = part.last = made.line;
      made.items.push_back(std::move(part));
    }
    at = end;
  }
  add_text(made, std::move(plain));
}

}  // namespace tidemark::exchange
