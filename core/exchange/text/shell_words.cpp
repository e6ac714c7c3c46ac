#include "core/exchange/text/shell_words.hpp"

#include <algorithm>
#include <optional>

#include "core/exchange/text/shell_arithmetic.hpp"

namespace tidemark::exchange {
namespace {

constexpr std::size_t kLongestValue = 1 << 20;

void put_text(ShellWord& word, std::string_view text, int line) {
  for (char letter : text) word.text.add(letter, line);
}

void put_split(std::vector<ShellWord>& made, const ShellWord& value, int line) {
  bool fresh = false;
  const std::string& text = value.word();
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (is_shell_space(text[at])) {
      fresh = !made.back().word().empty() || fresh;
      continue;
    }
    if (fresh) made.emplace_back();
    fresh = false;
    ShellWord& word = made.back();
    word.text.add(text[at], value.text.lines[at]);
    if (word.uses.empty() || word.uses.back() != line) {
      word.uses = value.uses;
      word.uses.push_back(line);
    }
    word.tentative = value.tentative;
  }
  if (fresh) made.emplace_back();
}

/// Puts a value into the word, split at blanks into several where `made` is given and it stood without quotes.
void put(ShellWord& word, std::vector<ShellWord>* made, const ShellVariable& value, bool quoted, int line) {
  if (made == nullptr) {
    for (std::size_t at = 0; at < value.items.size(); ++at) {
      if (at > 0) word.text.add(' ', line);
      append_word(word, value.items[at], line);
    }
    return;
  }
  for (std::size_t at = 0; at < value.items.size(); ++at) {
    if (at > 0) made->emplace_back();
    if (quoted) {
      append_word(made->back(), value.items[at], line);
    } else {
      put_split(*made, value.items[at], line);
    }
  }
}

/// Set to nothing, or to an argument that the script was not given.
bool is_unset(const ShellVariable& value) {
  return value.items.empty() || value.items[0].word().empty() ||
         (value.items[0].word()[0] == '$' && value.items.size() == 1);
}

void put_number(ShellWord& word, const ShellWord& expression, int line) {
  const std::optional<long long> number = shell_arithmetic(expression.word());
  ShellWord value = expression;
  value.text = {};
  std::string open = "$((" + expression.word() + "))";
  open.erase(std::remove_if(open.begin(), open.end(), is_shell_space), open.end());
  put_text(value, number ? std::to_string(*number) : open, line);
  for (int other : expression.lines()) value.uses.push_back(other);
  append_word(word, value, line);
}

}  // namespace

void append_word(ShellWord& word, const ShellWord& value, int line) {
  if (word.text.text.size() + value.text.text.size() > kLongestValue) return;
  word.text.add(value.text);
  word.uses.insert(word.uses.end(), value.uses.begin(), value.uses.end());
  if (std::find(word.uses.begin(), word.uses.end(), line) == word.uses.end()) word.uses.push_back(line);
  word.tentative |= value.tentative;
}

bool is_shell_name(char letter, bool first) {
  const bool alpha = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
  return alpha || (!first && letter >= '0' && letter <= '9');
}

bool is_shell_space(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\r' || letter == '\n';
}

int ShellWords::line() const {
  if (text_->lines.empty()) return 1;
  return text_->lines[std::min(at_, text_->lines.size() - 1)];
}

void ShellWords::skip_blanks() {
  while (!done()) {
    const char letter = peek();
    if (letter == ' ' || letter == '\t' || letter == '\r') {
      ++at_;
    } else if (letter == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      at_ += peek(1) == '\n' ? 2 : 3;
    } else if (letter == '#' && (at_ == 0 || is_shell_space(text_->text[at_ - 1]) || text_->text[at_ - 1] == ';')) {
      while (!done() && peek() != '\n') ++at_;
    } else {
      return;
    }
  }
}

