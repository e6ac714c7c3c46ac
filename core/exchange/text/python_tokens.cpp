#include "core/exchange/text/python_tokens.hpp"

#include <utility>

#include "core/exchange/text/cursor.hpp"

namespace tidemark::exchange {
namespace {

constexpr std::size_t kMostTokens = 600'000;
constexpr std::size_t kMostIndents = 100;
constexpr std::size_t kTab = 8;  // Python's own

bool is_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_' ||
         static_cast<unsigned char>(letter) >= 0x80;
}
bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

/// Words, with the indentation as tokens of its own.
class PyLexer {
 public:
  explicit PyLexer(std::string_view text) : cursor_{text} {
    if (cursor_.starts("\xEF\xBB\xBF")) cursor_.at = 3;
  }

  std::vector<PyToken> tokens() {
    while (!cursor_.done() && tokens_.size() < kMostTokens) {
      if (fresh_) {
        begin_line();
      } else {
        take();
      }
    }
    add(PyToken::Type::kLine, "");
    for (; indents_.size() > 1; indents_.pop_back()) add(PyToken::Type::kDedent, "");
    add(PyToken::Type::kEnd, "");
    return std::move(tokens_);
  }

 private:
  void add(PyToken::Type type, std::string text, bool formatted = false, int line = 0) {
    tokens_.push_back({type, std::move(text), formatted, line == 0 ? cursor_.line : line, cursor_.line});
  }

  void begin_line() {
    std::size_t width = 0;
    while (cursor_.peek() == ' ' || cursor_.peek() == '\t') width += cursor_.take() == '\t' ? kTab - width % kTab : 1;
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
    if (width > indents_.back() && indents_.size() < kMostIndents) {
      indents_.push_back(width);
      add(PyToken::Type::kIndent, "");
    }
    while (width < indents_.back()) {
      indents_.pop_back();
      add(PyToken::Type::kDedent, "");
    }
  }

  void skip_comment() {
    while (!cursor_.done() && cursor_.peek() != '\n') cursor_.take();
  }

  void take() {
    const char letter = cursor_.peek();
    if (letter == '\n') {
      if (open_ == 0) {
        add(PyToken::Type::kLine, "");
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
      add(PyToken::Type::kName, std::move(name));
    }
  }

  void take_number() {
    const std::size_t first = cursor_.at;
    while (is_digit(cursor_.peek()) || is_letter(cursor_.peek()) || cursor_.peek() == '.' ||
           ((cursor_.peek() == '-' || cursor_.peek() == '+') && cursor_.at > first &&
            (cursor_.text[cursor_.at - 1] == 'e' || cursor_.text[cursor_.at - 1] == 'E'))) {
      cursor_.take();
    }
    add(PyToken::Type::kNumber, std::string{cursor_.text.substr(first, cursor_.at - first)});
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
    add(PyToken::Type::kString, std::move(text), formatted, line);
  }

  void take_operator() {
    for (std::string_view word : {"**=", "//=", ">>=", "<<=", "...", "->", ":=", "==", "!=", "<=", ">=", "+=",
                                  "-=",  "*=",  "/=",  "%=",  "|=",  "&=", "^=", "**", "//", "<<", ">>"}) {
      if (!cursor_.starts(word)) continue;
      cursor_.skip(word.size());
      return add(PyToken::Type::kOperator, std::string{word});
    }
    const char letter = cursor_.take();
    if (letter == '(' || letter == '[' || letter == '{') ++open_;
    if ((letter == ')' || letter == ']' || letter == '}') && open_ > 0) --open_;
    add(PyToken::Type::kOperator, std::string(1, letter));
  }

  Cursor cursor_;
  std::vector<PyToken> tokens_;
  std::vector<std::size_t> indents_ = {0};
  int open_ = 0;
  bool fresh_ = true;
};

}  // namespace

std::vector<PyToken> python_tokens(std::string_view text) {
  return PyLexer(text).tokens();
}

}  // namespace tidemark::exchange
