#include "core/exchange/text/shell.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/exchange/text/node.hpp"

namespace tidemark::exchange {
namespace {

constexpr std::size_t kMostCommands = 20'000;
constexpr std::size_t kLongestValue = 1 << 20;
constexpr int kDeepest = 12;

bool is_name(char letter, bool first) {
  const bool alpha = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
  return alpha || (!first && letter >= '0' && letter <= '9');
}
bool is_space(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\r' || letter == '\n';
}

/// A variable: one value, or the items of an array.
struct Variable {
  std::vector<ShellWord> items;
  bool array = false;
};

/// Integer expressions: + - * / % and parentheses.
class Arithmetic {
 public:
  explicit Arithmetic(std::string_view text) : text_(text) {}
  std::optional<long long> value() {
    const std::optional<long long> sum = this->sum(0);
    space();
    return at_ == text_.size() ? sum : std::nullopt;
  }

 private:
  void space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  std::optional<long long> sum(int depth) {
    std::optional<long long> left = product(depth);
    for (space(); left && at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-'); space()) {
      const char sign = text_[at_++];
      const std::optional<long long> right = product(depth);
      if (!right) return std::nullopt;
      left = sign == '+' ? *left + *right : *left - *right;
      if (*left > (1LL << 50) || *left < -(1LL << 50)) return std::nullopt;
    }
    return left;
  }
  std::optional<long long> product(int depth) {
    std::optional<long long> left = atom(depth);
    for (space(); left && at_ < text_.size() && (text_[at_] == '*' || text_[at_] == '/' || text_[at_] == '%');
         space()) {
      const char sign = text_[at_++];
      const std::optional<long long> right = atom(depth);
      if (!right || (sign != '*' && *right == 0)) return std::nullopt;
      left = sign == '*' ? *left * *right : sign == '/' ? *left / *right : *left % *right;
      if (*left > (1LL << 30) || *left < -(1LL << 30)) return std::nullopt;
    }
    return left;
  }
  std::optional<long long> atom(int depth) {
    space();
    if (depth > kDeepest || at_ >= text_.size()) return std::nullopt;
    if (text_[at_] == '(') {
      ++at_;
      const std::optional<long long> inner = sum(depth + 1);
      space();
      if (at_ >= text_.size() || text_[at_] != ')') return std::nullopt;
      ++at_;
      return inner;
    }
    long long number = 0;
    const std::size_t first = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ - first < 10; ++at_)
      number = number * 10 + (text_[at_] - '0');
    return at_ == first ? std::nullopt : std::optional{number};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class ShellReader {
 public:
  explicit ShellReader(ShellScript& script) : script_(script) {}

  void run(const Lined& text, int depth) {
    if (depth > kDeepest || text.text.size() > kLongestValue) return;
    const Lined* outer = text_;
    const std::size_t outer_at = at_;
    const int outer_depth = depth_;
    text_ = &text;
    at_ = 0;
    depth_ = depth;
    while (at_ < text.text.size() && script_.commands.size() < kMostCommands) read_command();
    text_ = outer;
    at_ = outer_at;
    depth_ = outer_depth;
  }

  std::map<std::string, Variable>& variables() { return variables_; }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_->text.size() ? text_->text[at_ + ahead] : '\0'; }
  int line() const {
    if (text_->lines.empty()) return 1;
    return text_->lines[std::min(at_, text_->lines.size() - 1)];
  }
  bool starts(std::string_view word) const { return text_->text.compare(at_, word.size(), word) == 0; }
  bool is_on() const {
    return std::all_of(branches_.begin(), branches_.end(), [](const Branch& branch) { return branch.active; });
  }

  /// Blanks, continued lines and comments.
  void skip_blanks() {
    while (at_ < text_->text.size()) {
      const char letter = peek();
      if (letter == ' ' || letter == '\t' || letter == '\r') {
        ++at_;
      } else if (letter == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
        at_ += peek(1) == '\n' ? 2 : 3;
      } else if (letter == '#' && (at_ == 0 || is_space(text_->text[at_ - 1]) || text_->text[at_ - 1] == ';')) {
        while (at_ < text_->text.size() && peek() != '\n') ++at_;
      } else {
        return;
      }
    }
  }