void ShellWords::take_words(std::vector<ShellWord>& words, bool whole) {
  std::vector<ShellWord> made(1);
  bool said = false;
  while (!done()) {
    const char letter = peek();
    if (is_shell_space(letter) || letter == ';' || letter == '&' || letter == '|' || letter == '<' || letter == '>' ||
        letter == '(' || letter == ')')
      break;
    if (letter == '\\') {
      if (peek(1) == '\n') {
        at_ += 2;
        break;
      }
      if (peek(1) == '\r' && peek(2) == '\n') break;
      made.back().text.add(peek(1), line());
      said = true;
      at_ += 2;
    } else if (letter == '\'') {
      said = true;
      for (++at_; !done() && peek() != '\''; ++at_) made.back().text.add(peek(), line());
      ++at_;
    } else if (letter == '"') {
      said = true;
      take_double_quoted(made);
    } else if (letter == '$' || letter == '`') {
      take_dollar(made.back(), whole ? nullptr : &made, whole);
    } else {
      made.back().text.add(letter, line());
      ++at_;
    }
  }
  // A digit in front of a redirection is a stream: 2>&1.
  if ((peek() == '>' || peek() == '<') && made.size() == 1 && made[0].word().size() == 1 && made[0].word()[0] >= '0' &&
      made[0].word()[0] <= '2')
    return;
  for (ShellWord& word : made) {
    if (!word.word().empty() || (said && made.size() == 1)) words.push_back(std::move(word));
  }
}

void ShellWords::take_double_quoted(std::vector<ShellWord>& made) {
  for (++at_; !done() && peek() != '"';) {
    if (peek() == '\\' && (peek(1) == '"' || peek(1) == '\\' || peek(1) == '$' || peek(1) == '`')) {
      made.back().text.add(peek(1), line());
      at_ += 2;
    } else if (peek() == '\\' && peek(1) == '\n') {
      made.back().text.add(' ', line());
      at_ += 2;
    } else if (peek() == '$' || peek() == '`') {
      // "${A[@]}" makes a word of each item, quotes or not.
      const std::size_t close = text_->text.find('}', at_);
      const bool each = starts("${") && close != std::string::npos &&
                        text_->text.substr(at_, close - at_).find("[@]") != std::string::npos;
      take_dollar(made.back(), each ? &made : nullptr, true);
    } else {
      made.back().text.add(peek(), line());
      ++at_;
    }
  }
  ++at_;
}

/// Behind a dollar sign or a backquote.
void ShellWords::take_dollar(ShellWord& word, std::vector<ShellWord>* made, bool quoted) {
  const int line = this->line();
  if (peek() == '`') return take_command_text(word, '`', line);
  ++at_;
  if (starts("((")) return take_arithmetic(word, line);
  if (peek() == '(') return take_command_text(word, ')', line);
  if (peek() == '{') return take_braces(word, made, quoted, line);
  std::size_t end = at_;
  while (end < text_->text.size() && is_shell_name(text_->text[end], end == at_)) ++end;
  if (end == at_ && end < text_->text.size()) {
    const char letter = text_->text[end];
    const bool special = (letter >= '0' && letter <= '9') || letter == '@' || letter == '*' || letter == '#' ||
                         letter == '?' || letter == '$' || letter == '!';
    if (special) ++end;
  }
  const std::string name = text_->text.substr(at_, end - at_);
  at_ = end;
  if (name.empty()) return word.text.add('$', line);
  put_variable(word, made, name, quoted, line);
}

void ShellWords::put_variable(ShellWord& word, std::vector<ShellWord>* made, const std::string& name, bool quoted,
                              int line) {
  const auto known = variables_.find(name);
  if (known != variables_.end()) {
    ShellVariable first = known->second;
    if (first.array && first.items.size() > 1) first.items.resize(1);
    return put(word, made, first, quoted, line);
  }
  put_text(word, "$" + name, line);
}

