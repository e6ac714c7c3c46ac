#include "core/exchange/text/python.hpp"

#include <algorithm>
#include <utility>

#include "core/exchange/text/cursor.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyExpr::Kind;
using Does = PyStatement::Kind;

constexpr int kDeepest = 60;
constexpr std::size_t kMostTokens = 600'000;

bool is_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_' ||
         static_cast<unsigned char>(letter) >= 0x80;
}
bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

struct Token {
  enum class Type { kName, kNumber, kString, kOperator, kLine, kIndent, kDedent, kEnd };
  Type type = Type::kEnd;
  std::string text;
  bool formatted = false;  // an f-string
  int line = 0;
  int last = 0;
};

/// Words, with the indentation as tokens of its own.
class PyLexer {
 public:
  explicit PyLexer(std::string_view text) : cursor_{text} {
    if (cursor_.starts("\xEF\xBB\xBF")) cursor_.at = 3;
  }

  std::vector<Token> tokens() {
    while (!cursor_.done() && tokens_.size() < kMostTokens) {
      if (fresh_) {
        begin_line();
      } else {
        take();
      }
    }
    add(Token::Type::kLine, "");
    for (; indents_.size() > 1; indents_.pop_back()) add(Token::Type::kDedent, "");
    add(Token::Type::kEnd, "");
    return std::move(tokens_);
  }

 private:
  void add(Token::Type type, std::string text, bool formatted = false, int line = 0) {
    tokens_.push_back({type, std::move(text), formatted, line == 0 ? cursor_.line : line, cursor_.line});
  }

  void begin_line() {
    std::size_t width = 0;
    while (cursor_.peek() == ' ' || cursor_.peek() == '\t') width += cursor_.take() == '\t' ? 8 - width % 8 : 1;
    const char letter = cursor_.peek();
    if (letter == '#') skip_comment();
    if (cursor_.done()) return;
    if (cursor_.peek() == '\n' || cursor_.peek() == '\r') {
      cursor_.take();
      return;
    }
    // Notebooks' magics.
    if (letter == '!' || letter == '%' || letter == '?') {
      skip_comment();
      return;
    }
    fresh_ = false;
    if (width > indents_.back() && indents_.size() < 100) {
      indents_.push_back(width);
      add(Token::Type::kIndent, "");
    }
    while (width < indents_.back()) {
      indents_.pop_back();
      add(Token::Type::kDedent, "");
    }
  }

  void skip_comment() {
    while (!cursor_.done() && cursor_.peek() != '\n') cursor_.take();
  }

  void take() {
    const char letter = cursor_.peek();
    if (letter == '\n') {
      if (open_ == 0) {
        add(Token::Type::kLine, "");
        fresh_ = true;
      }
      cursor_.take();
    } else if (letter == ' ' || letter == '\t' || letter == '\r' || letter == '\f') {
      cursor_.take();
    } else if (letter == '#') {
      skip_comment();
    } else if (letter == '\\' && (cursor_.peek(1) == '\n' || cursor_.peek(1) == '\r')) {
      while (cursor_.take() != '\n' && !cursor_.done()) {
      }
    } else if (is_letter(letter)) {
      take_name();
    } else if (is_digit(letter) || (letter == '.' && is_digit(cursor_.peek(1)))) {
      take_number();
    } else if (letter == '"' || letter == '\'') {
      take_string(false, false);
    } else {
      take_operator();
    }
  }

  void take_name() {
    const std::size_t first = cursor_.at;
    while (is_letter(cursor_.peek()) || is_digit(cursor_.peek())) cursor_.take();
    std::string name{cursor_.text.substr(first, cursor_.at - first)};
    const char next = cursor_.peek();
    const bool prefix = name.size() <= 2 && name.find_first_not_of("rRbBuUfF") == std::string::npos;
    if (prefix && (next == '"' || next == '\'')) {
      take_string(name.find_first_of("rR") != std::string::npos, name.find_first_of("fF") != std::string::npos);
    } else {
      add(Token::Type::kName, std::move(name));
    }
  }

