// Statements of Python.
#include "core/exchange/text/python.hpp"

#include <algorithm>
#include <utility>

#include "core/exchange/text/python_expressions.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyExpr::Kind;
using Does = PyStatement::Kind;

class PyParser : private PyExpressionParser {
 public:
  explicit PyParser(std::vector<PyToken> tokens) : PyExpressionParser(std::move(tokens)) {}

  std::vector<PyStatement> module() {
    std::vector<PyStatement> statements;
    while (!is(PyToken::Type::kEnd)) statement(statements);
    return statements;
  }

 private:
  void end_line() {
    while (!is(PyToken::Type::kLine) && !is(PyToken::Type::kEnd) && !is(PyToken::Type::kDedent) &&
           !is(PyToken::Type::kIndent) && !is_op(";"))
      step();
    if (is(PyToken::Type::kLine) || is_op(";")) step();
  }

  void statement(std::vector<PyStatement>& into) {
    if (is(PyToken::Type::kLine) || is(PyToken::Type::kIndent) || is(PyToken::Type::kDedent) || is_op(";"))
      return step();
    if (++nesting_ > kDeepest) {
      --nesting_;
      return end_line();
    }
    PyStatement made;
    made.line = now().line;
    const std::size_t before = at_;
    compound(made);
    made.last = std::max(made.line, line_before());
    if (at_ == before) step();
    into.push_back(std::move(made));
    --nesting_;
  }

  void compound(PyStatement& made) {
    std::vector<PyExpr> decorators;
    while (eat("@")) {
      decorators.push_back(expression());
      end_line();
    }
    eat_word("async");
    if (eat_word("def")) return def(made, std::move(decorators));
    if (eat_word("class")) return class_of(made, std::move(decorators));
    if (is_word("if")) return if_of(made);
    if (eat_word("for")) return for_of(made);
    if (eat_word("while")) {
      made.kind = Does::kWhile;
      made.value = expression();
      return block(made.body);
    }
    if (eat_word("with")) return with(made);
    if (eat_word("try")) return try_of(made);
    if (eat_word("return")) {
      made.kind = Does::kReturn;
      if (!is(PyToken::Type::kLine)) made.value = tuple();
      return end_line();
    }
    if (is_word("import") || is_word("from")) return import(made);
    for (const char* word : {"pass", "break", "continue", "raise", "global", "nonlocal", "del", "assert"}) {
      if (is_word(word)) return end_line();
    }
    simple(made);
  }

  void block(std::vector<PyStatement>& body) {
    // Anything between the header and its colon is skipped: annotations of returns.
    while (!is_op(":") && !is(PyToken::Type::kLine) && !is(PyToken::Type::kEnd)) step();
    eat(":");
    if (!is(PyToken::Type::kLine)) {
      while (!is(PyToken::Type::kLine) && !is(PyToken::Type::kEnd)) {
        statement(body);
        if (tokens_[at_ > 0 ? at_ - 1 : 0].type == PyToken::Type::kLine) return;
      }
      return;
    }
    step();
    if (!is(PyToken::Type::kIndent)) return;
    step();
    while (!is(PyToken::Type::kDedent) && !is(PyToken::Type::kEnd)) statement(body);
    if (is(PyToken::Type::kDedent)) step();
  }

  void def(PyStatement& made, std::vector<PyExpr> decorators) {
    made.kind = Does::kDef;
    made.text = now().text;
    made.decorators = std::move(decorators);
    step();
    if (eat("(")) {
      while (!is_op(")") && !is(PyToken::Type::kEnd)) {
        const std::size_t before = at_;
        parameter(made.parameters);
        eat(",");
        if (at_ == before) step();
      }
      eat(")");
    }
    if (eat("->")) expression();
    block(made.body);
  }

  void parameter(std::vector<PyParameter>& all) {
    PyParameter one;
    if (eat("/")) return;
    const bool star = eat("*") || eat("**");
    if (is(PyToken::Type::kName)) {
      one.name = now().text;
      step();
    }
    if (eat(":")) expression();
    if (eat("=")) {
      one.standard = expression();
      one.has_standard = true;
    }
    if (!star && !one.name.empty()) all.push_back(std::move(one));
  }