  /// One simple command, up to a separator.
  void read_command() {
    ShellCommand command;
    std::vector<std::pair<std::string, std::string>> here;  // delimiters and files
    std::string redirected;
    while (at_ < text_->text.size()) {
      skip_blanks();
      const char letter = peek();
      if (letter == '\0') break;
      if (letter == '\n') {
        ++at_;
        break;
      }
      if (letter == ';' || letter == '&' || letter == '|') {
        const bool merged = letter == '&' && peek(1) == '>';
        while (peek() == letter) ++at_;
        if (merged) {
          skip_redirection(redirected, here);
          continue;
        }
        break;
      }
      if (letter == '(' || letter == ')') {
        ++at_;
        if (letter == ')') break;
        continue;
      }
      if (letter == '<' || letter == '>') {
        skip_redirection(redirected, here);
        continue;
      }
      if (!take_assignment(command)) take_words(command);
    }
    for (auto& [end, quoted] : here) read_document(end, quoted == "'", redirected);
    if (!here.empty() && !command.words.empty() && command.words[0].word() == "read")
      assign_document(command.words.back().word());
    if (!command.words.empty() || !command.environment.empty()) finish(command);
  }

  void skip_redirection(std::string& file, std::vector<std::pair<std::string, std::string>>& here) {
    const bool document = starts("<<") && !starts("<<<");
    const bool out = peek() == '>';
    while (peek() == '<' || peek() == '>' || peek() == '-' || peek() == '|') ++at_;
    if (peek() == '&') {
      ++at_;
      while (peek() >= '0' && peek() <= '9') ++at_;
      if (peek() == '-') ++at_;
      return;
    }
    skip_blanks();
    const bool quoted = peek() == '\'' || peek() == '"';
    ShellCommand target;
    take_words(target);
    const std::string word = target.words.empty() ? std::string{} : target.words[0].word();
    if (document) here.emplace_back(word, quoted ? "'" : "");
    if (out) file = word;
  }

  void read_document(const std::string& end, bool quoted, const std::string& file) {
    HereDocument document{file, {}, line()};
    while (at_ < text_->text.size()) {
      std::size_t stop = text_->text.find('\n', at_);
      if (stop == std::string::npos) stop = text_->text.size();
      std::string row = text_->text.substr(at_, stop - at_);
      const std::size_t first = row.find_first_not_of(" \t");
      std::string bare = first == std::string::npos ? std::string{} : row.substr(first);
      while (!bare.empty() && is_space(bare.back())) bare.pop_back();
      if (bare == end) {
        at_ = std::min(stop + 1, text_->text.size());
        break;
      }
      document.text += (quoted ? row : expanded(row)) + "\n";
      at_ = std::min(stop + 1, text_->text.size());
      if (stop == text_->text.size()) break;
    }
    if (script_.documents.size() < 32) script_.documents.push_back(std::move(document));
  }

  /// `read -r -d '' NAME <<EOF`: the document is the variable's value.
  void assign_document(const std::string& name) {
    if (script_.documents.empty()) return;
    const HereDocument& document = script_.documents.back();
    ShellWord word;
    int line = document.line;
    for (char letter : document.text) {
      // A backslash goes on with the next line.
      word.text.add(letter == '\\' ? ' ' : letter, line);
      if (letter == '\n') ++line;
    }
    Variable value;
    value.items.push_back(std::move(word));
    variables_[name] = std::move(value);
  }

  /// A line of a here-document with its variables.
  std::string expanded(const std::string& row) {
    Lined line{row, std::vector<int>(row.size(), 1)};
    const Lined* outer = text_;
    const std::size_t outer_at = at_;
    text_ = &line;
    at_ = 0;
    ShellWord word;
    while (at_ < row.size()) {
      if (peek() == '$') {
        take_dollar(word, nullptr, true);
      } else {
        word.text.add(peek(), 1);
        ++at_;
      }
    }
    text_ = outer;
    at_ = outer_at;
    return word.word();
  }

  /// NAME=value, NAME+=value, NAME=(items), in front of a command or as one.
  bool take_assignment(ShellCommand& command) {
    const bool declares =
        !command.words.empty() && (command.words[0].word() == "export" || command.words[0].word() == "declare" ||
                                   command.words[0].word() == "local" || command.words[0].word() == "readonly");
    if (!command.words.empty() && !declares) return false;
    std::size_t end = at_;
    while (end < text_->text.size() && is_name(text_->text[end], end == at_)) ++end;
    const bool adds = text_->text.compare(end, 2, "+=") == 0;
    if (end == at_ || end >= text_->text.size() || (text_->text[end] != '=' && !adds)) return false;
    const std::string name = text_->text.substr(at_, end - at_);
    at_ = end + (adds ? 2 : 1);
    Variable value;
    if (peek() == '(') {
      take_array(value);
    } else {
      ShellCommand words;
      if (!is_space(peek()) && peek() != ';' && peek() != '\0' && peek() != '&' && peek() != ')')
        take_words(words, true);
      value.items.push_back(words.words.empty() ? ShellWord{} : std::move(words.words[0]));
    }
    pending_.push_back({name, std::move(value), adds, declares});
    if (!value_empty()) command.environment[name] = pending_.back().value.items[0];
    return true;
  }
  bool value_empty() const { return pending_.back().value.items.empty(); }

