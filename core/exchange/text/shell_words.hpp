#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/text/shell.hpp"

namespace tidemark::exchange {

/// Letters of a variable's name, of which the first is no digit.
bool is_shell_name(char letter, bool first);
bool is_shell_space(char letter);

/// A variable: one value, or the items of an array.
struct ShellVariable {
  std::vector<ShellWord> items;
  bool array = false;
};

/// Puts a value behind what a word is already; `line` uses it. Nothing where that becomes longer than any value is.
void append_word(ShellWord& word, const ShellWord& value, int line);

/// Takes words off a text and expands what stands in them: quotes, variables with their defaults, arrays, arithmetic.
class ShellWords {
 public:
  std::map<std::string, ShellVariable>& variables() { return variables_; }

 protected:
  /// Texts in one another: scripts in quotes, defaults in defaults.
  static constexpr int kDeepest = 12;

  /// While it lives another text is read, from its beginning.
  class Inside {
   public:
    Inside(ShellWords& of, const Lined& text) : of_(of), outer_(of.text_), at_(of.at_) {
      of.text_ = &text;
      of.at_ = 0;
    }
    ~Inside() {
      of_.text_ = outer_;
      of_.at_ = at_;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    ShellWords& of_;
    const Lined* outer_;
    std::size_t at_;
  };

  bool done() const { return at_ >= text_->text.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_->text.size() ? text_->text[at_ + ahead] : '\0'; }
  bool starts(std::string_view word) const { return text_->text.compare(at_, word.size(), word) == 0; }
  /// The line of what is read.
  int line() const;
  /// Blanks, continued lines and comments.
  void skip_blanks();
  /// One word as it is written, which expansion may make none, one or many. `whole` keeps it one: an assignment.
  void take_words(std::vector<ShellWord>& words, bool whole = false);
  /// A line of a here-document with its variables.
  std::string expanded(const std::string& row);

  const Lined* text_ = nullptr;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::map<std::string, ShellVariable> variables_;

 private:
  void take_double_quoted(std::vector<ShellWord>& made);
  void take_dollar(ShellWord& word, std::vector<ShellWord>* made, bool quoted);
  void take_braces(ShellWord& word, std::vector<ShellWord>* made, bool quoted, int line);
  void take_arithmetic(ShellWord& word, int line);
  void take_command_text(ShellWord& word, char close, int line);
  void put_variable(ShellWord& word, std::vector<ShellWord>* made, const std::string& name, bool quoted, int line);
  ShellWord nested(std::size_t first, std::size_t size);
  ShellWord nested_names(std::size_t first, std::size_t size);
  ShellWord expand(const Lined& part);
};

}  // namespace tidemark::exchange