  void class_of(PyStatement& made, std::vector<PyExpr> decorators) {
    made.kind = Does::kClass;
    made.text = now().text;
    made.decorators = std::move(decorators);
    step();
    if (eat("(")) {
      while (!is_op(")") && !is(PyToken::Type::kEnd)) {
        const std::size_t before = at_;
        if (is(PyToken::Type::kName) && next().text == "=") {
          step();
          step();
          expression();
        } else {
          made.targets.push_back(expression());
        }
        eat(",");
        if (at_ == before) step();
      }
      eat(")");
    }
    block(made.body);
  }

  void if_of(PyStatement& made) {
    step();
    made.kind = Does::kIf;
    made.value = expression();
    block(made.body);
    if (is_word("elif")) {
      if (++nesting_ > kDeepest) return;
      PyStatement nested;
      nested.line = now().line;
      if_of(nested);
      nested.last = line_before();
      made.other.push_back(std::move(nested));
      --nesting_;
    } else if (eat_word("else")) {
      block(made.other);
    }
  }

  void for_of(PyStatement& made) {
    made.kind = Does::kFor;
    made.targets.push_back(target_list());
    eat_word("in");
    made.value = tuple();
    block(made.body);
    if (eat_word("else")) block(made.other);
  }

  /// Names in front of `in`.
  PyExpr target_list() {
    PyExpr list;
    list.kind = Kind::kTuple;
    list.line = now().line;
    do {
      list.items.push_back(postfix());
    } while (eat(",") && !is_word("in"));
    return list.items.size() == 1 ? list.items[0] : list;
  }

  void with(PyStatement& made) {
    made.kind = Does::kWith;
    const bool bracket = is_op("(");
    if (bracket) step();
    do {
      if (is_op(")") || is_op(":")) break;
      made.targets.push_back(expression());
      PyExpr name;
      if (eat_word("as")) name = postfix();
      made.targets.push_back(std::move(name));
    } while (eat(","));
    if (bracket) eat(")");
    block(made.body);
  }

  void try_of(PyStatement& made) {
    made.kind = Does::kTry;
    block(made.body);
    while (eat_word("except")) {
      std::vector<PyStatement> ignored;
      block(ignored);
    }
    if (eat_word("else")) block(made.other);
    if (eat_word("finally")) block(made.other);
  }

  void import(PyStatement& made) {
    made.kind = Does::kImport;
    const bool from = is_word("from");
    step();
    std::string module;
    while (is(PyToken::Type::kName) ? !is_word("import") : is_op(".") || is_op("...")) {
      module += now().text;
      step();
      if (!from && (is_op(",") || is_word("as"))) break;
    }
    made.text = module;
    if (!from) {
      if (eat_word("as")) made.targets.push_back(atom());
      return end_line();
    }
    eat_word("import");
    eat("(");
    while (is(PyToken::Type::kName) || is_op("*")) {
      std::string name = now().text;
      step();
      std::string alias = name;
      if (eat_word("as")) {
        alias = now().text;
        step();
      }
      made.names.push_back(std::move(name));
      made.names.push_back(std::move(alias));
      if (!eat(",")) break;
    }
    end_line();
  }

  void simple(PyStatement& made) {
    PyExpr first = tuple();
    if (eat(":")) {  // an annotation
      expression();
      made.kind = Does::kAssign;
      made.targets.push_back(std::move(first));
      if (eat("=")) made.value = tuple();
      return end_line();
    }
    for (const char* op : {"+=", "-=", "*=", "/=", "//=", "%=", "|="}) {
      if (!is_op(op)) continue;
      step();
      made.kind = Does::kAssign;
      made.text = op;
      made.text.pop_back();
      made.targets.push_back(std::move(first));
      made.value = tuple();
      return end_line();
    }
    if (!is_op("=")) {
      made.kind = Does::kExpression;
      made.value = std::move(first);
      return end_line();
    }
    made.kind = Does::kAssign;
    made.targets.push_back(std::move(first));
    while (eat("=")) {
      PyExpr value = tuple();
      if (is_op("=")) {
        made.targets.push_back(std::move(value));
      } else {
        made.value = std::move(value);
      }
    }
    end_line();
  }
};

}  // namespace

std::vector<PyStatement> parse_python(std::string_view text) {
  return PyParser(python_tokens(text)).module();
}

}  // namespace tidemark::exchange
