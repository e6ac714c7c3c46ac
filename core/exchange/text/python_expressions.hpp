#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/exchange/text/python.hpp"
#include "core/exchange/text/python_tokens.hpp"

namespace tidemark::exchange {

/// Reads expressions, one token ahead, by a function for each level of Python's precedence. What it does not know
/// becomes kUnknown.
class PyExpressionParser {
 public:
  /// `depth` counts f-strings in one another.
  explicit PyExpressionParser(std::vector<PyToken> tokens, int depth = 0) : tokens_(std::move(tokens)), depth_(depth) {}

  PyExpr expression();
  /// With commas outside of brackets.
  PyExpr tuple();

 protected:
  /// Statements and expressions in one another: no honest program has more.
  static constexpr int kDeepest = 60;

  const PyToken& now() const { return tokens_[std::min(at_, tokens_.size() - 1)]; }
  const PyToken& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool is(PyToken::Type type) const { return now().type == type; }
  bool is_op(std::string_view text) const { return now().type == PyToken::Type::kOperator && now().text == text; }
  bool is_word(std::string_view text) const { return now().type == PyToken::Type::kName && now().text == text; }
  void step() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool eat(std::string_view op) {
    if (!is_op(op)) return false;
    step();
    return true;
  }
  bool eat_word(std::string_view word) {
    if (!is_word(word)) return false;
    step();
    return true;
  }
  int line_before() const { return at_ == 0 ? 1 : tokens_[at_ - 1].last; }

  PyExpr postfix();
  PyExpr atom();

  std::vector<PyToken> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;

 private:
  PyExpr node(PyExpr::Kind kind) const;
  PyExpr join(PyExpr::Kind kind, std::string text, PyExpr left, PyExpr right) const;
  PyExpr choice();
  PyExpr either();
  PyExpr both();
  PyExpr negated();
  std::string_view comparison();
  PyExpr compared();
  PyExpr summed();
  PyExpr multiplied();
  PyExpr signed_();
  PyExpr raised();
  PyExpr subscript(PyExpr of);
  PyExpr call(PyExpr callee);
  void skip_comprehension();
  PyExpr list();
  PyExpr dict();
  PyExpr strings();
  static void add_text(PyExpr& made, std::string text);
  void formatted(PyExpr& made, const std::string& text);

  int depth_ = 0;
};

}  // namespace tidemark::exchange