  void take_array(Variable& value) {
    value.array = true;
    ++at_;
    ShellCommand words;
    while (at_ < text_->text.size()) {
      skip_blanks();
      if (peek() == '\n') {
        ++at_;
      } else if (peek() == ')' || peek() == '\0') {
        break;
      } else {
        const std::size_t before = at_;
        take_words(words);
        if (at_ == before) ++at_;
      }
    }
    if (peek() == ')') ++at_;
    value.items = std::move(words.words);
  }

  /// One word as it is written, which expansion may make none, one or many. `whole` keeps it one: an assignment.
  void take_words(ShellCommand& command, bool whole = false) {
    std::vector<ShellWord> made(1);
    bool said = false;
    while (at_ < text_->text.size()) {
      const char letter = peek();
      if (is_space(letter) || letter == ';' || letter == '&' || letter == '|' || letter == '<' || letter == '>' ||
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
        for (++at_; at_ < text_->text.size() && peek() != '\''; ++at_) made.back().text.add(peek(), line());
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
    if ((peek() == '>' || peek() == '<') && made.size() == 1 && made[0].word().size() == 1 &&
        made[0].word()[0] >= '0' && made[0].word()[0] <= '2')
      return;
    for (ShellWord& word : made) {
      if (!word.word().empty() || (said && made.size() == 1)) command.words.push_back(std::move(word));
    }
  }

  void take_double_quoted(std::vector<ShellWord>& made) {
    for (++at_; at_ < text_->text.size() && peek() != '"';) {
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

  static void append(ShellWord& word, const ShellWord& value, int line) {
    if (word.text.text.size() + value.text.text.size() > kLongestValue) return;
    word.text.add(value.text);
    word.uses.insert(word.uses.end(), value.uses.begin(), value.uses.end());
    if (std::find(word.uses.begin(), word.uses.end(), line) == word.uses.end()) word.uses.push_back(line);
    word.tentative |= value.tentative;
  }

  /// Puts a value into the word, split at blanks into several where `made` is given and it stood without quotes.
  void put(ShellWord& word, std::vector<ShellWord>* made, const Variable& value, bool quoted, int line) {
    if (made == nullptr) {
      for (std::size_t at = 0; at < value.items.size(); ++at) {
        if (at > 0) word.text.add(' ', line);
        append(word, value.items[at], line);
      }
      return;
    }
    for (std::size_t at = 0; at < value.items.size(); ++at) {
      if (at > 0) made->emplace_back();
      if (quoted) {
        append(made->back(), value.items[at], line);
      } else {
        put_split(*made, value.items[at], line);
      }
    }
  }

  static void put_split(std::vector<ShellWord>& made, const ShellWord& value, int line) {
    bool fresh = false;
    const std::string& text = value.word();
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (is_space(text[at])) {
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

  void put_text(ShellWord& word, std::string_view text, int line) {
    for (char letter : text) word.text.add(letter, line);
  }

  /// Behind a dollar sign or a backquote.
  void take_dollar(ShellWord& word, std::vector<ShellWord>* made, bool quoted) {
    const int line = this->line();
    if (peek() == '`') return take_command_text(word, '`', line);
    ++at_;
    if (starts("((")) return take_arithmetic(word, line);
    if (peek() == '(') return take_command_text(word, ')', line);
    if (peek() == '{') return take_braces(word, made, quoted, line);
    std::size_t end = at_;
    while (end < text_->text.size() && is_name(text_->text[end], end == at_)) ++end;
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

  void put_variable(ShellWord& word, std::vector<ShellWord>* made, const std::string& name, bool quoted, int line) {
    const auto known = variables_.find(name);
    if (known != variables_.end()) {
      Variable first = known->second;
      if (first.array && first.items.size() > 1) first.items.resize(1);
      return put(word, made, first, quoted, line);
    }
    put_text(word, "$" + name, line);
  }

  void take_braces(ShellWord& word, std::vector<ShellWord>* made, bool quoted, int line) {
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
    while (stop < inside.size() && (is_name(inside[stop], false))) ++stop;
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
      Variable value;
      value.items.push_back(nested(inside_at + stop + skip, behind.size() - skip));
      return put(word, made, value, quoted, line);
    }
    if (behind.empty() || otherwise) return put_variable(word, made, name, quoted, line);
    put_text(word, "${" + inside + "}", line);
  }

  static bool is_unset(const Variable& value) {
    return value.items.empty() || value.items[0].word().empty() ||
           (value.items[0].word()[0] == '$' && value.items.size() == 1);
  }

  /// The default of ${X:-default}: a part of this text, expanded.
  ShellWord nested(std::size_t first, std::size_t size) {
    Lined part;
    for (std::size_t at = first; at < first + size && at < text_->text.size(); ++at)
      part.add(text_->text[at], text_->lines[at]);
    return expand(part);
  }

  ShellWord expand(const Lined& part) {
    ShellWord value;
    if (depth_ > kDeepest) return value;
    const Lined* outer = text_;
    const std::size_t outer_at = at_;
    text_ = &part;
    at_ = 0;
    ++depth_;
    while (at_ < part.text.size()) {
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
    text_ = outer;
    at_ = outer_at;
    return value;
  }

  void take_arithmetic(ShellWord& word, int line) {
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
  ShellWord nested_names(std::size_t first, std::size_t size) {
    Lined part;
    for (std::size_t at = first; at < first + size;) {
      const bool begins =
          is_name(text_->text[at], true) && (at == first || (!is_name(text_->text[at - 1], false) &&
                                                             text_->text[at - 1] != '$' && text_->text[at - 1] != '{'));
      if (begins) part.add('$', text_->lines[at]);
      do part.add(text_->text[at], text_->lines[at]);
      while (++at < first + size && is_name(text_->text[at - 1], false) && is_name(text_->text[at], false));
    }
    return expand(part);
  }

  void put_number(ShellWord& word, const ShellWord& expression, int line) {
    const std::optional<long long> number = Arithmetic(expression.word()).value();
    ShellWord value = expression;
    value.text = {};
    std::string open = "$((" + expression.word() + "))";
    open.erase(std::remove_if(open.begin(), open.end(), is_space), open.end());
    put_text(value, number ? std::to_string(*number) : open, line);
    for (int other : expression.lines()) value.uses.push_back(other);
    append(word, value, line);
  }

  /// $(...) and `...`: `expr` is computed, all else stays unknown.
  void take_command_text(ShellWord& word, char close, int line) {
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

  struct Pending {
    std::string name;
    Variable value;
    bool adds = false;
    bool exported = false;
  };
  struct Branch {
    bool active = true;  // this side is read
    bool taken = false;  // a side before it surely is
    bool open = true;    // of case: patterns, nothing decided
  };

  void finish(ShellCommand& command) {
    std::vector<Pending> pending = std::move(pending_);
    pending_.clear();
    while (!command.words.empty() && take_keyword(command)) {
    }
    const bool only_assigns = command.words.empty() || command.words[0].word() == "export" ||
                              command.words[0].word() == "declare" || command.words[0].word() == "local" ||
                              command.words[0].word() == "readonly";
    if (!is_on()) return;
    if (only_assigns) {
      for (Pending& one : pending) assign(one);
      if (command.words.empty()) return;
    }
    if (!command.words.empty()) nested_script(command);
    if (!command.words.empty()) script_.commands.push_back(std::move(command));
  }

  /// `bash -c "torchrun ..."`.
  void nested_script(const ShellCommand& command) {
    for (std::size_t at = 0; at + 2 < command.words.size() + 0; ++at) {
      const std::string& word = command.words[at].word();
      const bool shell =
          word == "bash" || word == "sh" || (word.size() > 5 && word.compare(word.size() - 5, 5, "/bash") == 0);
      const std::string& flag = command.words[at + 1].word();
      if (!shell || flag.empty() || flag[0] != '-' || flag.back() != 'c') continue;
      const Lined text = command.words[at + 2].text;
      return run(text, depth_ + 1);
    }
  }

  void assign(Pending& one) {
    const auto known = variables_.find(one.name);
    if (one.adds && known != variables_.end()) {
      if (known->second.array) {
        for (ShellWord& item : one.value.items) known->second.items.push_back(std::move(item));
      } else if (!known->second.items.empty() && !one.value.items.empty()) {
        append(known->second.items[0], one.value.items[0],
               one.value.items[0].text.lines.empty() ? 0 : one.value.items[0].text.lines[0]);
      }
      return;
    }
    if (known != variables_.end() && !known->second.items.empty() && !one.value.items.empty()) {
      const std::string& now = one.value.items[0].word();
      const std::string& before = known->second.items[0].word();
      if (now != before) note_twice(one.name);
      const bool argument = now.size() >= 2 && now[0] == '$' && now[1] >= '0' && now[1] <= '9';
      if (argument && !before.empty() && before[0] != '$') {
        known->second.items[0].tentative = true;
        return;
      }
    }
    variables_[one.name] = std::move(one.value);
  }

  void note_twice(const std::string& name) {
    if (std::find(script_.twice.begin(), script_.twice.end(), name) == script_.twice.end())
      script_.twice.push_back(name);
  }

  /// Takes a keyword off the front; whether something may be left behind it.
  bool take_keyword(ShellCommand& command) {
    const std::string word = command.words[0].word();
    const auto drop = [&] { command.words.erase(command.words.begin()); };
    if (word == "if" || word == "elif") {
      drop();
      const std::optional<bool> holds = test(command.words);
      if (word == "if") {
        if (branches_.size() < 200) branches_.push_back({true, false, false});
      }
      if (!branches_.empty()) {
        Branch& branch = branches_.back();
        const bool reached = word == "if" || !branch.taken;
        branch.active = reached && holds.value_or(true);
        branch.taken = branch.taken || (reached && holds.value_or(false));
      }
      command.words.clear();
      return false;
    }
    if (word == "else") {
      if (!branches_.empty()) {
        branches_.back().active = !branches_.back().taken;
      }
      drop();
      return true;
    }
    if (word == "fi") {
      if (!branches_.empty()) branches_.pop_back();
      drop();
      return true;
    }
    if (word == "then" || word == "do" || word == "done" || word == "{" || word == "}" || word == "!" ||
        word == "time" || word == "esac") {
      drop();
      return true;
    }
    if (word == "for" && command.words.size() >= 4 && command.words[2].word() == "in") {
      Pending one{command.words[1].word(), {}, false, false};
      one.value.items.push_back(command.words[3]);
      if (is_on()) assign(one);
      command.words.clear();
      return false;
    }
    if (word == "while" || word == "until" || word == "case" || word == "function" || word == "for")
      command.words.clear();
    return false;
  }

  /// `[ a = b ]` of known values; nothing where it cannot be told.
  static std::optional<bool> test(const std::vector<ShellWord>& all) {
    std::vector<std::string> words;
    for (const ShellWord& word : all) {
      if (word.word().find('$') != std::string::npos) return std::nullopt;
      if (word.word() != "[" && word.word() != "]" && word.word() != "[[" && word.word() != "]]")
        words.push_back(word.word());
    }
    if (words.size() == 2 && (words[0] == "-z" || words[0] == "-n")) return (words[0] == "-n") != words[1].empty();
    if (words.size() != 3) return std::nullopt;
    if (words[1] == "=" || words[1] == "==") return words[0] == words[2];
    if (words[1] == "!=") return words[0] != words[2];
    const std::optional<long long> left = Arithmetic(words[0]).value();
    const std::optional<long long> right = Arithmetic(words[2]).value();
    if (!left || !right) return std::nullopt;
    if (words[1] == "-eq") return *left == *right;
    if (words[1] == "-ne") return *left != *right;
    if (words[1] == "-gt") return *left > *right;
    if (words[1] == "-ge") return *left >= *right;
    if (words[1] == "-lt") return *left < *right;
    if (words[1] == "-le") return *left <= *right;
    return std::nullopt;
  }

  ShellScript& script_;
  const Lined* text_ = nullptr;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<Pending> pending_;
  std::vector<Branch> branches_;
  std::map<std::string, Variable> variables_;
};

}  // namespace

void Lined::add(const Lined& other) {
  text += other.text;
  lines.insert(lines.end(), other.lines.begin(), other.lines.end());
}

std::vector<int> ShellWord::lines() const {
  std::vector<int> all;
  const auto add = [&](int line) {
    if (line > 0 && std::find(all.begin(), all.end(), line) == all.end()) all.push_back(line);
  };
  for (int line : text.lines) add(line);
  for (int line : uses) add(line);
  return all;
}

ShellScript read_shell(std::string_view text) {
  ShellScript script;
  Lined lined;
  int line = 1;
  lined.lines.reserve(text.size());
  for (char letter : text) {
    lined.add(letter, line);
    if (letter == '\n') ++line;
  }
  ShellReader reader(script);
  reader.run(lined, 0);
  for (auto& [name, value] : reader.variables()) {
    if (!value.items.empty()) script.variables[name] = value.items[0];
  }
  return script;
}

}  // namespace tidemark::exchange