  void take_number() {
    const std::size_t first = cursor_.at;
    while (is_digit(cursor_.peek()) || is_letter(cursor_.peek()) || cursor_.peek() == '.' ||
           ((cursor_.peek() == '-' || cursor_.peek() == '+') && cursor_.at > first &&
            (cursor_.text[cursor_.at - 1] == 'e' || cursor_.text[cursor_.at - 1] == 'E'))) {
      cursor_.take();
    }
    add(Token::Type::kNumber, std::string{cursor_.text.substr(first, cursor_.at - first)});
  }

  void take_string(bool raw, bool formatted) {
    const int line = cursor_.line;
    const char mark = cursor_.peek();
    const std::string three(3, mark);
    const bool triple = cursor_.starts(three);
    cursor_.skip(triple ? 3 : 1);
    std::string text;
    while (!cursor_.done()) {
      if (triple ? cursor_.starts(three) : cursor_.peek() == mark) break;
      if (!triple && cursor_.peek() == '\n') break;
      const char letter = cursor_.take();
      if (letter == '\\' && !raw) {
        take_escape(cursor_, text);
      } else {
        text += letter;
        if (letter == '\\' && raw && !cursor_.done()) text += cursor_.take();
      }
    }
    if (cursor_.peek() == mark) cursor_.skip(triple ? 3 : 1);
    add(Token::Type::kString, std::move(text), formatted, line);
  }

  void take_operator() {
    for (std::string_view word : {"**=", "//=", ">>=", "<<=", "...", "->", ":=", "==", "!=", "<=", ">=", "+=",
                                  "-=",  "*=",  "/=",  "%=",  "|=",  "&=", "^=", "**", "//", "<<", ">>"}) {
      if (!cursor_.starts(word)) continue;
      cursor_.skip(word.size());
      return add(Token::Type::kOperator, std::string{word});
    }
    const char letter = cursor_.take();
    if (letter == '(' || letter == '[' || letter == '{') ++open_;
    if ((letter == ')' || letter == ']' || letter == '}') && open_ > 0) --open_;
    add(Token::Type::kOperator, std::string(1, letter));
  }

  Cursor cursor_;
  std::vector<Token> tokens_;
  std::vector<std::size_t> indents_ = {0};
  int open_ = 0;
  bool fresh_ = true;
};

class PyParser {
 public:
  explicit PyParser(std::vector<Token> tokens, int depth = 0) : tokens_(std::move(tokens)), depth_(depth) {}

  std::vector<PyStatement> module() {
    std::vector<PyStatement> statements;
    while (!is(Token::Type::kEnd)) statement(statements);
    return statements;
  }
  PyExpr expression_only() { return tuple(); }