void ShellWords::take_braces(ShellWord& word, std::vector<ShellWord>* made, bool quoted, int line) {
  int open = 0;
  std::size_t end = at_;
  for (; end < text_->text.size(); ++end) {
    if (text_->text[end] == '{') ++open;
    if (text_->text[end] == '}' && --open == 0) break;
  }
  const std::string inside = text_->text.substr(at_ + 1, end > at_ ? end - at_ - 1 : 0);
  const std::size_t inside_at = at_ + 1;
  at_ = std::min(end + 1, text_->text.size());
  const bool counts = !inside.empty() && inside[0] == '#';
  std::size_t stop = counts ? 1 : 0;
  const std::size_t first = stop;
  while (stop < inside.size() && (is_shell_name(inside[stop], false))) ++stop;
  const std::string name = inside.substr(first, stop - first);
  const std::string behind = inside.substr(stop);
  const auto known = variables_.find(name);
  if (counts && known != variables_.end()) return put_text(word, std::to_string(known->second.items.size()), line);
  if (behind == "[@]" || behind == "[*]") {
    if (known != variables_.end()) return put(word, made, known->second, quoted, line);
    return put_text(word, "$" + name, line);
  }
  const bool otherwise = behind.compare(0, 2, ":-") == 0 || behind.compare(0, 2, ":=") == 0 ||
                         (!behind.empty() && (behind[0] == '-' || behind[0] == '='));
  if (otherwise && (known == variables_.end() || is_unset(known->second))) {
    const std::size_t skip = behind[0] == ':' ? 2 : 1;
    ShellVariable value;
    value.items.push_back(nested(inside_at + stop + skip, behind.size() - skip));
    return put(word, made, value, quoted, line);
  }
  if (behind.empty() || otherwise) return put_variable(word, made, name, quoted, line);
  put_text(word, "${" + inside + "}", line);
}

/// The default of ${X:-default}: a part of this text, expanded.
ShellWord ShellWords::nested(std::size_t first, std::size_t size) {
  Lined part;
  for (std::size_t at = first; at < first + size && at < text_->text.size(); ++at)
    part.add(text_->text[at], text_->lines[at]);
  return expand(part);
}

ShellWord ShellWords::expand(const Lined& part) {
  ShellWord value;
  if (depth_ > kDeepest) return value;
  const Inside inside(*this, part);
  ++depth_;
  while (!done()) {
    const char letter = peek();
    if (letter == '"' || letter == '\'') {
      ++at_;
    } else if (letter == '$' || letter == '`') {
      take_dollar(value, nullptr, true);
    } else {
      value.text.add(letter, line());
      ++at_;
    }
  }
  --depth_;
  return value;
}

std::string ShellWords::expanded(const std::string& row) {
  const Lined line{row, std::vector<int>(row.size(), 1)};
  const Inside inside(*this, line);
  ShellWord word;
  while (!done()) {
    if (peek() == '$') {
      take_dollar(word, nullptr, true);
    } else {
      word.text.add(peek(), 1);
      ++at_;
    }
  }
  return word.word();
}

void ShellWords::take_arithmetic(ShellWord& word, int line) {
  std::size_t end = text_->text.find("))", at_);
  while (end != std::string::npos && end + 2 < text_->text.size() && text_->text[end + 2] == ')') ++end;
  if (end == std::string::npos) {
    at_ = text_->text.size();
    return;
  }
  ShellWord inside = nested_names(at_ + 2, end - at_ - 2);
  at_ = end + 2;
  put_number(word, inside, line);
}

/// Inside of $(( )) variables need no dollar sign.
ShellWord ShellWords::nested_names(std::size_t first, std::size_t size) {
  Lined part;
  for (std::size_t at = first; at < first + size;) {
    const bool begins = is_shell_name(text_->text[at], true) &&
                        (at == first || (!is_shell_name(text_->text[at - 1], false) && text_->text[at - 1] != '$' &&
                                         text_->text[at - 1] != '{'));
    if (begins) part.add('$', text_->lines[at]);
    do part.add(text_->text[at], text_->lines[at]);
    while (++at < first + size && is_shell_name(text_->text[at - 1], false) && is_shell_name(text_->text[at], false));
  }
  return expand(part);
}

/// $(...) and `...`: `expr` is computed, all else stays unknown.
void ShellWords::take_command_text(ShellWord& word, char close, int line) {
  ++at_;
  const std::size_t first = at_;
  int open = 1;
  for (; at_ < text_->text.size(); ++at_) {
    if (close == ')' && peek() == '(') ++open;
    if (peek() == close && --open == 0) break;
  }
  const std::string inside = text_->text.substr(first, at_ - first);
  const std::size_t size = at_ - first;
  ShellWord whole;
  if (inside.compare(0, 5, "expr ") == 0) whole = nested(first + 5, size - 5);
  if (at_ < text_->text.size()) ++at_;
  if (!whole.word().empty()) return put_number(word, whole, line);
  put_text(word, "$(...)", line);
}

}  // namespace tidemark::exchange
