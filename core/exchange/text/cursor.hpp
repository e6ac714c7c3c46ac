#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tidemark::exchange {

/// A place in a text, and the line that it is in.
struct Cursor {
  std::string_view text;
  std::size_t at = 0;
  int line = 1;

  bool done() const { return at >= text.size(); }
  char peek(std::size_t ahead = 0) const { return at + ahead < text.size() ? text[at + ahead] : '\0'; }
  char take() {
    const char letter = peek();
    if (letter == '\n') ++line;
    ++at;
    return letter;
  }
  bool starts(std::string_view word) const {
    return text.substr(at < text.size() ? at : text.size(), word.size()) == word;
  }
  void skip(std::size_t count) {
    for (; count > 0; --count) take();
  }
};

/// Appends a code point as UTF-8.
void append_utf8(std::string& text, unsigned code);

/// The escape behind a backslash that was just taken, as JSON, YAML, TOML and Python share them; appends what it means.
void take_escape(Cursor& cursor, std::string& text);

}  // namespace tidemark::exchange