 private:
  const Token& now() const { return tokens_[std::min(at_, tokens_.size() - 1)]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool is(Token::Type type) const { return now().type == type; }
  bool is_op(std::string_view text) const { return now().type == Token::Type::kOperator && now().text == text; }
  bool is_word(std::string_view text) const { return now().type == Token::Type::kName && now().text == text; }
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

  void end_line() {
    while (!is(Token::Type::kLine) && !is(Token::Type::kEnd) && !is(Token::Type::kDedent) &&
           !is(Token::Type::kIndent) && !is_op(";"))
      step();
    if (is(Token::Type::kLine) || is_op(";")) step();
  }

  // ---------------------------------------------------------------- statements
  void statement(std::vector<PyStatement>& into) {
    if (is(Token::Type::kLine) || is(Token::Type::kIndent) || is(Token::Type::kDedent) || is_op(";")) return step();
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
      if (!is(Token::Type::kLine)) made.value = tuple();
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
    while (!is_op(":") && !is(Token::Type::kLine) && !is(Token::Type::kEnd)) step();
    eat(":");
    if (!is(Token::Type::kLine)) {
      while (!is(Token::Type::kLine) && !is(Token::Type::kEnd)) {
        statement(body);
        if (tokens_[at_ > 0 ? at_ - 1 : 0].type == Token::Type::kLine) return;
      }
      return;
    }
    step();
    if (!is(Token::Type::kIndent)) return;
    step();
    while (!is(Token::Type::kDedent) && !is(Token::Type::kEnd)) statement(body);
    if (is(Token::Type::kDedent)) step();
  }

  void def(PyStatement& made, std::vector<PyExpr> decorators) {
    made.kind = Does::kDef;
    made.text = now().text;
    made.decorators = std::move(decorators);
    step();
    if (eat("(")) {
      while (!is_op(")") && !is(Token::Type::kEnd)) {
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
    if (is(Token::Type::kName)) {
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
      while (!is_op(")") && !is(Token::Type::kEnd)) {
        const std::size_t before = at_;
        if (is(Token::Type::kName) && next().text == "=") {
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
    while (is(Token::Type::kName) ? !is_word("import") : is_op(".") || is_op("...")) {
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
    while (is(Token::Type::kName) || is_op("*")) {
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

  // ---------------------------------------------------------------- expressions
  PyExpr node(Kind kind) const {
    PyExpr made;
    made.kind = kind;
    made.line = now().line;
    made.last = now().last;
    return made;
  }
  PyExpr join(Kind kind, std::string text, PyExpr left, PyExpr right) const {
    PyExpr made;
    made.kind = kind;
    made.text = std::move(text);
    made.line = left.line;
    made.last = std::max(left.last, right.last);
    made.items.push_back(std::move(left));
    made.items.push_back(std::move(right));
    return made;
  }

  /// With commas outside of brackets.
  PyExpr tuple() {
    PyExpr first = expression();
    if (!is_op(",")) return first;
    PyExpr made = node(Kind::kTuple);
    made.line = first.line;
    made.items.push_back(std::move(first));
    while (eat(",")) {
      if (is(Token::Type::kLine) || is_op("=") || is_op(")") || is_op(":")) break;
      made.items.push_back(expression());
    }
    made.last = line_before();
    return made;
  }

  PyExpr expression() {
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

  PyExpr choice() {
    if (eat("*") || eat("**")) return expression();
    if (is_word("lambda")) {
      PyExpr made = node(Kind::kUnknown);
      while (!is_op(":") && !is(Token::Type::kLine) && !is(Token::Type::kEnd)) step();
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

  PyExpr either() {
    PyExpr left = both();
    while (eat_word("or")) left = join(Kind::kBool, "or", std::move(left), both());
    return left;
  }
  PyExpr both() {
    PyExpr left = negated();
    while (eat_word("and")) left = join(Kind::kBool, "and", std::move(left), negated());
    return left;
  }
  PyExpr negated() {
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
  std::string_view comparison() {
    for (const std::string_view sign : {"==", "!=", "<", ">", "<=", ">="}) {
      if (now().type != Token::Type::kOperator || now().text != sign) continue;
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

  PyExpr compared() {
    PyExpr left = summed();
    for (;;) {
      const std::string_view op = comparison();
      if (op.empty()) return left;
      left = join(Kind::kCompare, std::string(op), std::move(left), summed());
    }
  }

  PyExpr summed() {
    PyExpr left = multiplied();
    while (is_op("+") || is_op("-") || is_op("|") || is_op("&") || is_op("<<") || is_op(">>") || is_op("^")) {
      const std::string op = now().text;
      step();
      left = join(Kind::kBinary, op, std::move(left), multiplied());
    }
    return left;
  }
  PyExpr multiplied() {
    PyExpr left = signed_();
    while (is_op("*") || is_op("/") || is_op("//") || is_op("%") || is_op("@") || is_op("**")) {
      const std::string op = now().text;
      step();
      left = join(Kind::kBinary, op, std::move(left), signed_());
    }
    return left;
  }
  PyExpr signed_() {
    if (!is_op("-") && !is_op("+") && !is_op("~")) return postfix();
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

  PyExpr postfix() {
    PyExpr left = atom();
    for (;;) {
      if (is_op(".")) {
        step();
        PyExpr made = node(Kind::kAttribute);
        made.line = left.line;
        made.text = now().text;
        step();
        made.items.push_back(std::move(left));
        left = std::move(made);
      } else if (is_op("(")) {
        left = call(std::move(left));
      } else if (is_op("[")) {
        step();
        PyExpr made = node(Kind::kSubscript);
        made.line = left.line;
        made.items.push_back(std::move(left));
        PyExpr index;
        if (!is_op(":")) index = tuple();
        if (is_op(":")) {
          index = {};
          int open = 0;
          while (!is(Token::Type::kEnd) && (open > 0 || !is_op("]"))) {
            if (is_op("[")) ++open;
            if (is_op("]")) --open;
            step();
          }
        }
        made.items.push_back(std::move(index));
        eat("]");
        left = std::move(made);
      } else {
        return left;
      }
      left.last = std::max(left.last, line_before());
    }
  }

  PyExpr call(PyExpr callee) {
    PyExpr made = node(Kind::kCall);
    made.line = callee.line;
    made.items.push_back(std::move(callee));
    made.names.emplace_back();
    step();
    while (!is_op(")") && !is(Token::Type::kEnd)) {
      const std::size_t before = at_;
      std::string name;
      if (is_op("**") || is_op("*")) {
        name = now().text;
        step();
      } else if (is(Token::Type::kName) && next().type == Token::Type::kOperator && next().text == "=") {
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
  void skip_comprehension() {
    if (!is_word("for") && !is_word("async")) return;
    int open = 0;
    while (!is(Token::Type::kEnd)) {
      if (open == 0 && (is_op(")") || is_op("]") || is_op("}"))) return;
      if (is_op("(") || is_op("[") || is_op("{")) ++open;
      if (is_op(")") || is_op("]") || is_op("}")) --open;
      step();
    }
  }

  PyExpr atom() {
    if (is(Token::Type::kString)) return strings();
    if (is(Token::Type::kNumber)) {
      PyExpr made = node(Kind::kNumber);
      made.text = now().text;
      step();
      return made;
    }
    if (is(Token::Type::kName)) {
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
    if (!is(Token::Type::kLine) && !is(Token::Type::kEnd) && !is(Token::Type::kIndent) && !is(Token::Type::kDedent) &&
        !is_op(")") && !is_op("]") && !is_op("}") && !is_op(",") && !is_op(":") && !is_op("="))
      step();
    return made;
  }

  PyExpr list() {
    const bool round = is_op("(");
    const char* end = round ? ")" : "]";
    PyExpr made = node(round ? Kind::kTuple : Kind::kList);
    step();
    bool comma = false;
    while (!is_op(end) && !is(Token::Type::kEnd)) {
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

  PyExpr dict() {
    PyExpr made = node(Kind::kDict);
    step();
    while (!is_op("}") && !is(Token::Type::kEnd)) {
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
  PyExpr strings() {
    PyExpr made = node(Kind::kString);
    while (is(Token::Type::kString)) {
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

  static void add_text(PyExpr& made, std::string text) {
    if (text.empty()) return;
    PyExpr& part = made.items.emplace_back();
    part.kind = Kind::kString;
    part.text = std::move(text);
    part.line = made.line;
  }

  void formatted(PyExpr& made, const std::string& text) {
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
      if (depth_ < 3) {
        PyExpr part = PyParser(PyLexer(inside).tokens(), depth_ + 1).expression_only();
        part.line = part.last = made.line;
        made.items.push_back(std::move(part));
      }
      at = end;
    }
    add_text(made, std::move(plain));
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<PyStatement> parse_python(std::string_view text) {
  return PyParser(PyLexer(text).tokens()).module();
}

}  // namespace tidemark::exchange
